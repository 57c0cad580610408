"""Tests of authorization requests in URLs and in forms, and of descriptions of errors."""

import re
from urllib.parse import urljoin

import pytest
import requests

from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    make_application,
    open_browser,
)
from tests.support.oauth.oauth_wire import (
    PKCE,
    Changes,
    assert_refused_on_a_page,
    authorization_url,
    changed,
    machine,
    open_and_follow,
    open_authorization,
    parse_redirect,
    phone_application,
    server_application,
    submit_decision,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

#: Characters that RFC 6749 section 4.1.2.1 allows, without quotes and backslashes.
FIT_FOR_A_DESCRIPTION = re.compile(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+")
OPTIONAL = (
    *("state", "response_mode", "code_challenge", "code_challenge_method", "prompt", "max_age"),
    *("nonce", "login_hint", "id_token_hint", "request", "request_uri"),
)


@pytest.mark.rfc("rfc6749-3.1-d")
@pytest.mark.parametrize("name", OPTIONAL)
def test_a_parameter_without_a_value_is_ignored(
    gatebell: LiveGatebell, browser: requests.Session, name: str
) -> None:
    answer = open_authorization(browser, gatebell, server_application(gatebell), **{name: ""})
    assert "code" in parse_redirect(answer)


@pytest.mark.rfc("rfc6749-4.1.2.1-g")
@pytest.mark.parametrize("name", ["response_type", "scope", "prompt", "max_age", "response_mode"])
@pytest.mark.parametrize("value", ['a"b', "a\\b", "\u202e", "\x7f", "é" * 20, "a\nb"])
def test_an_error_description_contains_only_allowed_characters(
    gatebell: LiveGatebell, browser: requests.Session, name: str, value: str
) -> None:
    brought = parse_redirect(
        open_authorization(browser, gatebell, server_application(gatebell), **{name: value})
    )
    assert FIT_FOR_A_DESCRIPTION.fullmatch(brought["error_description"])
    assert FIT_FOR_A_DESCRIPTION.fullmatch(brought["error"])


@pytest.mark.rfc("rfc6749-4.1.2-b")
def test_the_lifetime_of_codes_is_at_most_ten_minutes(gatebell: LiveGatebell) -> None:
    name = "authorization_code_lifetime_seconds"
    refused = gatebell.run_cli("settings", "set", name, "601")
    assert refused.returncode == 1
    assert "600" in refused.stderr


@pytest.mark.rfc("rfc9700-2.1-e")
@pytest.mark.rfc("rfc9700-4.12-a")
def test_forms_are_not_redirected_with_their_body(gatebell: LiveGatebell) -> None:
    # With 307 and 308, browsers would send the password or the decision to the application.
    browser = open_browser(gatebell, alice(gatebell))
    page = open_authorization(gatebell.http(), gatebell, server_application(gatebell))
    form = form_with(page, "password")
    person = alice(gatebell)
    answers = [
        submit(gatebell.http(), page, form, login=person.username, password=person.password),
        submit(gatebell.http(), page, form, login=person.username, password="wrong"),
    ]
    client = make_application(gatebell, bob(gatebell))
    answers += [
        submit_decision(browser, open_authorization(browser, gatebell, client), decision)
        for decision in ("cancel", "authorize")
    ]
    for answer in answers:
        assert answer.status_code not in {307, 308}
    assert {answer.status_code for answer in answers[2:]} == {302}


# POST /oauth/authorize (OpenID Connect Core section 3.1.2.1)


def posted(
    gatebell: LiveGatebell, client: ClientCredentials, **changes: Changes
) -> requests.Response:
    """Send the form from another site, so that the browser sends no cookies."""
    form = {
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uri,
        "response_type": "code",
        "scope": client.scopes,
    }
    address = f"{gatebell.url}/oauth/authorize"
    body = changed(form, changes)
    return machine(gatebell).post(address, data=body, allow_redirects=False)


def followed(browser: requests.Session, answer: requests.Response) -> requests.Response:
    """Follow the redirect in a browser, which sends its cookies."""
    assert answer.status_code == 303
    return open_and_follow(browser, urljoin(answer.url, answer.headers["Location"]))


@pytest.mark.rfc("oidc-core-3.1.2.1-a")
@pytest.mark.parametrize("state", ["s", "a=b&c d+e%20f", "é☃\u202e", "\r\nX-Injected: y", None])
def test_a_form_works_like_a_url(
    gatebell: LiveGatebell, browser: requests.Session, state: str | None
) -> None:
    answer = posted(gatebell, phone_application(gatebell), state=state, **PKCE)
    brought = parse_redirect(followed(browser, answer))
    assert brought["code"]
    assert brought.get("state") == state


def test_an_error_in_a_form_is_handled_like_an_error_in_a_url(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = server_application(gatebell)
    twice = posted(gatebell, client, scope=["read_user", "read_user"], state="s")
    brought = parse_redirect(followed(browser, twice))
    assert (brought["error"], brought["state"]) == ("invalid_request", "s")
    elsewhere = posted(gatebell, client, redirect_uri="https://evil.example/")
    assert_refused_on_a_page(followed(browser, elsewhere))
    assert_refused_on_a_page(followed(browser, posted(gatebell, client, client_id=None)))


def test_a_form_redirects_only_to_the_authorization_endpoint(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    answer = posted(gatebell, client, next="https://evil.example/", request="x")
    assert answer.headers["Location"].startswith("/oauth/authorize?")
    assert "Set-Cookie" not in answer.headers


def test_a_state_that_is_not_utf_8_is_rejected_on_a_page(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = server_application(gatebell)
    url = authorization_url(gatebell, client, state="s")
    page = open_and_follow(browser, f"{url}&state=%FF")
    assert_refused_on_a_page(page)
    assert "The parameter state is not UTF-8" in page.text
    form = "client_id=x&state=%FF"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for path in ("authorize", "par"):
        answer = machine(gatebell).post(
            f"{gatebell.url}/oauth/{path}", data=form, headers=headers, allow_redirects=False
        )
        assert (answer.status_code, "is not UTF-8" in answer.text) == (400, True)


def test_a_form_that_is_too_long_for_a_url_is_kept(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    state = "x" * 9_000
    answer = posted(gatebell, server_application(gatebell), state=state)
    assert len(answer.headers["Location"]) < 200
    assert parse_redirect(followed(browser, answer))["state"] == state


@pytest.mark.parametrize("length", [20_000, 40_000])
def test_a_state_that_is_too_long_for_a_response_is_rejected_on_a_page(
    gatebell: LiveGatebell, browser: requests.Session, length: int
) -> None:
    answer = posted(gatebell, server_application(gatebell), state="x" * length)
    page = followed(browser, answer) if answer.status_code == 303 else answer
    assert_refused_on_a_page(page)
    assert "too long" in page.text


@pytest.mark.rfc("rfc6749-10.12-a")
def test_a_form_of_another_site_cannot_decide(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = make_application(gatebell, bob(gatebell))
    page = open_authorization(browser, gatebell, client)
    ticket = form_with(page, "decision").value("request")
    # This holds even with a stolen ticket and with the cookie, which SameSite would omit.
    yes = {"decision": "authorize", "request": ticket}
    asked = browser.post(f"{gatebell.url}/oauth/authorize", data=yes, allow_redirects=False)
    assert_refused_on_a_page(followed(browser, asked))
    decided = browser.post(
        f"{gatebell.url}/oauth/authorize/decision", data=yes, allow_redirects=False
    )
    assert 'name="decision"' in followed(browser, decided).text
    assert "code" in parse_redirect(submit_decision(browser, page))
