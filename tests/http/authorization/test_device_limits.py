"""Tests of lifetimes, limits for guesses, and the setting of the device grant."""

from collections.abc import Iterator
from datetime import timedelta
from time import sleep
from typing import Any

import pytest
import requests
from sqlalchemy import delete, update

from domain.core.keyring import Keyring
from domain.oauth.device_authorizations import format_user_code, generate_user_code
from models import AttemptCount, DeviceAuthorization
from tests.conftest import KINDS
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    settings_of,
    signed_in,
)
from tests.support.oauth.device_wire import (
    approve,
    codes,
    enter_code,
    is_asking,
    poll,
    press_decision,
    request_device_codes,
    television,
)
from tests.support.oauth.oauth_wire import assert_refused, machine
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings
from tests.support.wire.html_forms import form_with, submit
from tests.support.wire.page_text import words

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture(scope="module", params=KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service with short intervals and low limits for guesses."""
    live: LiveGatebell = request.getfixturevalue(f"live_{request.param}")
    with changed_settings(
        live,
        device_code_lifetime_seconds="200",
        device_poll_interval_seconds="1",
        user_code_attempts_per_user="4",
        user_code_attempts_per_address="6",
        user_code_attempts_in_all="9",
    ):
        yield live


@pytest.mark.long
@pytest.mark.spec("C5")
@pytest.mark.rfc("rfc8628-3.5-e")
def test_a_device_that_keeps_the_interval_is_never_slowed_down(own: LiveGatebell) -> None:
    with_time = make_application(own, bob(own), confidential=False)
    device = codes(own, with_time)
    assert device["interval"] == 1
    assert_refused(poll(own, with_time, device["device_code"]), "authorization_pending")
    sleep(1)
    assert_refused(poll(own, with_time, device["device_code"]), "authorization_pending")


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.rfc("rfc8628-3.5-e")
def test_the_interval_is_at_most_an_hour(own: LiveGatebell) -> None:
    client = television(own)
    device = codes(own, client)["device_code"]
    row = DeviceAuthorization.device_code_digest == (
        Keyring(settings_of(own).secret_key).compute_digest(device)
    )
    for seconds, told in ((3594, "3599 seconds"), (3596, "3596 seconds"), (3600, "3600 seconds")):
        with database_of(own) as session:
            session.execute(
                update(DeviceAuthorization)
                .where(row)
                .values(interval=seconds, last_polled_at=now() - timedelta(seconds=60))
            )
        answer = poll(own, client, device)
        assert_refused(answer, "slow_down")
        assert told in answer.json()["error_description"]
    with database_of(own) as session:
        long_ago = now() - timedelta(seconds=3601)
        session.execute(update(DeviceAuthorization).where(row).values(last_polled_at=long_ago))
    assert_refused(poll(own, client, device), "authorization_pending")
    assert_refused(poll(own, client, device), "slow_down")


def expire(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    """Make an application's devices expire now, with an interval of a minute."""
    with database_of(gatebell) as session:
        session.execute(
            update(DeviceAuthorization)
            .where(DeviceAuthorization.application_id == client.id)
            .values(expires_at=now(), interval=60)
        )


@pytest.mark.both_databases
@pytest.mark.spec("C6")
@pytest.mark.rfc("rfc8628-3.5-d")
def test_an_expired_device_gets_expired_token_and_cannot_be_approved(own: LiveGatebell) -> None:
    fresh_counts(own)
    client = make_application(own, bob(own), confidential=False)
    browser = signed_in(own, alice(own))
    waiting, approved, opened = (codes(own, client) for _ in range(3))
    assert waiting["expires_in"] == 200
    approve(browser, own, approved["user_code"])
    page = enter_code(browser, own, opened["user_code"])
    assert is_asking(page)
    expire(own, client)
    for device in (waiting, opened):
        assert_refused(poll(own, client, device["device_code"]), "expired_token")
    # The user saw that the device is connected, so its next poll succeeds.
    assert poll(own, client, approved["device_code"]).status_code == 200
    late = press_decision(browser, page, "approve")
    assert late.status_code == 409
    assert "was already answered" in words(late)
    assert enter_code(browser, own, waiting["user_code"]).status_code == 422
    assert_refused(poll(own, client, opened["device_code"]), "expired_token")


def fresh_counts(gatebell: LiveGatebell) -> None:
    with database_of(gatebell) as session:
        session.execute(delete(AttemptCount))


def guess(gatebell: LiveGatebell, browser: requests.Session) -> int:
    return enter_code(browser, gatebell, format_user_code(generate_user_code())).status_code


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.rfc("rfc8628-5.1-a")
def test_guesses_are_limited_per_user(own: LiveGatebell) -> None:
    fresh_counts(own)
    browser = open_browser(own, alice(own))
    right = codes(own, television(own))["user_code"]
    # A right code in between does not reset the count.
    assert [guess(own, browser) for _ in range(3)] == [422, 422, 422]
    assert is_asking(enter_code(browser, own, right))
    assert guess(own, browser) == 422
    over = enter_code(browser, own, right)
    assert over.status_code == 429
    assert 0 < int(over.headers["Retry-After"]) <= 600
    assert "Too many attempts" in words(over)
    assert guess(own, open_browser(own, bob(own))) == 422


@pytest.mark.rfc("rfc8628-5.1-a")
def test_guesses_are_limited_per_address(own: LiveGatebell) -> None:
    fresh_counts(own)
    statuses = []
    for name in ("alice", "charlie"):
        browser = open_browser(own, make_user(own, name=name))
        statuses += [guess(own, browser) for _ in range(4)]
    assert statuses == [422] * 6 + [429] * 2


@pytest.mark.long
@pytest.mark.rfc("rfc8628-5.1-a")
def test_guesses_are_limited_in_total(own: LiveGatebell) -> None:
    fresh_counts(own)
    with changed_settings(own, user_code_attempts_per_address="100"):
        statuses = []
        for name in ("alice", "bob", "charlie"):
            browser = open_browser(own, make_user(own, name=name))
            statuses += [guess(own, browser) for _ in range(4)]
        assert statuses == [422] * 9 + [429] * 3


@pytest.mark.long
def test_an_incomplete_code_does_not_count_as_a_guess(own: LiveGatebell) -> None:
    fresh_counts(own)
    browser = open_browser(own, alice(own))
    for _ in range(6):
        assert enter_code(browser, own, "BCDF-GHJ").status_code == 422
    assert is_asking(enter_code(browser, own, codes(own, television(own))["user_code"]))


@pytest.mark.long
@pytest.mark.spec("C2")
@pytest.mark.rfc("rfc8628-4-a")
def test_the_endpoints_are_not_found_if_the_device_grant_is_off(own: LiveGatebell) -> None:
    client = television(own)
    browser = signed_in(own, alice(own))
    page = browser.get(f"{own.url}/oauth/device")
    device = codes(own, client)
    with changed_settings(own, oauth2_device_grant_flow="off"):
        gone = request_device_codes(own, client)
        assert gone.status_code == 404
        assert gone.json()["error"] == "invalid_request"
        for visitor in (own.http(), browser):
            assert visitor.get(f"{own.url}/oauth/device").status_code == 404
        form = form_with(page, "user_code")
        assert submit(browser, page, form, user_code=device["user_code"]).status_code == 404
        assert_refused(poll(own, client, device["device_code"]), "unsupported_grant_type")
        document = _metadata(own)
        assert "device_authorization_endpoint" not in document
        assert not any("device" in each for each in document["grant_types_supported"])
    assert request_device_codes(own, client).status_code == 200


@pytest.mark.spec("C2")
@pytest.mark.rfc("rfc8628-4-a")
def test_the_metadata_contains_the_endpoint_and_the_full_grant_type(gatebell: LiveGatebell) -> None:
    document = _metadata(gatebell)
    endpoint = f"{gatebell.url}/oauth/authorize_device"
    assert document["device_authorization_endpoint"] == endpoint
    assert set(document["grant_types_supported"]) == {
        "authorization_code",
        "refresh_token",
        "password",
        "urn:ietf:params:oauth:grant-type:device_code",
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:token-exchange",
    }


def _metadata(gatebell: LiveGatebell) -> dict[str, Any]:
    address = f"{gatebell.url}/.well-known/oauth-authorization-server"
    document: dict[str, Any] = machine(gatebell).get(address).json()
    return document


@pytest.mark.long
@pytest.mark.both_databases
def test_old_device_authorizations_are_pruned(own: LiveGatebell) -> None:
    client = television(own)
    old, fresh = codes(own, client), codes(own, client)
    with database_of(own) as session:
        row = DeviceAuthorization.device_code_digest == (
            Keyring(settings_of(own).secret_key).compute_digest(old["device_code"])
        )
        past = now() - timedelta(hours=25)
        session.execute(update(DeviceAuthorization).where(row).values(expires_at=past))
    assert own.cli("prune")["device_authorizations"] >= 1
    assert_refused(poll(own, client, old["device_code"]), "invalid_grant")
    assert poll(own, client, fresh["device_code"]).json()["error"] != "invalid_grant"
