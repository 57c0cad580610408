"""Whatever is sent to the OpenID endpoints, the answer is clear and leads nowhere by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accounts.people import alice, signed_in
from tests.support.oauth.oauth_wire import machine, server_application
from tests.support.service.live import LiveGatebell
from tests.support.wire.garbage import TEXT, bounded

pytestmark = pytest.mark.one_database("postgres")

#: Two dots make a token of it, as far as that goes.
JWT = st.lists(st.text("ABCabc019-_=é\x00", max_size=40), min_size=3, max_size=5).map(".".join)
LOGOUT = ("id_token_hint", "client_id", "post_logout_redirect_uri", "state", "request", "decision")


@bounded(30)
@given(form=st.dictionaries(st.sampled_from(LOGOUT), TEXT | JWT))
def test_a_request_to_sign_out_may_be_garbage_all_over(
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


@bounded(30)
@given(token=TEXT | JWT, hint=TEXT)
def test_a_token_to_describe_may_be_garbage(
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
def test_a_token_to_ask_claims_with_may_be_garbage(live_postgres: LiveGatebell, token: str) -> None:
    url = f"{live_postgres.url}/oauth/userinfo"
    for answer in (
        machine(live_postgres).post(url, data={"access_token": token}),
        machine(live_postgres).get(url, params={"access_token": token}),
    ):
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("path", ["introspect", "userinfo", "logout"])
@pytest.mark.parametrize("body", [b"\xff\xfe", b"%ff=%zz&&&=;", b"{", b"\x00" * 50])
def test_a_body_may_be_any_bytes(gatebell: LiveGatebell, path: str, body: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = machine(gatebell).post(
        f"{gatebell.url}/oauth/{path}", data=body, headers=headers, allow_redirects=False
    )
    assert answer.status_code in {303, 400, 401}
