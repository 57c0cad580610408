"""Tests of the device grant: requests for codes, polls, and invalid input."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import requests
from sqlalchemy import select, update

from models import Application, DeviceAuthorization
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    set_state,
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
from tests.support.oauth.oauth_wire import (
    age_refreshes,
    assert_refused,
    is_token_valid,
    machine,
    new_code,
    phone_application,
    redeem,
    refresh,
    revoke,
    token_info,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.garbage import FEW_NASTY
from tests.support.wire.html_forms import form_to, form_with, submit
from tests.support.wire.page_text import words

pytestmark = pytest.mark.one_database("postgres")


def change_rows(gatebell: LiveGatebell, **values: Any) -> None:
    """Change the newest device authorization in the database."""
    with database_of(gatebell) as session:
        newest = select(DeviceAuthorization.id).order_by(DeviceAuthorization.id.desc()).limit(1)
        row = DeviceAuthorization.id == newest.scalar_subquery()
        session.execute(update(DeviceAuthorization).where(row).values(**values))


@pytest.mark.spec("C1")
@pytest.mark.rfc("rfc8628-3.1-a", "rfc8628-3.2-a", "rfc8628-3.2-b", "rfc8628-5.2-a")
def test_a_device_gets_two_codes_and_the_verification_uri(
    gatebell: LiveGatebell, tv: ClientCredentials
) -> None:
    answer = request_device_codes(gatebell, tv)
    assert answer.status_code == 200
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    body = answer.json()
    assert list(body) == [
        *("device_code", "user_code", "verification_uri", "verification_uri_complete"),
        *("expires_in", "interval"),
    ]
    assert re.fullmatch("[0-9a-f]{64}", body["device_code"])
    letters = "[BCDFGHJKLMNPQRSTVWXZ]{4}"
    assert re.fullmatch(f"{letters}-{letters}", body["user_code"])
    page = f"{gatebell.url}/oauth/device"
    assert body["verification_uri"] == page
    assert body["verification_uri_complete"] == f"{page}?user_code={body['user_code']}"
    assert (body["expires_in"], body["interval"]) == (300, 5)
    assert "Set-Cookie" not in answer.headers


@pytest.mark.spec("C1")
@pytest.mark.rfc("rfc8628-3.1-b")
def test_a_confidential_client_must_authenticate(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell))
    assert_refused(request_device_codes(gatebell, client), "invalid_client", 401)
    assert_refused(request_device_codes(gatebell, client, client_secret="x"), "invalid_client", 401)
    assert request_device_codes(gatebell, client, client_secret=client.secret).status_code == 200
    by_basic = machine(gatebell).post(
        f"{gatebell.url}/oauth/authorize_device",
        data={"scope": "read_user"},
        auth=(client.client_id, client.secret),
    )
    assert by_basic.status_code == 200


@pytest.mark.rfc("rfc8628-3.1-a")
@pytest.mark.parametrize("client_id", [None, "unknown", "x\x00y"])
def test_an_unknown_client_gets_no_code(
    gatebell: LiveGatebell, tv: ClientCredentials, client_id: str | None
) -> None:
    assert_refused(request_device_codes(gatebell, tv, client_id=client_id), "invalid_client", 401)


@pytest.mark.parametrize("scope", ["api", "read_user api", "nonsense", " ", "\x00", "é"])
def test_a_scope_that_is_not_registered_is_rejected(
    gatebell: LiveGatebell, tv: ClientCredentials, scope: str
) -> None:
    assert_refused(request_device_codes(gatebell, tv, scope=scope), "invalid_scope")


@pytest.mark.rfc("rfc6749-3.3-c")
def test_a_request_without_a_scope_gets_read_user(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv, scope=None)
    approve(browser, gatebell, device["user_code"])
    assert poll(gatebell, tv, device["device_code"]).json()["scope"] == "read_user"
    other = make_application(gatebell, bob(gatebell), confidential=False, scopes="api")
    assert_refused(request_device_codes(gatebell, other, scope=None), "invalid_scope")


@pytest.mark.rfc("rfc8628-3.1-c")
@pytest.mark.parametrize("name", ["client_id", "scope"])
def test_a_repeated_parameter_is_rejected(
    gatebell: LiveGatebell, tv: ClientCredentials, name: str
) -> None:
    answer = request_device_codes(gatebell, tv, **{name: [tv.client_id, "x"]})
    assert_refused(answer, "invalid_request")


@pytest.mark.rfc("rfc8628-3.1-a")
def test_parameters_in_the_query_are_ignored(gatebell: LiveGatebell, tv: ClientCredentials) -> None:
    address = f"{gatebell.url}/oauth/authorize_device"
    answer = machine(gatebell).post(address, params={"client_id": tv.client_id})
    assert_refused(answer, "invalid_client", 401)


@pytest.mark.both_databases
@pytest.mark.spec("B10", "C4", "C8")
@pytest.mark.rfc("rfc6749-4.5-a", "rfc8628-3.3-a", "rfc8628-3.4-a", "rfc8628-3.5-a")
def test_a_device_polls_until_it_is_approved_and_gets_one_token(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv, scope="read_user read_api")
    assert_refused(poll(gatebell, tv, device["device_code"]), "authorization_pending")
    approve(browser, gatebell, device["user_code"])
    answer = poll(gatebell, tv, device["device_code"])
    assert answer.status_code == 200, answer.text
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    body = answer.json()
    assert list(body) == ["access_token", "token_type", "expires_in", "scope", "created_at"]
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 7200)
    assert body["scope"] == "read_api read_user"
    assert token_info(gatebell, body["access_token"]).json()["application"] == {"uid": tv.client_id}
    assert_refused(poll(gatebell, tv, device["device_code"]), "invalid_grant")
    assert is_token_valid(gatebell, body["access_token"])


@pytest.mark.both_databases
@pytest.mark.spec("C5")
@pytest.mark.rfc("rfc8628-3.5-b")
def test_each_early_poll_extends_the_interval(
    gatebell: LiveGatebell, tv: ClientCredentials
) -> None:
    device = codes(gatebell, tv)
    assert_refused(poll(gatebell, tv, device["device_code"]), "authorization_pending")
    for pause in (10, 15, 20):
        # The time is in the future, so that the poll is early even if the machine is slow.
        change_rows(gatebell, last_polled_at=now() + timedelta(seconds=20))
        early = poll(gatebell, tv, device["device_code"])
        assert_refused(early, "slow_down")
        assert f"{pause} seconds" in early.json()["error_description"]
        assert early.json()["interval"] == pause
    change_rows(gatebell, last_polled_at=now() - timedelta(seconds=10))
    assert_refused(poll(gatebell, tv, device["device_code"]), "slow_down")
    change_rows(gatebell, last_polled_at=now() - timedelta(seconds=25))
    assert_refused(poll(gatebell, tv, device["device_code"]), "authorization_pending")


@pytest.mark.both_databases
@pytest.mark.spec("C5")
@pytest.mark.parametrize("ago", [4.0, 2.2, 3.5], ids=["on its way", "another clock", "both"])
def test_a_poll_is_not_early_because_of_latency_or_clock_differences(
    gatebell: LiveGatebell, tv: ClientCredentials, ago: float
) -> None:
    device = codes(gatebell, tv)
    assert device["interval"] == 5
    change_rows(gatebell, last_polled_at=now() - timedelta(seconds=ago))
    assert_refused(poll(gatebell, tv, device["device_code"]), "authorization_pending")


@pytest.mark.spec("C5", "C8")
def test_an_approved_device_gets_its_token_despite_early_polls(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    for _ in range(3):
        poll(gatebell, tv, device["device_code"])
    approve(browser, gatebell, device["user_code"])
    assert poll(gatebell, tv, device["device_code"]).status_code == 200


@pytest.mark.both_databases
@pytest.mark.spec("C7")
@pytest.mark.rfc("rfc8628-3.5-c")
def test_a_denied_device_gets_access_denied(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    done = press_decision(browser, enter_code(browser, gatebell, device["user_code"]), "deny")
    assert done.status_code == 200
    assert "Access denied" in words(done)
    for _ in range(2):
        assert_refused(poll(gatebell, tv, device["device_code"]), "access_denied")


@pytest.mark.both_databases
@pytest.mark.rfc("rfc8628-3.4-a")
@pytest.mark.parametrize("code", ["", "0" * 64, "x", "\x00", "é", "F" * 64, "0" * 9000])
def test_an_invalid_device_code_is_rejected(
    gatebell: LiveGatebell, tv: ClientCredentials, code: str
) -> None:
    error = "invalid_grant" if code else "invalid_request"
    assert_refused(poll(gatebell, tv, code), error)


def test_device_codes_and_other_credentials_are_not_interchangeable(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = phone_application(gatebell)
    device = codes(gatebell, client)
    for other in (device["user_code"], client.secret, new_code(gatebell, client, **_pkce())):
        assert_refused(poll(gatebell, client, other), "invalid_grant")
    approve(browser, gatebell, device["user_code"])
    for answer in (
        redeem(gatebell, client, device["device_code"]),
        refresh(gatebell, client, device["device_code"]),
    ):
        assert_refused(answer, "invalid_grant")
    assert not is_token_valid(gatebell, device["device_code"])
    assert poll(gatebell, client, device["device_code"]).status_code == 200


def _pkce() -> dict[str, str]:
    return {"code_challenge": "x" * 43, "code_challenge_method": "S256"}


@pytest.mark.advisory("CVE-2023-2585")
def test_a_device_code_of_another_client_is_rejected_and_stays_valid(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    thief = make_application(gatebell, bob(gatebell), confidential=False)
    device = codes(gatebell, tv)
    assert_refused(poll(gatebell, thief, device["device_code"]), "invalid_grant")
    approve(browser, gatebell, device["user_code"])
    assert_refused(poll(gatebell, thief, device["device_code"]), "invalid_grant")
    assert poll(gatebell, tv, device["device_code"]).status_code == 200


@pytest.mark.rfc("rfc8628-3.4-b")
def test_a_confidential_client_must_authenticate_at_each_poll(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = make_application(gatebell, bob(gatebell))
    device = codes(gatebell, client, client_secret=client.secret)
    approve(browser, gatebell, device["user_code"])
    assert_refused(poll(gatebell, client, device["device_code"]), "invalid_client", 401)
    answer = poll(gatebell, client, device["device_code"], client_secret=client.secret)
    assert answer.status_code == 200


@pytest.mark.parametrize("state", ["locked", "blocked"])
def test_an_approval_by_a_user_who_was_locked_afterwards_is_rejected(
    gatebell: LiveGatebell, tv: ClientCredentials, state: str
) -> None:
    charlie = make_user(gatebell, name="charlie")
    device = codes(gatebell, tv)
    approve(open_browser(gatebell, charlie), gatebell, device["user_code"])
    set_state(gatebell, charlie, state)
    assert_refused(poll(gatebell, tv, device["device_code"]), "invalid_grant")
    set_state(gatebell, charlie, "active")
    assert_refused(poll(gatebell, tv, device["device_code"]), "invalid_grant")


@pytest.mark.both_databases
def test_a_revocation_before_the_next_poll_ends_the_approval(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell), confidential=False)
    charlie = open_browser(gatebell, make_user(gatebell, name="charlie"))
    first, second = codes(gatebell, client), codes(gatebell, client)
    for device in (first, second):
        approve(charlie, gatebell, device["user_code"])
    token = poll(gatebell, client, first["device_code"]).json()["access_token"]
    page = charlie.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    submit(charlie, page, form_to(page, "/revoke"))
    assert not is_token_valid(gatebell, token)
    assert_refused(poll(gatebell, client, second["device_code"]), "invalid_grant")


@pytest.mark.spec("D3")
def test_a_device_can_revoke_its_token(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    approve(browser, gatebell, device["user_code"])
    token = poll(gatebell, tv, device["device_code"]).json()["access_token"]
    assert revoke(gatebell, tv, token, client_secret=None).status_code == 200
    assert not is_token_valid(gatebell, token)


@pytest.mark.rfc("rfc9700-4.14.2-e")
@pytest.mark.both_databases
def test_a_device_gets_a_refresh_token_only_with_offline_access_or_by_setting(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv, scope="read_user offline_access")
    approve(browser, gatebell, device["user_code"])
    offline = poll(gatebell, tv, device["device_code"]).json()
    assert offline["scope"] == "read_user offline_access"
    renewed = refresh(gatebell, tv, offline["refresh_token"], client_secret=None)
    assert renewed.status_code == 200
    assert renewed.json()["token_type"] == "bearer"

    client = make_application(gatebell, bob(gatebell), confidential=False)
    with database_of(gatebell) as session:
        row = Application.uid == client.client_id
        session.execute(update(Application).where(row).values(refresh_for_devices=True))
    device = codes(gatebell, client)
    approve(browser, gatebell, device["user_code"])
    first = poll(gatebell, client, device["device_code"]).json()["refresh_token"]
    second = refresh(gatebell, client, first, client_secret=None).json()
    # The family of tokens ends if a public client reuses a refresh token.
    age_refreshes(gatebell, timedelta(minutes=1))
    assert_refused(refresh(gatebell, client, first, client_secret=None), "invalid_grant")
    assert not is_token_valid(gatebell, second["access_token"])


def test_a_device_with_the_scope_openid_gets_an_id_token(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = make_application(
        gatebell, bob(gatebell), confidential=False, scopes="openid read_user"
    )
    device = codes(gatebell, client, scope="openid")
    approve(browser, gatebell, device["user_code"])
    assert poll(gatebell, client, device["device_code"]).json()["id_token"].count(".") == 2


@pytest.mark.spec("F1")
def test_the_owner_can_turn_refresh_tokens_for_devices_on_and_off(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = make_application(gatebell, bob(gatebell), confidential=False)
    owner = signed_in(gatebell, bob(gatebell))
    address = f"{gatebell.url}/-/user_settings/applications/{client.id}"
    for wanted in ("y", None):
        page = owner.get(f"{address}/edit")
        form = form_with(page, "redirect_uris")
        scopes = ["read_user", "read_api"]
        submit(owner, page, form, refresh_for_devices=wanted, scopes=scopes, confidential=None)
        assert ("For every grant type" in owner.get(address).text) == bool(wanted)
        device = codes(gatebell, client)
        approve(browser, gatebell, device["user_code"])
        token = poll(gatebell, client, device["device_code"]).json()
        assert ("refresh_token" in token) == bool(wanted)


def test_an_operator_can_turn_on_refresh_tokens_for_devices(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    made = gatebell.cli(
        *("applications", "create", "Telly", "--owner", bob(gatebell).username),
        *("--redirect-uri", CALLBACK, "--scopes", "read_user", "--public"),
        "--refresh-for-devices",
    )
    client = replace(television(gatebell), client_id=made["application_id"])
    device = codes(gatebell, client)
    approve(browser, gatebell, device["user_code"])
    assert "refresh_token" in poll(gatebell, client, device["device_code"]).json()


def expire(gatebell: LiveGatebell, ago: timedelta) -> None:
    """Make all devices expire some time ago, with an interval of 30 seconds."""
    with database_of(gatebell) as session:
        row = {"expires_at": now() - ago, "interval": 30}
        session.execute(update(DeviceAuthorization).values(row))


@pytest.mark.both_databases
def test_a_device_approved_in_the_last_second_gets_its_token_at_the_next_poll(
    gatebell: LiveGatebell,
) -> None:
    telly, browser = television(gatebell), signed_in(gatebell, alice(gatebell))
    served, late, waiting = (codes(gatebell, telly) for _ in range(3))
    approve(browser, gatebell, served["user_code"])
    expire(gatebell, timedelta(seconds=15))
    assert poll(gatebell, telly, served["device_code"]).status_code == 200
    # Devices without approval get no extra time, and neither do polls that are much later.
    assert_refused(poll(gatebell, telly, waiting["device_code"]), "expired_token")
    with database_of(gatebell) as session:
        session.execute(update(DeviceAuthorization).values(expires_at=now() + timedelta(minutes=1)))
    approve(browser, gatebell, late["user_code"])
    expire(gatebell, timedelta(seconds=32))
    assert_refused(poll(gatebell, telly, late["device_code"]), "expired_token")


# Invalid input from devices and users


@pytest.mark.parametrize("value", FEW_NASTY, ids=range(len(FEW_NASTY)))
def test_an_invalid_user_code_is_rejected(
    gatebell: LiveGatebell, browser: requests.Session, value: str
) -> None:
    page = enter_code(browser, gatebell, value)
    assert page.status_code == 422
    assert "<script>alert" not in page.text
    prefilled = browser.get(f"{gatebell.url}/oauth/device", params={"user_code": value})
    assert prefilled.status_code == 200
    assert "<script>alert" not in prefilled.text


@pytest.mark.rfc("rfc8628-5.4-a")
def test_the_user_agent_of_a_device_is_escaped(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    named = gatebell.http()
    address = f"{gatebell.url}/oauth/authorize_device"
    form = {"client_id": tv.client_id, "scope": "read_user"}
    for name in ("<script>alert(1)</script>", "x" * 3000, "{{1234*5678}}"):
        device = named.post(address, data=form, headers={"User-Agent": name}).json()
        page = enter_code(browser, gatebell, device["user_code"])
        assert is_asking(page)
        assert "<script>alert" not in page.text
        assert "7006652" not in words(page) or name != "{{1234*5678}}"


@pytest.mark.rfc("rfc9700-4.9.3-b")
@pytest.mark.rfc("rfc6749-10.3-b")
def test_codes_are_stored_only_as_digests_and_never_logged(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    approve(browser, gatebell, device["user_code"])
    token = poll(gatebell, tv, device["device_code"]).json()["access_token"]
    browser.get(device["verification_uri_complete"])
    log = gatebell.log_text()
    for secret in (device["device_code"], device["user_code"], token):
        assert secret not in log
    with database_of(gatebell) as session:
        row = session.scalars(
            select(DeviceAuthorization).order_by(DeviceAuthorization.id.desc())
        ).first()
        assert row is not None
        kept = repr([getattr(row, column.name) for column in row.__table__.columns])
    assert device["device_code"] not in kept
    assert device["user_code"] not in kept
    assert device["user_code"].replace("-", "") not in kept
