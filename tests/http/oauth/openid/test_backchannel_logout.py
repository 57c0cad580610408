"""Logout notices to applications (OpenID Connect Back-Channel Logout 1.0).

Tests whose names begin with oidcc are named after modules of the certification plan for providers,
`oidcc-backchannel-rp-initiated-logout-certification-test-plan`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
import requests
from sqlalchemy import select, update

from domain.core.clock import read_system_clock
from models import Application, BackchannelSession
from tests.support.accounts.administration import find_user_id, submit_form_by_ending
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    database_of,
    make_application,
    make_user,
    open_browser,
    settings_of,
)
from tests.support.oauth.conformance_wire import supported
from tests.support.oauth.logout_wire import at, end_session
from tests.support.oauth.oauth_wire import (
    machine,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    refresh,
)
from tests.support.oauth.openid_wire import verify_id_token
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.message_receiver import Received, Receiver, running_receiver
from tests.support.wire.html_forms import form_to, form_with, submit
from web.jobs.backchannel_logout import BackchannelLogoutJob

EVENT = "http://schemas.openid.net/event/backchannel-logout"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def gatebell(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service without a worker; the tests run the job."""
    with running(new_service(request.param, only="app")) as service:
        yield service


def send_logout_tokens(gatebell: LiveGatebell, *, later: timedelta = timedelta(0)) -> int:
    """Send the logout tokens that are due, as the background worker does."""
    settings = replace(
        settings_of(gatebell), base_url=gatebell.url, outgoing_private_addresses="127.0.0.0/8"
    )
    with BackchannelLogoutJob(settings, clock=lambda: read_system_clock() + later) as job:
        return job.process_all_due_work()


@pytest.fixture(autouse=True)
def empty_queue(gatebell: LiveGatebell) -> None:
    send_logout_tokens(gatebell, later=timedelta(days=2))


@contextmanager
def application(
    gatebell: LiveGatebell, receiver: Receiver | None = None
) -> Iterator[tuple[ClientCredentials, Receiver]]:
    """Run an application with a back-channel logout URI."""
    told = receiver or Receiver(answer=lambda _request: (200, {}))
    with running_receiver(told):
        client = make_application(
            gatebell,
            bob(gatebell),
            trusted=True,
            scopes="openid read_user",
            backchannel_logout_uri=told.url,
        )
        yield client, told


def sign_in_to(
    gatebell: LiveGatebell, client: ClientCredentials, browser: requests.Session, **more: Any
) -> dict[str, Any]:
    """Sign in to an application and return the claims of the ID token, and the tokens."""
    answer = open_authorization(browser, gatebell, client, scope="openid", **more)
    pair = parse_token_pair(redeem(gatebell, client, parse_redirect(answer)["code"]))
    claims = verify_id_token(gatebell, pair.answer["id_token"]).claims
    return {**claims, "refresh_token": pair.refresh, "id_token": pair.answer["id_token"]}


def token_in(gatebell: LiveGatebell, request: Received) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of the logout token in a request."""
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    token = verify_id_token(gatebell, parse_qs(request.body.decode())["logout_token"][0])
    return token.header, token.claims


def assert_logout_token(gatebell: LiveGatebell, told: Receiver, claims: dict[str, Any]) -> None:
    """Check the only logout token against the claims of the ID token."""
    (request,) = told.received
    assert set(parse_qs(request.body.decode())) == {"logout_token"}
    header, said = token_in(gatebell, request)
    assert header["typ"] == "logout+jwt"
    assert said["events"] == {EVENT: {}}
    same = ("iss", "sub", "aud", "sid")
    assert {name: said[name] for name in same} == {name: claims[name] for name in same}
    assert said["exp"] - said["iat"] == 120
    assert said["jti"]
    assert "nonce" not in said


def sign_out(gatebell: LiveGatebell, browser: requests.Session) -> None:
    page = browser.get(gatebell.url)
    submit(browser, page, form_to(page, "/sign_out"))


@pytest.fixture
def person(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell)


def test_oidcc_backchannel_logout_discovery_endpoint_verification(gatebell: LiveGatebell) -> None:
    found = supported(gatebell)
    assert found["backchannel_logout_supported"] is True
    assert found["backchannel_logout_session_supported"] is True
    assert found["acr_values_supported"] == ["1", "2"]
    assert {"acr", "amr", "sid"} <= set(found["claims_supported"])
    assert found["end_session_endpoint"] == f"{gatebell.url}/oauth/logout"


@pytest.mark.long
def test_oidcc_backchannel_rp_initiated_logout(gatebell: LiveGatebell, person: Person) -> None:
    browser = open_browser(gatebell, person)
    with application(gatebell) as (client, told):
        claims = sign_in_to(gatebell, client, browser)
        asked = {
            "id_token_hint": claims["id_token"],
            "post_logout_redirect_uri": client.redirect_uri,
            "state": "s",
        }
        answer = at(browser, end_session(gatebell, **asked))
        assert answer.headers["Location"] == f"{client.redirect_uri}?state=s"
        assert send_logout_tokens(gatebell) == 1
        assert_logout_token(gatebell, told, claims)
        silent = open_authorization(browser, gatebell, client, scope="openid", prompt="none")
        assert parse_redirect(silent)["error"] == "login_required"


@pytest.mark.long
def test_a_sign_out_sends_a_logout_token_with_the_session_of_the_id_token(
    gatebell: LiveGatebell, person: Person
) -> None:
    browser, other = open_browser(gatebell, person), open_browser(gatebell, person)
    with application(gatebell) as (client, told):
        claims = sign_in_to(gatebell, client, browser)
        again = sign_in_to(gatebell, client, browser)
        elsewhere = sign_in_to(gatebell, client, other)
        assert claims["sid"] == again["sid"] != elsewhere["sid"]
        renewed = refresh(gatebell, client, claims["refresh_token"]).json()["id_token"]
        assert verify_id_token(gatebell, renewed).claims["sid"] == claims["sid"]
        assert send_logout_tokens(gatebell) == 0
        sign_out(gatebell, browser)
        assert send_logout_tokens(gatebell) == 1
        assert_logout_token(gatebell, told, claims)
        assert send_logout_tokens(gatebell) == 0


@pytest.mark.long
@pytest.mark.parametrize("way", ["lock", "password", "other browsers"])
def test_locks_and_password_resets_also_send_logout_tokens(
    gatebell: LiveGatebell, way: str
) -> None:
    person = make_user(gatebell)
    browser = open_browser(gatebell, person)
    with application(gatebell) as (client, told):
        sid = sign_in_to(gatebell, client, browser)["sid"]
        if way == "lock":
            submit_form_by_ending(
                gatebell, f"/admin/users/{find_user_id(gatebell, person)}", "/lock"
            )
        elif way == "password":
            submit_form_by_ending(
                gatebell, f"/admin/users/{find_user_id(gatebell, person)}", "/reset_password"
            )
        else:
            second = open_browser(gatebell, person)
            page = second.get(f"{gatebell.url}/-/user_settings/activity")
            submit(second, page, form_to(page, "/end_others"))
        assert send_logout_tokens(gatebell) == 1
        assert token_in(gatebell, told.received[0])[1]["sid"] == sid


@pytest.mark.long
def test_a_failed_logout_token_is_retried_once_it_is_due(
    gatebell: LiveGatebell, person: Person
) -> None:
    statuses = [200, 503]
    away = Receiver(answer=lambda _request: (statuses.pop(), {}))
    browser = open_browser(gatebell, person)
    with application(gatebell, away) as (client, told):
        sign_in_to(gatebell, client, browser)
        sign_out(gatebell, browser)
        assert send_logout_tokens(gatebell) == 1
        assert send_logout_tokens(gatebell) == 0
        assert send_logout_tokens(gatebell, later=timedelta(minutes=1)) == 1
        assert (len(told.received), statuses) == (1, [])
        assert send_logout_tokens(gatebell, later=timedelta(days=1)) == 0


@pytest.mark.long
def test_logout_tokens_are_dropped_after_eight_attempts(
    gatebell: LiveGatebell, person: Person
) -> None:
    browser = open_browser(gatebell, person)
    with application(gatebell) as (client, _):
        sign_in_to(gatebell, client, browser)
    sign_out(gatebell, browser)
    later, count = timedelta(0), 0
    while send_logout_tokens(gatebell, later=later):
        later, count = later + timedelta(hours=3), count + 1
    assert count == 8
    with database_of(gatebell) as session:
        mine = BackchannelSession.application_id == client.id
        assert session.scalars(select(BackchannelSession).where(mine)).all() == []


@pytest.mark.long
def test_a_failing_application_does_not_delay_other_applications(
    gatebell: LiveGatebell, person: Person
) -> None:
    asked = []

    def fail(request: Received) -> tuple[int, dict[str, str]]:
        asked.append(request)
        return 500, {}

    broken = Receiver(answer=fail)
    browsers = [open_browser(gatebell, person) for _ in range(3)]
    with application(gatebell, broken) as (first, _), application(gatebell) as (second, heard):
        for browser in browsers:
            sign_in_to(gatebell, first, browser)
            sign_in_to(gatebell, second, browser)
            sign_out(gatebell, browser)
        send_logout_tokens(gatebell)
        assert (len(asked), len(heard.received)) == (1, 3)


@pytest.mark.parametrize("is_claim_lost", [True, False])
def test_the_claim_and_the_url_are_checked_before_each_notification(
    gatebell: LiveGatebell,
    person: Person,
    is_claim_lost: bool,  # noqa: FBT001
) -> None:
    def change(_request: Received) -> tuple[int, dict[str, str]]:
        with database_of(gatebell) as session:
            if is_claim_lost:  # as if another worker had claimed the remaining sign-ins
                session.execute(update(BackchannelSession).values(tries=2))
            else:
                session.execute(update(Application).values(backchannel_logout_uri=None))
            session.commit()
        return 200, {}

    browsers = [open_browser(gatebell, person) for _ in range(2)]
    with application(gatebell, Receiver(answer=change)) as (client, told):
        for browser in browsers:
            sign_in_to(gatebell, client, browser)
            sign_out(gatebell, browser)
        assert send_logout_tokens(gatebell) == 2
        assert len(told.received) == 1
    with database_of(gatebell) as session:
        mine = BackchannelSession.application_id == client.id
        left = session.scalars(select(BackchannelSession).where(mine)).all()
        assert len(left) == is_claim_lost


@pytest.mark.long
def test_a_later_sign_out_does_not_shorten_the_backoff(
    gatebell: LiveGatebell, person: Person
) -> None:
    first, second = open_browser(gatebell, person), open_browser(gatebell, person)
    with application(gatebell, Receiver(answer=lambda _request: (500, {}))) as (client, _):
        sign_in_to(gatebell, client, first)
        sign_in_to(gatebell, client, second)
        sign_out(gatebell, first)
        assert send_logout_tokens(gatebell) == 1
        # The next retry is after 185 seconds.
        assert send_logout_tokens(gatebell, later=timedelta(seconds=65)) == 1
        sign_out(gatebell, second)
        # The next retry is after 150 seconds.
        assert send_logout_tokens(gatebell, later=timedelta(seconds=90)) == 1
        assert send_logout_tokens(gatebell, later=timedelta(seconds=155)) == 1


@pytest.mark.long
def test_signing_in_again_in_the_same_browser_sends_no_logout_token(
    gatebell: LiveGatebell, person: Person
) -> None:
    browser = open_browser(gatebell, person)
    with application(gatebell) as (client, told):
        before = sign_in_to(gatebell, client, browser)["sid"]
        page = browser.get(f"{gatebell.url}/users/sign_in?again=yes")
        form = form_with(page, "password")
        names = {"login": person.username} if "login" in page.text else {}
        assert submit(browser, page, form, **names, password=person.password).is_redirect
        after = sign_in_to(gatebell, client, browser)["sid"]
        assert send_logout_tokens(gatebell) == 0
        sign_out(gatebell, browser)
        assert send_logout_tokens(gatebell) == 2
        heard = {token_in(gatebell, each)[1]["sid"] for each in told.received}
        assert heard == {before, after}


@pytest.mark.long
def test_applications_without_id_token_or_logout_uri_get_no_logout_token(
    gatebell: LiveGatebell, person: Person
) -> None:
    browser = open_browser(gatebell, person)
    with application(gatebell) as (client, told):
        open_authorization(browser, gatebell, client, scope="read_user")
        silent = make_application(gatebell, bob(gatebell), trusted=True, scopes="openid")
        assert sign_in_to(gatebell, silent, browser)["sid"]
        sign_out(gatebell, browser)
        assert send_logout_tokens(gatebell) == 0
        assert told.received == []


@pytest.mark.long
def test_a_removed_logout_uri_gets_no_logout_token(gatebell: LiveGatebell, person: Person) -> None:
    browser = open_browser(gatebell, person)
    with application(gatebell) as (client, told):
        sign_in_to(gatebell, client, browser)
        with database_of(gatebell) as session:
            mine = update(Application).where(Application.id == client.id)
            session.execute(mine.values(backchannel_logout_uri=None))
        sign_out(gatebell, browser)
        assert send_logout_tokens(gatebell) == 1
        assert send_logout_tokens(gatebell, later=timedelta(hours=1)) == 0
        assert told.received == []


@pytest.mark.long
@pytest.mark.advisory("CVE-2026-4874")
def test_private_addresses_get_no_logout_token(gatebell: LiveGatebell, person: Person) -> None:
    browser = open_browser(gatebell, person)
    with application(gatebell) as (client, told):
        sign_in_to(gatebell, client, browser)
        sign_out(gatebell, browser)
        settings = replace(settings_of(gatebell), outgoing_private_addresses="")
        with BackchannelLogoutJob(settings) as job:
            assert job.process_all_due_work() == 1
        assert told.received == []


@pytest.mark.long
def test_a_logout_token_is_rejected_as_an_id_token_hint(
    gatebell: LiveGatebell, person: Person
) -> None:
    browser = open_browser(gatebell, person)
    with application(gatebell) as (client, told):
        sign_in_to(gatebell, client, browser)
        sign_out(gatebell, browser)
        send_logout_tokens(gatebell)
        text = parse_qs(told.received[0].body.decode())["logout_token"][0]
    answer = machine(gatebell).get(f"{gatebell.url}/oauth/logout", params={"id_token_hint": text})
    assert answer.status_code == 400


@pytest.mark.long
def test_the_id_token_contains_the_method_of_the_sign_in(
    gatebell: LiveGatebell, person: Person
) -> None:
    with application(gatebell) as (client, _):
        claims = sign_in_to(gatebell, client, open_browser(gatebell, person))
    assert (claims["amr"], claims["acr"]) == (["pwd"], "1")
