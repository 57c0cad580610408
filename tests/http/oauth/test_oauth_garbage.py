"""Random and malformed forms and JSON at the OAuth endpoints: a clear 4xx and never a 5xx."""

import json
from time import monotonic
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accounts.people import ClientCredentials, alice, signed_in
from tests.support.oauth.device_wire import DEVICE_GRANT, television
from tests.support.oauth.oauth_wire import (
    assert_explained,
    assert_refused,
    authorization_url,
    is_token_valid,
    machine,
    new_code,
    new_pair,
    parse_token_pair,
    phone_application,
    post_token,
    server_application,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.garbage import FEW_NASTY, TEXT, bounded

pytestmark = pytest.mark.one_database("postgres")

AUTHORIZE = (
    *("client_id", "redirect_uri", "response_type", "response_mode", "scope", "state"),
    *("code_challenge", "code_challenge_method", "prompt", "max_age", "login_hint", "nonce"),
)
TOKEN = (
    *("grant_type", "client_id", "client_secret", "code", "redirect_uri", "code_verifier"),
    *("refresh_token", "scope", "token", "token_type_hint", "username", "password", "device_code"),
)
#: Values that are not text. The same code decodes all parameters, so each gets some of them.
RAW = ("%ff%fe", "%ed%a0%80", "%", "%zz", "+", "&&&=;")
GRANTS = ("authorization_code", "refresh_token", "password", "client_credentials", DEVICE_GRANT)
#: Grants that read the parameter.
READ_BY = {
    "refresh_token": ("refresh_token",),
    "scope": ("refresh_token", "password"),
    "token": ("client_credentials",),
    "token_type_hint": ("client_credentials",),
    "username": ("password",),
    "password": ("password",),
    "device_code": (DEVICE_GRANT,),
}


def assert_clear(answer: requests.Response, *fine: int) -> None:
    assert answer.status_code in {*fine, 400, 401, 403}, f"{answer.status_code}: {answer.text}"
    assert "Traceback" not in answer.text
    assert "X-Injected" not in answer.headers


@pytest.mark.advisory("CVE-2022-36087")
@pytest.mark.rfc("rfc6749-10.14-a")
@pytest.mark.parametrize("name", AUTHORIZE)
def test_malformed_parameters_of_an_authorization_request_are_handled(
    gatebell: LiveGatebell, name: str
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    for number, value in enumerate(FEW_NASTY):
        url = authorization_url(gatebell, server_application(gatebell), **{name: value})
        visitor = machine(gatebell) if number % 3 == 0 else browser
        assert_clear(visitor.get(url, allow_redirects=False), 302)
    raw = authorization_url(gatebell, server_application(gatebell), **{name: None})
    for value in RAW[AUTHORIZE.index(name) % 3 :: 3]:
        assert_clear(browser.get(f"{raw}&{name}={value}", allow_redirects=False), 302)


@pytest.mark.advisory("CVE-2016-4977", "CVE-2018-1260")
@pytest.mark.rfc("rfc6749-10.14-a")
@pytest.mark.parametrize("name", AUTHORIZE)
def test_an_expression_in_an_authorization_request_is_not_evaluated(
    gatebell: LiveGatebell, name: str
) -> None:
    expression = "${1234*5678} {{1234*5678}} #{1234*5678} <%= 1234*5678 %>"
    browser = signed_in(gatebell, alice(gatebell))
    url = authorization_url(gatebell, server_application(gatebell), **{name: expression})
    answer = browser.get(url, allow_redirects=False)
    assert_clear(answer, 302)
    said = answer.text + answer.headers.get("Location", "")
    assert all(each not in said for each in ("7006652", "7,006,652"))


@pytest.mark.long
@pytest.mark.rfc("rfc6749-10.14-a")
@bounded(30)
@given(changes=st.dictionaries(st.sampled_from(AUTHORIZE), st.none() | TEXT, min_size=1))
def test_a_random_authorization_request_is_handled(
    live_postgres: LiveGatebell, changes: dict[str, str | None]
) -> None:
    url = authorization_url(live_postgres, phone_application(live_postgres), **changes)
    browser = signed_in(live_postgres, alice(live_postgres))
    assert_clear(browser.get(url, allow_redirects=False), 302)


@pytest.mark.advisory("CVE-2026-4634")
@pytest.mark.parametrize("grant", ["client_credentials", "refresh_token", "password"])
def test_a_very_long_scope_is_rejected_quickly(gatebell: LiveGatebell, grant: str) -> None:
    client = server_application(gatebell)
    form = {"client_id": client.client_id, "client_secret": client.secret, "grant_type": grant}
    form |= {"refresh_token": "x", "username": "x", "password": "x"}
    for scope in ("x" * 60_000, " ".join(f"s{number}" for number in range(10_000))):
        begun = monotonic()
        assert_clear(post_token(gatebell, {**form, "scope": scope}), 413, 429)
        assert monotonic() - begun < 5


@pytest.mark.parametrize("name", TOKEN)
def test_malformed_parameters_of_a_token_request_are_handled(
    gatebell: LiveGatebell, name: str
) -> None:
    client = server_application(gatebell)
    for grant in READ_BY.get(name, ("authorization_code",)):
        form = dict.fromkeys(TOKEN, "x")
        form |= {"grant_type": grant, "client_id": client.client_id, "client_secret": client.secret}
        for value in FEW_NASTY:
            # The limit of failed attempts may be reached.
            assert_clear(post_token(gatebell, {**form, name: value}), 429)


@pytest.mark.long
@bounded(30)
@given(form=st.dictionaries(st.sampled_from(TOKEN), TEXT), grant=st.sampled_from(GRANTS))
def test_a_random_token_request_is_handled(
    live_postgres: LiveGatebell, form: dict[str, str], grant: str
) -> None:
    client = phone_application(live_postgres)
    good = {"grant_type": grant, "client_id": client.client_id}
    for asked in (form, {**form, **good}):
        answer = post_token(live_postgres, asked)
        assert_clear(answer, 429)
        assert_explained(answer)


@bounded(30)
@given(body=st.binary(max_size=300), kind=st.sampled_from(["token", "revoke"]))
def test_a_body_of_random_bytes_is_handled(
    live_sqlite: LiveGatebell, body: bytes, kind: str
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    address = f"{live_sqlite.url}/oauth/{kind}"
    assert_clear(machine(live_sqlite).post(address, data=body, headers=headers))


@pytest.mark.long
@bounded(30)
@given(value=st.binary(max_size=120).map(lambda each: each.translate(None, b"\x00\r\n").strip()))
def test_a_header_of_random_bytes_is_handled(live_sqlite: LiveGatebell, value: bytes) -> None:
    for scheme in (b"", b"Basic ", b"Bearer "):
        headers = {"Authorization": (scheme + value).strip() or b"x"}
        assert_clear(post_token(live_sqlite, {"grant_type": "refresh_token"}, headers=headers))
        info = machine(live_sqlite).get(f"{live_sqlite.url}/oauth/token/info", headers=headers)
        assert_clear(info)


@pytest.mark.parametrize("value", FEW_NASTY, ids=range(len(FEW_NASTY)))
def test_malformed_tokens_are_handled_by_token_info_and_revocation(
    gatebell: LiveGatebell, value: str
) -> None:
    client = server_application(gatebell)
    form = {"client_id": client.client_id, "client_secret": client.secret, "token": value}
    assert_clear(machine(gatebell).post(f"{gatebell.url}/oauth/revoke", data=form), 200)
    for path in ("oauth/token/info", "api/v4/user"):
        address = f"{gatebell.url}/{path}"
        assert_clear(machine(gatebell).get(address, params={"access_token": value}))


# OpenID Connect endpoints.


#: Text with two dots or more, which looks like a JWT.
JWT = st.lists(st.text("ABCabc019-_=é\x00", max_size=40), min_size=3, max_size=5).map(".".join)
LOGOUT = ("id_token_hint", "client_id", "post_logout_redirect_uri", "state", "request", "decision")


@pytest.mark.long
@bounded(30)
@given(form=st.dictionaries(st.sampled_from(LOGOUT), TEXT | JWT))
def test_a_random_logout_request_is_handled(
    live_postgres: LiveGatebell, form: dict[str, str]
) -> None:
    browser, url = (
        signed_in(live_postgres, alice(live_postgres)),
        f"{live_postgres.url}/oauth/logout",
    )
    answers = (
        browser.get(url, params=form, allow_redirects=False),
        browser.post(url, data=form, allow_redirects=False),
    )
    for answer in answers:
        assert answer.status_code in {200, 303, 400}, f"{answer.status_code}: {answer.text}"
        assert answer.headers.get("Location", "/oauth/logout").startswith("/oauth/logout")
    assert browser.get(f"{live_postgres.url}/-/user_settings/profile").ok


@pytest.mark.long
@bounded(30)
@given(token=TEXT | JWT, hint=TEXT)
def test_a_random_token_is_handled_by_introspection(
    live_postgres: LiveGatebell, token: str, hint: str
) -> None:
    client = server_application(live_postgres)
    form = {"client_id": client.client_id, "client_secret": client.secret}
    answer = machine(live_postgres).post(
        f"{live_postgres.url}/oauth/introspect",
        data={**form, "token": token, "token_type_hint": hint},
    )
    if token:
        assert (answer.status_code, answer.json()) == (200, {"active": False})
    else:
        assert answer.status_code == 400


@bounded(30)
@given(token=TEXT | JWT)
def test_a_random_token_is_rejected_by_userinfo(live_postgres: LiveGatebell, token: str) -> None:
    url = f"{live_postgres.url}/oauth/userinfo"
    for answer in (
        machine(live_postgres).post(url, data={"access_token": token}),
        machine(live_postgres).get(url, params={"access_token": token}),
    ):
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("path", ["introspect", "userinfo", "logout"])
@pytest.mark.parametrize("body", [b"\xff\xfe", b"%ff=%zz&&&=;", b"{", b"\x00" * 50])
def test_a_malformed_body_for_openid_is_handled(
    gatebell: LiveGatebell, path: str, body: bytes
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = machine(gatebell).post(
        f"{gatebell.url}/oauth/{path}", data=body, headers=headers, allow_redirects=False
    )
    assert answer.status_code in {303, 400, 401}


# JSON objects in place of forms.


ENDPOINTS = ("token", "authorize_device", "revoke", "introspect", "par")
#: Bodies that are not objects of texts, and the error of the answer.
BAD: tuple[tuple[str | bytes, str], ...] = (
    ("", "is not valid JSON"),
    ("{", "is not valid JSON"),
    ("{}{}", "is not valid JSON"),
    ("[" * 30_000, "is not valid JSON"),
    ('{"a": NaN}', "is not valid JSON"),
    (b"\xff\xfe{\x00}\x00", "byte order mark"),
    (b'{"grant_type": "\xff"}', "is not valid JSON"),
    ("[]", "must be a JSON object"),
    ('[["grant_type", "password"]]', "must be a JSON object"),
    ("null", "must be a JSON object"),
    ('"grant_type=password"', "must be a JSON object"),
    ("5", "must be a JSON object"),
    ('{"grant_type": "password", "grant_type": "password"}', "grant_type is given more than once"),
    ('{"token": 5}', "token must be a string"),
    ('{"token": true}', "token must be a string"),
    ('{"token": {"a": "b"}}', "token must be a string"),
    ('{"token": []}', "token must be a string"),
    ('{"token": ["a"]}', "token must be a string"),
    ('{"token": "\\ud800"}', "token must be a string"),
    ('{"\\"\\u00e9\\ud800": 1}', "??? must be a string"),
)


def proof_of(client: ClientCredentials) -> dict[str, str]:
    return {"client_id": client.client_id, "client_secret": client.secret}


def send(
    gatebell: LiveGatebell, endpoint: str, body: Any, kind: str = "application/json"
) -> requests.Response:
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    return machine(gatebell).post(
        f"{gatebell.url}/oauth/{endpoint}", data=content, headers={"Content-Type": kind}
    )


def test_a_client_uses_json_for_all_token_requests(
    gatebell: LiveGatebell,
) -> None:
    client = server_application(gatebell)
    redemption = {
        **proof_of(client),
        "grant_type": "authorization_code",
        "code": new_code(gatebell, client),
        "redirect_uri": client.redirect_uri,
        "code_verifier": None,  # A null value is the same as an absent parameter.
    }
    pair = parse_token_pair(send(gatebell, "token", redemption))
    renewal = {"grant_type": "refresh_token", "refresh_token": pair.refresh, **proof_of(client)}
    pair = parse_token_pair(send(gatebell, "token", renewal, "application/json; charset=utf-8"))
    token = {**proof_of(client), "token": pair.access}
    assert send(gatebell, "introspect", token).json()["active"] is True
    assert send(gatebell, "revoke", token).json() == {}
    assert not is_token_valid(gatebell, pair.access)


def test_device_and_pushed_requests_are_accepted_as_json(gatebell: LiveGatebell) -> None:
    device = {"client_id": television(gatebell).client_id, "scope": "read_user"}
    assert send(gatebell, "authorize_device", device).json()["user_code"]
    client = server_application(gatebell)
    push = {
        **proof_of(client),
        "response_type": "code",
        "redirect_uri": client.redirect_uri,
        "scope": "read_user",
    }
    answer = send(gatebell, "par", push)
    assert (answer.status_code, answer.json()["expires_in"]) == (201, 90)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_rejected(gatebell: LiveGatebell, encoding: str) -> None:
    body = json.dumps({"grant_type": "password"}).encode(encoding)
    headers = {"Content-Type": "application/json"}
    answer = post_token(gatebell, body, headers=headers)
    assert_refused(answer, "invalid_request")
    assert "byte order mark" in answer.json()["error_description"]


def test_parameters_in_the_url_are_rejected(gatebell: LiveGatebell) -> None:
    answer = machine(gatebell).post(
        f"{gatebell.url}/oauth/token", params={"grant_type": "refresh_token"}
    )
    assert_refused(answer, "invalid_request")
    assert "Send all parameters in the body" in answer.json()["error_description"]


@pytest.mark.rfc("rfc7662-2.1-c")
def test_basic_authentication_is_accepted_with_a_json_body(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    answer = machine(gatebell).post(
        f"{gatebell.url}/oauth/introspect",
        json={"token": pair.access},
        auth=(client.client_id, client.secret),
    )
    assert answer.json()["active"] is True


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_body_that_is_not_an_object_of_texts_is_rejected(
    gatebell: LiveGatebell, endpoint: str
) -> None:
    for body, sentence in BAD:
        answer = send(gatebell, endpoint, body)
        assert_refused(answer, "invalid_request")
        assert sentence in answer.json()["error_description"], body


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_body_that_is_too_large_is_refused(gatebell: LiveGatebell, endpoint: str) -> None:
    answer = send(gatebell, endpoint, {"token": "x" * 70_000})
    assert (answer.status_code, answer.json()["error"]) == (413, "invalid_request")


def test_parameters_in_the_url_of_a_json_request_are_rejected(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    answer = send(gatebell, f"revoke?token={pair.access}", proof_of(client))
    assert_refused(answer, "invalid_request")
    assert is_token_valid(gatebell, pair.access)
