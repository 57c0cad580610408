"""Whatever is sent to the OAuth endpoints, the answer is a clear 4xx and never a 5xx."""

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accounts.people import alice, signed_in
from tests.support.oauth.oauth_wire import (
    assert_explained,
    authorization_url,
    machine,
    phone_application,
    post_token,
    server_application,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.garbage import FEW_NASTY, TEXT, bounded

pytestmark = pytest.mark.one_database("postgres")

AUTHORIZE = (
    "client_id",
    "redirect_uri",
    "response_type",
    "response_mode",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "max_age",
    "login_hint",
    "nonce",
)
TOKEN = (
    "grant_type",
    "client_id",
    "client_secret",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "scope",
    "token",
    "token_type_hint",
)
#: What is no text at all; the same code decodes all parameters, so each gets some of them.
RAW = ("%ff%fe", "%ed%a0%80", "%", "%zz", "+", "&&&=;")
GRANTS = ("authorization_code", "refresh_token", "password", "client_credentials")
#: Which grant to ask for, so that somebody reads the parameter.
READ_BY = {
    "refresh_token": ("refresh_token",),
    "scope": ("refresh_token", "password"),
    "token": ("client_credentials",),
    "token_type_hint": ("client_credentials",),
}


def assert_clear(answer: requests.Response, *fine: int) -> None:
    assert answer.status_code in {*fine, 400, 401, 403}, f"{answer.status_code}: {answer.text}"
    assert "Traceback" not in answer.text
    assert "X-Injected" not in answer.headers


@pytest.mark.rfc("rfc6749-10.14-a")
@pytest.mark.parametrize("name", AUTHORIZE)
def test_each_parameter_of_an_authorization_request_may_be_garbage(
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


@pytest.mark.rfc("rfc6749-10.14-a")
@bounded(30)
@given(changes=st.dictionaries(st.sampled_from(AUTHORIZE), st.none() | TEXT, min_size=1))
def test_an_authorization_request_may_be_garbage_all_over(
    live_postgres: LiveGatebell, changes: dict[str, str | None]
) -> None:
    url = authorization_url(live_postgres, phone_application(live_postgres), **changes)
    browser = signed_in(live_postgres, alice(live_postgres))
    assert_clear(browser.get(url, allow_redirects=False), 302)


@pytest.mark.parametrize("name", TOKEN)
def test_each_parameter_of_a_token_request_may_be_garbage(
    gatebell: LiveGatebell, name: str
) -> None:
    client = server_application(gatebell)
    for grant in READ_BY.get(name, ("authorization_code",)):
        form = dict.fromkeys(TOKEN, "x")
        form |= {
            "grant_type": grant,
            "client_id": client.client_id,
            "client_secret": client.secret,
        }
        for value in FEW_NASTY:
            assert_clear(post_token(gatebell, {**form, name: value}))


@bounded(30)
@given(form=st.dictionaries(st.sampled_from(TOKEN), TEXT), grant=st.sampled_from(GRANTS))
def test_a_token_request_may_be_garbage_all_over(
    live_postgres: LiveGatebell, form: dict[str, str], grant: str
) -> None:
    client = phone_application(live_postgres)
    good = {"grant_type": grant, "client_id": client.client_id}
    for asked in (form, {**form, **good}):
        answer = post_token(live_postgres, asked)
        assert_clear(answer)
        assert_explained(answer)


@bounded(30)
@given(body=st.binary(max_size=300), kind=st.sampled_from(["token", "revoke"]))
def test_a_body_may_be_any_bytes(live_sqlite: LiveGatebell, body: bytes, kind: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    address = f"{live_sqlite.url}/oauth/{kind}"
    assert_clear(machine(live_sqlite).post(address, data=body, headers=headers))


@bounded(30)
@given(value=st.binary(max_size=120).map(lambda each: each.translate(None, b"\x00\r\n").strip()))
def test_a_header_may_be_any_bytes(live_sqlite: LiveGatebell, value: bytes) -> None:
    for scheme in (b"", b"Basic ", b"Bearer "):
        headers = {"Authorization": (scheme + value).strip() or b"x"}
        assert_clear(post_token(live_sqlite, {"grant_type": "refresh_token"}, headers=headers))
        info = machine(live_sqlite).get(f"{live_sqlite.url}/oauth/token/info", headers=headers)
        assert_clear(info)


@pytest.mark.parametrize("value", FEW_NASTY, ids=range(len(FEW_NASTY)))
def test_a_token_to_look_at_or_to_kill_may_be_garbage(gatebell: LiveGatebell, value: str) -> None:
    client = server_application(gatebell)
    form = {"client_id": client.client_id, "client_secret": client.secret, "token": value}
    assert_clear(machine(gatebell).post(f"{gatebell.url}/oauth/revoke", data=form), 200)
    for path in ("oauth/token/info", "api/v4/user"):
        address = f"{gatebell.url}/{path}"
        assert_clear(machine(gatebell).get(address, params={"access_token": value}))
