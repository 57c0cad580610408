"""Tests of `GET /oauth/authorize`: validation of requests, and targets of errors."""

from urllib.parse import urlsplit

import pytest
import requests

from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import CALLBACK, ClientCredentials, bob, make_application
from tests.support.accounts.resource_tokens import script_of
from tests.support.oauth.oauth_wire import (
    CHALLENGE,
    PKCE,
    STATE,
    Changes,
    assert_refused_on_a_page,
    authorization_url,
    machine,
    open_authorization,
    parse_redirect,
    phone_application,
    redeem,
    server_application,
    submit_decision,
)
from tests.support.oauth.visits import Visit
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """A trusted, confidential application."""
    return server_application(gatebell)


#: Requests with several errors, of which only the unknown client may matter.
UNKNOWN_CLIENTS: tuple[dict[str, Changes], ...] = (
    {"client_id": "0" * 64},
    {"client_id": None},
    {"client_id": ""},
    {"client_id": "\x00"},
    {"client_id": "é" * 500},
    {"client_id": "0" * 64, "redirect_uri": "https://evil.example/"},
    {"client_id": "0" * 64, "response_type": "token", "scope": None},
    {"client_id": "0" * 64, "prompt": "none"},
    {"client_id": ["0" * 64, "1" * 64]},
)


@pytest.mark.both_databases
@pytest.mark.spec("A4")
@pytest.mark.rfc("rfc6749-4.1.1-a", "rfc6749-4.1.1-b", "rfc6749-4.1.2.1-a", "rfc9700-4.11.2-a")
@pytest.mark.parametrize("changes", UNKNOWN_CLIENTS)
def test_an_unknown_client_is_rejected_on_a_page_regardless_of_other_errors(
    visit: Visit, changes: dict[str, Changes]
) -> None:
    assert_refused_on_a_page(visit.open_authorization(**changes))
    assert_refused_on_a_page(
        open_authorization(machine(visit.gatebell), visit.gatebell, visit.client, **changes)
    )


@pytest.mark.advisory("CVE-2019-3778", "CVE-2019-9837", "CVE-2025-4143")
@pytest.mark.spec("A4")
@pytest.mark.rfc("rfc6749-3.1.2.2-a", "rfc6749-3.1.2.4-a", "rfc6749-3.1.2.4-b", "rfc6749-4.1.2.1-a")
@pytest.mark.rfc("rfc9700-4.11.2-a")
@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uri": None},
        {"redirect_uri": ""},
        {"redirect_uri": [CALLBACK, CALLBACK]},
        {"redirect_uri": [CALLBACK, "https://evil.example/"]},
        {"redirect_uri": "https://evil.example/", "response_type": "token"},
        {"redirect_uri": "https://evil.example/", "prompt": "none"},
        {"redirect_uri": "https://evil.example/", "scope": "nonsense"},
    ],
)
def test_an_unregistered_redirect_uri_is_rejected_on_a_page(
    visit: Visit, changes: dict[str, Changes]
) -> None:
    assert_refused_on_a_page(visit.open_authorization(**changes))


@pytest.mark.spec("A4")
@pytest.mark.rfc("rfc6749-3.1-f")
def test_a_repeated_client_id_is_rejected_on_a_page(visit: Visit) -> None:
    twice = visit.open_authorization(client_id=[visit.client.client_id, visit.client.client_id])
    assert_refused_on_a_page(twice)


ERRORS: tuple[tuple[dict[str, Changes], str], ...] = (
    ({"scope": " "}, "invalid_scope"),
    ({"scope": "nonsense"}, "invalid_scope"),
    ({"scope": "read_user nonsense"}, "invalid_scope"),
    ({"scope": "read_user api"}, "invalid_scope"),
    ({"scope": "read_user\x00"}, "invalid_scope"),
    ({"scope": ["read_user", "read_user"]}, "invalid_request"),
    ({"response_type": None}, "invalid_request"),
    ({"response_type": ["code", "code"]}, "invalid_request"),
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "id_token"}, "unsupported_response_type"),
    ({"response_type": "code token"}, "unsupported_response_type"),
    ({"response_type": "CODE"}, "unsupported_response_type"),
    ({"response_mode": "fragment"}, "invalid_request"),
    ({"response_mode": "form_post"}, "invalid_request"),
    ({"response_mode": "form_post.jwt"}, "invalid_request"),
    ({"prompt": "always"}, "invalid_request"),
    ({"prompt": "none login"}, "invalid_request"),
    ({"max_age": "soon"}, "invalid_request"),
    ({"max_age": "-1"}, "invalid_request"),
    ({"max_age": "9" * 400}, "invalid_request"),
    ({"code_challenge": CHALLENGE}, "invalid_request"),
    ({"code_challenge": CHALLENGE, "code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge": CHALLENGE, "code_challenge_method": "s256"}, "invalid_request"),
    ({"code_challenge": CHALLENGE[:-1], "code_challenge_method": "S256"}, "invalid_request"),
    ({"code_challenge": CHALLENGE + "=", "code_challenge_method": "S256"}, "invalid_request"),
    ({"code_challenge": CHALLENGE + "A", "code_challenge_method": "S256"}, "invalid_request"),
    ({"code_challenge_method": "S256"}, "invalid_request"),
    ({**PKCE, "code_challenge": [CHALLENGE, CHALLENGE]}, "invalid_request"),
    ({"nonce": "\x00"}, "invalid_request"),
)


@pytest.mark.advisory("CVE-2023-6927", "CVE-2026-75866")
@pytest.mark.rfc("rfc9700-2.1.1-g")
@pytest.mark.spec("A5", "A6", "A7")
@pytest.mark.rfc("rfc6749-3.1-f", "rfc6749-3.1.1-a", "rfc6749-3.3-c", "rfc6749-4.1.1-a")
@pytest.mark.rfc("rfc6749-4.1.1-b", "rfc6749-4.1.2.1-b", "rfc6749-4.1.2.1-d", "rfc6749-4.1.2.1-e")
@pytest.mark.rfc("rfc6749-4.1.2.1-f", "rfc6749-4.2-a", "rfc7636-4.2-b", "rfc7636-4.3-a")
@pytest.mark.rfc("rfc7636-4.4.1-b", "rfc9207-2-b", "rfc9700-2.1.2-a", "rfc9700-4.4.2-a")
@pytest.mark.rfc("oidc-core-3.1.2.1-c", "oidc-core-3.1.2.1-j", "oidc-core-3.1.2.2-a")
@pytest.mark.rfc("oidc-core-3.2-a")
@pytest.mark.parametrize(("changes", "error"), ERRORS)
def test_all_other_errors_redirect_to_the_client_with_state_and_issuer(
    visit: Visit, changes: dict[str, Changes], error: str
) -> None:
    answer = visit.open_authorization(**changes)
    brought = parse_redirect(answer)
    assert answer.headers["Location"].startswith(CALLBACK + "?")
    assert brought.pop("error_description")
    assert brought == {"error": error, "state": STATE, "iss": visit.gatebell.url}


@pytest.mark.rfc("rfc6749-4.1.2.1-b", "rfc9700-4.11.2-b")
def test_an_error_needs_no_sign_in(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    brought = parse_redirect(
        open_authorization(gatebell.http(), gatebell, client, response_type="token")
    )
    assert brought["error"] == "unsupported_response_type"


@pytest.mark.spec("A6")
@pytest.mark.rfc("rfc7636-4.2-b", "rfc7636-4.4.1-a")
@pytest.mark.rfc("rfc8252-6-a", "rfc8252-8.1-a", "rfc8252-8.1-b")
@pytest.mark.rfc("rfc9700-2.1.1-a")
@pytest.mark.parametrize("method", [None, "plain"])
def test_a_public_application_needs_pkce(
    gatebell: LiveGatebell, browser: requests.Session, method: str | None
) -> None:
    challenge = CHALLENGE if method else None
    phone = phone_application(gatebell)
    answer = open_authorization(
        browser, gatebell, phone, code_challenge=challenge, code_challenge_method=method
    )
    assert parse_redirect(answer)["error"] == "invalid_request"


@pytest.mark.rfc("rfc9700-2.1.1-e")
@pytest.mark.spec("A6")
@pytest.mark.rfc("rfc7636-4.4.1-a", "rfc7636-5-a")
def test_a_confidential_application_can_require_pkce(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    strict = make_application(gatebell, bob(gatebell), require_pkce=True, trusted=True)
    assert (
        parse_redirect(open_authorization(browser, gatebell, strict))["error"] == "invalid_request"
    )
    assert "code" in parse_redirect(open_authorization(browser, gatebell, strict, **PKCE))


STATES = (
    "plain",
    "with spaces and + signs",
    "a=b&c=d;e#f?g/h\\i%20j%2B",
    "café ☃ 🔔 \u202e",
    "\"<script>alert('x')</script>{{7*7}}%s",
    "line\r\nLocation: https://evil.example/",
    "nul\x00",
    " edges ",
    "long" * 1000,
)


@pytest.mark.spec("A2")
@pytest.mark.rfc("rfc6749-4.1.2-f", "rfc6749-4.1.2.1-f", "rfc6749-10.14-a")
@pytest.mark.rfc("rfc9700-4.7.1-a")
@pytest.mark.rfc("oidc-core-3.1.2.5-a")
@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
def test_the_state_is_returned_unchanged(visit: Visit, state: str) -> None:
    approved = parse_redirect(visit.open_authorization(state=state))
    assert (approved["state"], "code" in approved) == (state, True)
    refused = parse_redirect(visit.open_authorization(state=state, scope="nonsense"))
    assert (refused["state"], refused["error"]) == (state, "invalid_scope")


@pytest.mark.spec("A10")
@pytest.mark.rfc("rfc6749-4.1.2-f")
def test_no_state_is_returned_without_a_state(visit: Visit) -> None:
    assert set(parse_redirect(visit.open_authorization(state=None))) == {"code", "iss"}


@pytest.mark.both_databases
@pytest.mark.spec("A2")
@pytest.mark.rfc("rfc8252-8.10-a", "rfc9207-2-a", "rfc9700-4.4.2-a")
def test_the_issuer_is_returned_with_the_code(visit: Visit) -> None:
    assert parse_redirect(visit.open_authorization())["iss"] == visit.gatebell.url


@pytest.mark.both_databases
@pytest.mark.parametrize("changes", [{}, {"omit_iss": True}])
def test_an_application_written_for_gitlab_can_omit_iss(
    gatebell: LiveGatebell, browser: requests.Session, changes: dict[str, bool]
) -> None:
    wanted = {"name": "Old client", "redirect_uri": CALLBACK, "scopes": "read_user", **changes}
    made = (
        script_of(gatebell, get_shared_administrator(gatebell))
        .send_request("POST", "/applications", json=wanted)
        .json()
    )
    assert made["omit_iss"] is bool(changes)
    client = ClientCredentials(
        id=made["id"],
        client_id=made["application_id"],
        secret=made["secret"],
        redirect_uri=CALLBACK,
        scopes="read_user",
    )
    expected = set() if changes else {"iss"}
    denied = parse_redirect(
        submit_decision(browser, open_authorization(browser, gatebell, client), "cancel")
    )
    assert set(denied) - {"error_description"} == {"error", "state"} | expected
    approved = parse_redirect(
        submit_decision(browser, open_authorization(browser, gatebell, client))
    )
    assert set(approved) == {"code", "state"} | expected
    wrong = parse_redirect(open_authorization(browser, gatebell, client, scope="no_such_scope"))
    assert set(wrong) - {"error_description"} == {"error", "state"} | expected


@pytest.mark.rfc("rfc9207-2-c")
def test_headers_cannot_change_the_issuer(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    forged = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil"}
    url = authorization_url(gatebell, client, scope="nonsense")
    answer = machine(gatebell).get(url, allow_redirects=False, headers=forged)
    assert parse_redirect(answer)["iss"] == gatebell.url


@pytest.mark.spec("A5")
@pytest.mark.rfc("rfc6749-3.3-a")
def test_scopes_can_be_separated_by_plus_signs(visit: Visit) -> None:
    url = authorization_url(visit.gatebell, visit.client, scope=None) + "&scope=read_user+read_api"
    assert "code" in parse_redirect(visit.browser.get(url, allow_redirects=False))


@pytest.mark.rfc("rfc6749-3.3-c")
@pytest.mark.parametrize("scope", [None, ""])
@pytest.mark.parametrize(
    ("registered", "granted"),
    [("read_user api", "read_user"), ("read_api read_user", "read_user"), ("api", "api")],
)
def test_a_request_without_a_scope_gets_read_user_or_the_only_scope(
    gatebell: LiveGatebell,
    browser: requests.Session,
    scope: str | None,
    registered: str,
    granted: str,
) -> None:
    client = make_application(gatebell, bob(gatebell), scopes=registered)
    page = open_authorization(browser, gatebell, client, scope=scope)
    code = parse_redirect(submit_decision(browser, page))["code"]
    answer = redeem(gatebell, client, code)
    assert answer.json()["scope"] == granted
    # The consent is remembered.
    assert "code" in parse_redirect(open_authorization(browser, gatebell, client, scope=granted))


@pytest.mark.rfc("rfc6749-3.3-c")
def test_a_request_without_a_scope_fails_if_the_default_is_ambiguous(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = make_application(gatebell, bob(gatebell), scopes="api openid")
    brought = parse_redirect(open_authorization(browser, gatebell, client, scope=None))
    assert (brought["error"], brought["state"]) == ("invalid_scope", STATE)


@pytest.mark.rfc("rfc6749-3.1-e")
def test_unknown_parameters_are_ignored(visit: Visit) -> None:
    assert "code" in parse_redirect(visit.open_authorization(audience=["x", "y"], ui_locales="fr"))


@pytest.mark.rfc("rfc9700-4.16-c")
@pytest.mark.rfc("rfc6749-3.1.2.5-a", "rfc6749-10.13-a")
@pytest.mark.rfc("rfc9700-4.2.4-a", "rfc9700-4.16-a")
@pytest.mark.rfc("oidc-core-3.1.2.3-c")
def test_the_consent_page_cannot_be_framed_or_read_by_other_sites(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    shown = open_authorization(browser, gatebell, make_application(gatebell, bob(gatebell)))
    policy = shown.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert shown.headers["X-Frame-Options"] == "DENY"
    assert shown.headers["Referrer-Policy"] == "no-referrer"
    assert "no-cache" in shown.headers["Cache-Control"]
    assert not [name for name in shown.headers if name.startswith("Access-Control")]


@pytest.mark.rfc("rfc6749-10.12-a", "oidc-core-3.1.2.3-c")
def test_a_decision_without_the_form_token_is_rejected(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    shown = open_authorization(browser, gatebell, make_application(gatebell, bob(gatebell)))
    form = form_with(shown, "decision")
    fields = form.filled(decision="authorize", csrf_token=None)
    answer = browser.post(f"{gatebell.url}{form.action}", fields, allow_redirects=False)
    # The consent page is shown again, without a decision.
    assert (answer.status_code, urlsplit(answer.headers["Location"]).path) == (
        303,
        "/oauth/authorize",
    )
    assert "code" in parse_redirect(submit_decision(browser, shown))
