"""Texts and formats of errors: they name the parameter, the scope and the reason."""

import re
from datetime import timedelta
from urllib.parse import urljoin

import pytest
import requests
from sqlalchemy import update

from domain.oauth.error_help import OAUTH_ERRORS
from models import Authorization
from tests.support.accounts.people import alice, bob, database_of, make_application, now, signed_in
from tests.support.oauth.device_wire import codes, poll, request_device_codes, television
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    age_refreshes,
    assert_refused,
    machine,
    new_code,
    new_pair,
    new_public_pair,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    phone_application,
    post_token,
    redeem,
    redeem_publicly,
    refresh,
    revoke,
    server_application,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

ENDPOINTS = ("token", "revoke", "introspect", "authorize_device", "par")


def reason(answer: requests.Response) -> str:
    text: str = answer.json()["error_description"]
    return text


def test_the_error_names_a_missing_client_id(gatebell: LiveGatebell) -> None:
    form = {"grant_type": "refresh_token", "refresh_token": "x", "token": "x", "scope": "api"}
    for endpoint in ENDPOINTS:
        answer = machine(gatebell).post(f"{gatebell.url}/oauth/{endpoint}", data=form)
        assert_refused(answer, "invalid_client", 401)
        assert "client_id is missing" in reason(answer), endpoint


def test_the_authorization_page_names_a_missing_client_id(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    answer = open_authorization(browser, gatebell, server_application(gatebell), client_id=None)
    assert answer.status_code == 400
    assert "Missing required parameter: client_id." in answer.text
    assert "No application with this client_id" not in answer.text


def test_rejected_scopes_are_named(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell), scopes="read_user")
    browser = signed_in(gatebell, alice(gatebell))
    brought = parse_redirect(
        open_authorization(browser, gatebell, client, scope="read_user api read_api")
    )
    assert "not registered for the scope: api, read_api." in brought["error_description"]
    brought = parse_redirect(
        open_authorization(browser, gatebell, client, scope='read_user b"ad\\ wörse')
    )
    assert "Unknown scope: b?ad?, w?rse." in brought["error_description"]
    device = request_device_codes(gatebell, television(gatebell), scope="api nonsense")
    assert_refused(device, "invalid_scope")
    assert "Unknown scope: nonsense." in reason(device)
    password = {"grant_type": "password", "username": "x", "password": "x", "scope": "nonsense"}
    assert "nonsense" in reason(post_token(gatebell, password))
    pair = new_pair(gatebell, client, scope="read_user")
    narrow = refresh(gatebell, client, pair.refresh, scope="read_user api")
    assert "not granted the scope: api." in reason(narrow)


def test_the_error_explains_why_a_code_is_invalid(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    elsewhere = redeem(gatebell, client, new_code(gatebell, client), redirect_uri="https://x.y/")
    assert_refused(elsewhere, "invalid_grant")
    assert "redirect_uri does not match the authorization request" in reason(elsewhere)

    phone = phone_application(gatebell)
    other = redeem_publicly(
        gatebell, phone, new_code(gatebell, phone, **PKCE), code_verifier="x" * 43
    )
    assert "code_verifier does not match" in reason(other)

    code = new_code(gatebell, client)
    parse_token_pair(redeem(gatebell, client, code))
    assert "already been used, and its tokens are revoked" in reason(redeem(gatebell, client, code))
    # The first reuse already revoked the tokens of the code.
    assert reason(redeem(gatebell, client, code)) == "The authorization code has already been used."

    code = new_code(gatebell, client)
    with database_of(gatebell) as session:
        session.execute(update(Authorization).values(code_expires_at=now() - timedelta(hours=1)))
    assert "expired" in reason(redeem(gatebell, client, code))


def test_errors_for_foreign_credentials_and_unknown_ones_are_equal(gatebell: LiveGatebell) -> None:
    client, thief = server_application(gatebell), make_application(gatebell, bob(gatebell))
    stolen = reason(redeem(gatebell, thief, new_code(gatebell, client)))
    assert stolen == reason(redeem(gatebell, thief, "gbc-made-up"))
    pair = new_pair(gatebell, client)
    taken = reason(refresh(gatebell, thief, pair.refresh))
    assert taken == reason(refresh(gatebell, thief, "gbr-made-up"))
    device = codes(gatebell, television(gatebell))["device_code"]
    assert reason(poll(gatebell, thief, device, client_secret=thief.secret)) == reason(
        poll(gatebell, thief, "0" * 64, client_secret=thief.secret)
    )


def test_the_error_explains_why_a_refresh_token_is_invalid(gatebell: LiveGatebell) -> None:
    client, phone = server_application(gatebell), phone_application(gatebell)
    pair = new_pair(gatebell, client)
    revoke(gatebell, client, pair.access)
    assert reason(refresh(gatebell, client, pair.refresh)) == "The refresh token was revoked."
    kept, public = new_pair(gatebell, client), new_public_pair(gatebell, phone)
    refresh(gatebell, client, kept.refresh)
    refresh(gatebell, phone, public.refresh, client_secret=None)
    age_refreshes(gatebell, timedelta(minutes=1))
    used = refresh(gatebell, client, kept.refresh)
    assert reason(used) == "The refresh token has already been used."
    stolen = refresh(gatebell, phone, public.refresh, client_secret=None)
    assert "all tokens of the same authorization are revoked" in reason(stolen)


@pytest.mark.rfc("rfc9126-2.3-b")
def test_errors_of_wrong_urls_and_methods_show_the_correct_request(gatebell: LiveGatebell) -> None:
    for name in ENDPOINTS:
        address = f"{gatebell.url}/oauth/{name}"
        slash = machine(gatebell).post(f"{address}/", data={})
        assert slash.status_code == 404
        assert reason(slash).endswith(f"Remove the trailing slash: {address}")
        got = machine(gatebell).get(address)
        assert (got.status_code, got.json()["error"]) == (405, "invalid_request")
        assert "POST" in got.headers["Allow"]
        assert reason(got) == f"Send a POST to {address} with the parameters in the body."


def test_every_error_links_to_its_explanation(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    answers = [
        redeem(gatebell, client, "x"),
        redeem(gatebell, client, "x", client_secret="x"),
        post_token(gatebell, {"grant_type": "x"}),
        post_token(gatebell, {}),
        poll(gatebell, television(gatebell), codes(gatebell, television(gatebell))["device_code"]),
        machine(gatebell).get(f"{gatebell.url}/oauth/userinfo"),
        machine(gatebell).get(f"{gatebell.url}/oauth/token/info"),
    ]
    for answer in answers:
        body = answer.json()
        assert body["request_id"] == answer.headers["X-Request-Id"]
        page = machine(gatebell).get(body["error_uri"])
        assert page.status_code == 200
        assert f'id="{body["error"]}"' in page.text
        assert urljoin(gatebell.url, "/help/errors") == body["error_uri"].partition("#")[0]


def test_the_error_codes_of_the_page_are_valid_and_unique() -> None:
    known = {each.code for each in OAUTH_ERRORS}
    assert len(known) == len(OAUTH_ERRORS)
    assert all(re.fullmatch(r"[a-z_]+", code) for code in known)
    assert {"invalid_request", "server_error", "slow_down", "invalid_dpop_proof"} <= known


def test_missing_and_wrong_verifiers_are_named(gatebell: LiveGatebell) -> None:
    phone = phone_application(gatebell)
    for verifier in (VERIFIER + "x", None):
        code = new_code(gatebell, phone, **PKCE)
        refused = redeem_publicly(gatebell, phone, code, code_verifier=verifier)
        assert "code_verifier" in reason(refused), verifier


# Error formats: set by the view, or by neighboring views where no view matches.


PAGE, MESSAGE, OAUTH, TEXT = "a page", "a message", "an OAuth error", "a sentence"
#: Methods and URLs that fail, mostly because no view accepts the combination.
FAILURES = (
    ("GET", "/there/is.nothing/-/here", PAGE),
    ("PUT", "/users/sign_in", PAGE),
    ("POST", "/users/password", PAGE),  # The request lacks the form's token.
    ("POST", "/users/sign_in/passkey.json", MESSAGE),
    ("GET", "/users/sign_in/passkey.json", MESSAGE),
    ("GET", "/acme/shop.json", MESSAGE),
    ("POST", "/acme/shop/alerts/notify.json", MESSAGE),
    ("GET", "/acme/shop/alerts/notify.json", MESSAGE),
    ("POST", "/acme/shop/alerts/mistyped.json", MESSAGE),
    ("GET", "/api/v4/user", MESSAGE),
    ("GET", "/api/v4/mistyped", MESSAGE),
    ("PATCH", "/api/v4/user", MESSAGE),
    ("GET", "/api/v3/user", MESSAGE),
    ("GET", "/.well-known/openid-configuration/of/others", MESSAGE),
    ("GET", "/.well-known/mistyped", MESSAGE),
    ("POST", "/oauth/discovery/keys", MESSAGE),
    ("GET", "/oauth/discovery/mistyped", MESSAGE),
    ("GET", "/-/jwks/", MESSAGE),
    ("POST", "/oauth/token", OAUTH),
    ("PUT", "/oauth/token", OAUTH),
    ("GET", "/oauth/token/", OAUTH),
    ("GET", "/oauth/token/mistyped", OAUTH),
    ("GET", "/oauth/token/info", OAUTH),
    ("GET", "/oauth/userinfo", OAUTH),
    ("POST", "/oauth/register/someone", OAUTH),
    ("POST", "/oauth/introspect", OAUTH),
    ("GET", "/oauth/authorize", PAGE),
    ("PUT", "/oauth/authorize", PAGE),
    ("GET", "/oauth/mistyped", PAGE),
    ("POST", "/-/pictures/A-1.svg", PAGE),
    ("POST", "/healthz", PAGE),
    ("POST", "/acme/shop.git/info/refs", TEXT),
)


def format_of(answer: requests.Response) -> str:
    if answer.headers["Content-Type"].startswith("text/html"):
        return PAGE
    if answer.headers["Content-Type"].startswith("text/plain"):
        return TEXT
    body = answer.json()
    return MESSAGE if "message" in body else OAUTH if "error_uri" in body else str(body)


@pytest.mark.parametrize(("method", "path", "expected"), FAILURES)
def test_an_error_has_the_format_of_its_endpoint(
    gatebell: LiveGatebell, method: str, path: str, expected: str
) -> None:
    answer = machine(gatebell).request(method, gatebell.url + path, allow_redirects=False)
    assert answer.status_code in {400, 401, 404, 405}
    assert format_of(answer) == expected
