"""Pushed requests and bound tokens with npm's openid-client."""

import pytest

from tests.stories.javascript import install, running_application
from tests.stories.third_parties import Browser
from tests.support.accounts.people import CALLBACK, alice, bob, make_application, sign_in
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
SCOPES = "openid read_user"


@pytest.fixture(scope="module", autouse=True)
def modules() -> None:
    install()


@pytest.mark.rfc("rfc9126-2.1-b", "rfc9449-5-a", "rfc9449-5-d", "rfc9449-10.1-a")
@pytest.mark.parametrize("method", ["client_secret_basic", "none"])
def test_an_application_pushes_its_request_and_always_proves_its_key(
    gatebell: LiveGatebell, method: str
) -> None:
    confidential = method != "none"
    client = make_application(gatebell, bob(gatebell), scopes=SCOPES, confidential=confidential)
    person = alice(gatebell)
    browser = Browser(sign_in(gatebell, person), person)
    with running_application(gatebell, client, method=method) as program:
        program.do("prove")
        url = program.do("push", redirect_uri=CALLBACK, scope=SCOPES)
        assert "request_uri=" in url
        assert "scope=" not in url
        first = program.do("take", address=browser.walk(url))
        assert first["token_type"].lower() == "dpop"
        assert program.do("userinfo")["sub"]
        assert program.do("refresh")["token_type"].lower() == "dpop"
        user = program.do("call", address=f"{gatebell.url}/api/v4/user")
        assert user["username"] == person.username
    assert browser.seen == ["consent"]
