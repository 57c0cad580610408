"""Tests of the setup status of an application, and of the reasons of failed requests."""

import re
from datetime import timedelta
from html import unescape

import pytest
import requests
from sqlalchemy import func, select

from models import Application, RejectedOAuthRequest
from tests.faults.processes import wait_until
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.device_wire import codes, poll, television
from tests.support.oauth.oauth_wire import (
    PKCE,
    age_refreshes,
    machine,
    new_code,
    new_pair,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    redeem,
    refresh,
    server_application,
    submit_decision,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

PAGES = "/-/user_settings/applications"
_AN_HOUR = timedelta(hours=1)
#: The current time on pages.
_NOW = r"\d\d:\d\d \(just now\)"


def words(page: requests.Response) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


def setup_of(gatebell: LiveGatebell, client: ClientCredentials, person: Person) -> str:
    """Return the status that the page of the application polls."""
    page = open_browser(gatebell, person).get(f"{gatebell.url}{PAGES}/{client.id}/setup")
    assert page.status_code == 200
    assert "<html" not in page.text
    return words(page)


def reasons_of(gatebell: LiveGatebell, client: ClientCredentials, token: str) -> list[str]:
    """Return the reasons from the API, newest first."""
    answer = requests.get(
        f"{gatebell.url}/api/v4/applications/{client.id}/refused_requests",
        headers={"PRIVATE-TOKEN": token},
        timeout=20,
    )
    assert answer.status_code == 200, answer.text
    return [each["reason"] for each in answer.json()]


@pytest.mark.parametrize(("scope", "is_told"), [("read_user openid", False), ("read_api", True)])
def test_administrators_see_a_warning_if_the_access_is_broad(
    gatebell: LiveGatebell, scope: str, *, is_told: bool
) -> None:
    admin = make_user(gatebell, admin=True)
    client = make_application(gatebell, admin, scopes=scope)
    page = open_authorization(open_browser(gatebell, admin), gatebell, client, scope=scope)
    assert "It will be able to" in words(page)
    assert ("You are an administrator." in words(page)) is is_told


@pytest.mark.both_databases
def test_the_page_waits_for_the_first_authorization_and_names_the_user(
    gatebell: LiveGatebell,
) -> None:
    owner, user = make_user(gatebell, name="owner"), make_user(gatebell)
    client = make_application(gatebell, owner, scopes="read_user")
    assert "Waiting for the first authorization" in setup_of(gatebell, client, owner)

    assert "Guides that show this application ID" in setup_of(gatebell, client, owner)

    browser = open_browser(gatebell, user)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, client)))[
        "code"
    ]
    waiting = setup_of(gatebell, client, owner)
    assert f"(just now) by {user.username} , waiting for the token request" in waiting

    parse_token_pair(redeem(gatebell, client, code))
    works = setup_of(gatebell, client, owner)
    assert re.search(rf"It works: first authorized {_NOW} by {user.username}", works)
    page = open_browser(gatebell, owner).get(f"{gatebell.url}{PAGES}/{client.id}")
    assert re.search(f"It works: first authorized {_NOW}", words(page))
    stranger = open_browser(gatebell, user).get(f"{gatebell.url}{PAGES}/{client.id}/setup")
    assert stranger.status_code == 404


def test_the_owner_sees_no_names_that_the_application_cannot_read(gatebell: LiveGatebell) -> None:
    owner, user = make_user(gatebell, name="owner"), make_user(gatebell)
    client = make_application(gatebell, owner, scopes="read_alerts")
    browser = open_browser(gatebell, user)
    parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, client)))
    assert "by a user" in setup_of(gatebell, client, owner)
    assert user.username not in setup_of(gatebell, client, owner)


@pytest.mark.both_databases
def test_the_owner_sees_why_token_requests_were_rejected(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client = make_application(gatebell, owner)
    token = make_token(gatebell, owner).clear
    user = signed_in(gatebell, alice(gatebell))
    # Alice sees no consent page for later requests.
    parse_redirect(submit_decision(user, open_authorization(user, gatebell, client)))

    redeem(gatebell, client, "x", client_secret="wrong")
    redeem(gatebell, client, "x", client_secret=None)
    redeem(gatebell, client, "x")
    redeem(gatebell, client, new_code(gatebell, client), redirect_uri="https://other.example/")
    code = new_code(gatebell, client, **PKCE)
    redeem(gatebell, client, code, code_verifier="w" * 43)
    redeem(gatebell, client, code)
    pair = new_pair(gatebell, client)
    refresh(gatebell, client, pair.refresh)
    age_refreshes(gatebell, by=_AN_HOUR)
    refresh(gatebell, client, pair.refresh)
    post_token(gatebell, {"grant_type": "implicit", "client_id": client.client_id})

    assert reasons_of(gatebell, client, token) == [
        *("grant_type", "reused_refresh_token", "missing_verifier", "wrong_verifier"),
        *("other_redirect_uri", "unknown_code", "no_secret", "wrong_secret"),
    ]
    seen = setup_of(gatebell, client, owner)
    assert "Refresh token used twice refresh_token invalid_grant Each refresh" in seen
    assert "Wrong client secret authorization_code invalid_client Check the secret" in seen
    assert "Unsupported grant type implicit" in seen
    assert "127.0.0.1" in seen


@pytest.mark.both_databases
def test_the_owner_sees_why_authorization_requests_were_rejected(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client = make_application(gatebell, owner, scopes="read_user", require_pkce=True)
    token, browser = make_token(gatebell, owner).clear, open_browser(gatebell, owner)
    wrong = "https://client.example/other?tenant=secret"
    for parameters in (
        {"redirect_uri": wrong},
        {"redirect_uri": None},
        {"response_type": "token"},
        {"scope": "read_user nonsense"},
        {},
        {"code_challenge": "x" * 43},  # The default method is `plain`.
        {"code_challenge": "x" * 42, "code_challenge_method": "S256"},
        {"request_uri": "urn:ietf:params:oauth:request_uri:old"},
    ):
        open_authorization(browser, gatebell, client, **parameters)
    # Silent requests and canceled requests are not recorded.
    open_authorization(machine(gatebell), gatebell, client, prompt="none", **PKCE)
    submit_decision(browser, open_authorization(browser, gatebell, client, **PKCE), decision="deny")
    found = requests.get(
        f"{gatebell.url}/api/v4/applications/{client.id}/refused_requests",
        headers={"PRIVATE-TOKEN": token},
        timeout=20,
    ).json()
    assert [each["reason"] for each in found] == [
        *("request_uri", "request", "challenge_method", "missing_challenge", "scope"),
        *("response_type", "request", "unregistered_redirect_uri"),
    ]
    assert {(each["request"], each["ip_address"]) for each in found} == {("authorization", None)}
    assert found[-1]["redirect_uri"] == "https://client.example/other?tenant=…"
    seen = setup_of(gatebell, client, owner)
    registered = "Sent https://client.example/other?tenant=… Registered https://client.example/"
    assert f"{registered}callback a Python program" in seen
    assert "Unknown scope: nonsense." in seen


def test_only_the_owner_and_administrators_can_read_rejected_requests_in_the_api(
    gatebell: LiveGatebell,
) -> None:
    client = make_application(gatebell, bob(gatebell))
    redeem(gatebell, client, "x", client_secret="wrong")
    address = f"{gatebell.url}/api/v4/applications/{client.id}/refused_requests"

    def asked(person: Person, path: str = address) -> requests.Response:
        headers = {"PRIVATE-TOKEN": make_token(gatebell, person).clear, "Accept": "*/*"}
        return requests.get(path, headers=headers, timeout=20)

    assert asked(alice(gatebell)).status_code == 404
    mine = asked(bob(gatebell)).json()
    assert [(each["reason"], each["error"], each["request"]) for each in mine] == [
        ("wrong_secret", "invalid_client", "authorization_code")
    ]
    assert "python-requests" in mine[0]["user_agent"]
    assert asked(make_user(gatebell, admin=True)).json() == mine
    assert asked(bob(gatebell), f"{address}?status=x").status_code == 400


def test_repeated_rejections_are_counted_and_do_not_hide_others(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client, other = make_application(gatebell, owner), make_application(gatebell, owner)
    token = make_token(gatebell, owner).clear
    redeem(gatebell, client, "x")
    for _ in range(40):
        redeem(gatebell, client, "x", client_secret="wrong")
    found = reasons_of(gatebell, client, token)
    assert "unknown_code" in found
    assert 1 <= found.count("wrong_secret") <= 10
    assert reasons_of(gatebell, other, token) == []

    def is_counted() -> bool:
        # A rejected request is sent once a second.
        redeem(gatebell, client, "x", client_secret="wrong")
        with database_of(gatebell) as session:
            rows, similar = session.execute(
                select(func.count(), func.sum(RejectedOAuthRequest.skipped)).where(
                    RejectedOAuthRequest.application_id == client.id,
                    RejectedOAuthRequest.reason == "wrong_secret",
                )
            ).one()
        assert rows <= 10
        return bool(similar > 0)

    wait_until(is_counted)


def test_the_polled_part_of_a_page_keeps_the_chosen_day(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client = make_application(gatebell, owner)
    redeem(gatebell, client, "x")
    browser = open_browser(gatebell, owner)
    address = f"{PAGES}/{client.id}"
    page = browser.get(f"{gatebell.url}{address}?day=2026-01-01").text
    (watched,) = re.findall(r'data-watch="([^"]+)"', page)
    part = browser.get(gatebell.url + unescape(watched))
    assert "No requests of 1 Jan 2026 (UTC)." in words(part)
    assert f'href="{address}?day=2026-01-01">Check again' in part.text
    assert browser.get(f"{gatebell.url}{address}/setup?day=x").status_code == 400
    assert "The latest rejected requests" in setup_of(gatebell, client, owner)


def test_unknown_clients_and_waiting_devices_are_not_recorded(gatebell: LiveGatebell) -> None:
    client = television(gatebell)
    device_code = codes(gatebell, client)["device_code"]
    before = _rows(gatebell)
    for _ in range(2):
        waiting = poll(gatebell, client, device_code).json()["error"]
        assert waiting in {"authorization_pending", "slow_down"}
    redeem(gatebell, server_application(gatebell), "x", client_id="nobody")
    post_token(gatebell, {"grant_type": "implicit", "client_id": "no\0body"})
    post_token(gatebell, {"grant_type": "nonsense"})
    assert _rows(gatebell) == before


def test_every_endpoint_has_a_copy_button(
    gatebell: LiveGatebell, client: ClientCredentials, browser: requests.Session
) -> None:
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}").text.replace("<wbr>", "")
    urls = dict(re.findall(r'<code id="url-([\w-]+)">([^<]+)</code>', page))
    assert urls.keys() == set(re.findall(r'data-copy="url-([\w-]+)"', page))
    assert urls["issuer"] == gatebell.url
    metadata = browser.get(urls["openid-configuration"]).json()
    assert browser.get(urls["oauth-authorization-server"]).json()["issuer"] == gatebell.url
    for name in ("authorization", "token", "userinfo", "introspection", "revocation"):
        assert urls[f"{name}_endpoint"] == metadata[f"{name}_endpoint"]
    assert {"end_session_endpoint", "device_authorization_endpoint", "jwks_uri"} <= urls.keys()
    for url in urls.values():
        if url != gatebell.url:
            assert browser.get(url, allow_redirects=False).status_code != 404, url


def test_rejected_requests_are_deleted_with_their_application(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client = make_application(gatebell, owner)
    redeem(gatebell, client, "x", client_secret="wrong")
    with database_of(gatebell) as session:
        session.delete(session.get_one(Application, client.id))
        session.flush()
        left = session.scalar(
            select(func.count()).where(RejectedOAuthRequest.application_id == client.id)
        )
    assert left == 0


def _rows(gatebell: LiveGatebell) -> int:
    with database_of(gatebell) as session:
        return session.scalar(select(func.count()).select_from(RejectedOAuthRequest)) or 0
