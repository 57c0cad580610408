"""Complete flows with npm's openid-client, which is certified and very strict."""

import pytest

from tests.stories.javascript import RefusedError, install, running_application
from tests.stories.third_parties import Browser
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    alice,
    bob,
    make_application,
    sign_in,
)
from tests.support.oauth.device_wire import enter_code, press_decision
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
SCOPES = "openid profile email read_user"


@pytest.fixture(scope="module", autouse=True)
def modules() -> None:
    install()


def application(gatebell: LiveGatebell, **changes: object) -> ClientCredentials:
    return make_application(gatebell, bob(gatebell), scopes=SCOPES, **changes)


def browser_of_alice(gatebell: LiveGatebell) -> Browser:
    person = alice(gatebell)
    return Browser(sign_in(gatebell, person), person)


@pytest.mark.long
@pytest.mark.rfc("rfc8414-3.3-a")
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
def test_an_application_signs_a_user_in_and_revokes_its_tokens(
    gatebell: LiveGatebell, method: str
) -> None:
    client = application(gatebell, confidential=method != "none")
    browser = browser_of_alice(gatebell)
    with running_application(gatebell, client, method=method) as program:
        url = program.do("authorize", redirect_uri=CALLBACK, scope=SCOPES)
        first = program.do("take", address=browser.walk(url))
        assert first["claims"]["aud"] == client.client_id
        claims = program.do("userinfo")
        assert claims["preferred_username"] == alice(gatebell).username
        second = program.do("refresh")
        assert second["access_token"] != first["access_token"]
        assert second["claims"]["sub"] == first["claims"]["sub"]
        user = program.do("call", address=f"{gatebell.url}/api/v4/user")
        assert user["username"] == alice(gatebell).username
        if method != "none":
            assert program.do("introspect")["active"] is True
        program.do("revoke")
        if method != "none":
            assert program.do("introspect") == {"active": False}
        with pytest.raises(RefusedError):
            program.do("userinfo")
    assert browser.seen == ["consent"]


@pytest.mark.long
def test_an_application_without_a_secret_cannot_introspect(gatebell: LiveGatebell) -> None:
    client = application(gatebell, confidential=False)
    with running_application(gatebell, client, method="none") as program:
        url = program.do("authorize", redirect_uri=CALLBACK, scope=SCOPES)
        program.do("take", address=browser_of_alice(gatebell).walk(url))
        with pytest.raises(RefusedError) as refused:
            program.do("introspect")
    assert refused.value.cause == "invalid_client"


@pytest.mark.rfc("rfc6749-4.1.2.1-c")
def test_an_application_gets_an_error_if_the_user_denies(gatebell: LiveGatebell) -> None:
    with running_application(gatebell, application(gatebell)) as program:
        url = program.do("authorize", redirect_uri=CALLBACK, scope="openid")
        with pytest.raises(RefusedError) as refused:
            program.do("take", address=browser_of_alice(gatebell).walk(url, "cancel"))
    assert refused.value.cause == "access_denied"


@pytest.mark.long
@pytest.mark.rfc("oidc-logout-2-f", "oidc-logout-2.1-a")
def test_an_application_signs_the_user_out_of_gatebell(gatebell: LiveGatebell) -> None:
    browser = browser_of_alice(gatebell)
    with running_application(gatebell, application(gatebell)) as program:
        url = program.do("authorize", redirect_uri=CALLBACK, scope="openid")
        program.do("take", address=browser.walk(url))
        leaving = program.do("leave", post_logout_redirect_uri=CALLBACK)
    answer = browser.session.get(leaving, allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (302, CALLBACK)
    assert browser.session.get(gatebell.url).url.startswith(f"{gatebell.url}/users/sign_in")


@pytest.mark.long
@pytest.mark.spec("C4", "C5", "C8")
@pytest.mark.rfc("rfc8628-3.5-b")
def test_a_device_that_polls_too_fast_slows_down_and_gets_a_token(gatebell: LiveGatebell) -> None:
    client = application(gatebell, confidential=False)
    browser = sign_in(gatebell, alice(gatebell))
    with running_application(gatebell, client, method="none", algorithm="oauth2") as program:
        device = program.do("begin", scope="read_user openid")
        program.begin("wait", interval=0.1)
        program.wait_until_told("slow_down")
        press_decision(browser, enter_code(browser, gatebell, device["user_code"]), "approve")
        assert set(program.finish()["scope"].split()) == {"openid", "read_user"}
        assert program.heard == ["authorization_pending", "slow_down"]
        assert program.do("userinfo")["sub"]
