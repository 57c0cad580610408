"""A user approves a third-party client, which then acts on the user's behalf."""

import pytest
from oauthlib.oauth2 import AccessDeniedError

from tests.stories.conftest import Meet
from tests.stories.third_parties import (
    AuthlibInPublic,
    AuthlibWithBasic,
    Browser,
    OAuthlibWithBasic,
    OAuthlibWithPost,
    ThirdParty,
)
from tests.support.accounts.people import alice, signed_in
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def browser(gatebell: LiveGatebell) -> Browser:
    """Alice's browser, in which she is already signed in."""
    person = alice(gatebell)
    return Browser(signed_in(gatebell, person), person)


@pytest.mark.spec("A1", "A2", "B1", "B2", "B4", "G1")
@pytest.mark.rfc("rfc6749-4.1.4-a", "rfc6749-5.1-a")
def test_a_client_acts_for_the_user_who_approved(
    gatebell: LiveGatebell, third_party: ThirdParty, browser: Browser
) -> None:
    third_party.take(browser.walk(third_party.authorization_url()))
    assert browser.seen == ["consent"]
    answer = third_party.get(f"{gatebell.url}/api/v4/user")
    assert answer.status_code == 200
    assert answer.json()["username"] == browser.person.username
    # The response contains all fields that clients read.
    token = third_party.token
    assert token["expires_in"] == 7200
    assert token["token_type"] == "bearer"
    assert token["refresh_token"]
    assert isinstance(token["created_at"], int)
    scopes = token["scope"] if isinstance(token["scope"], list) else token["scope"].split()
    assert set(scopes) == {"read_user", "read_api"}


@pytest.mark.spec("D1", "D2")
def test_token_info_accepts_a_token_in_the_header_and_the_query(
    gatebell: LiveGatebell, third_party: ThirdParty, browser: Browser
) -> None:
    third_party.take(browser.walk(third_party.authorization_url()))
    address = f"{gatebell.url}/oauth/token/info"
    by_header = third_party.get(address)
    token = third_party.token["access_token"]
    by_query = gatebell.http().get(address, params={"access_token": token})
    assert by_header.status_code == by_query.status_code == 200
    info = by_header.json()
    assert info["application"] == {"uid": third_party.client.client_id}
    assert set(info["scope"]) == {"read_user", "read_api"}
    assert 7190 <= info["expires_in"] <= 7200
    assert {**by_query.json(), "expires_in": 0, "expires_in_seconds": 0} == {
        **info,
        "expires_in": 0,
        "expires_in_seconds": 0,
    }


@pytest.mark.spec("B5")
def test_a_client_refreshes_its_tokens_and_the_old_ones_are_revoked(
    gatebell: LiveGatebell, third_party: ThirdParty, browser: Browser
) -> None:
    third_party.take(browser.walk(third_party.authorization_url()))
    old = third_party.token
    third_party.refresh()
    new = third_party.token
    assert new["access_token"] != old["access_token"]
    assert new["refresh_token"] != old["refresh_token"]
    info = f"{gatebell.url}/oauth/token/info"
    assert third_party.get(info).status_code == 200
    dead = gatebell.http().get(info, params={"access_token": old["access_token"]})
    assert dead.status_code == 401


@pytest.mark.spec("D3")
def test_a_client_revokes_its_tokens(
    gatebell: LiveGatebell, third_party: ThirdParty, browser: Browser
) -> None:
    third_party.take(browser.walk(third_party.authorization_url()))
    answer = third_party.revoke()
    assert (answer.status_code, answer.json()) == (200, {})
    assert third_party.get(f"{gatebell.url}/oauth/token/info").status_code == 401


def test_a_client_introspects_its_token(third_party: ThirdParty, browser: Browser) -> None:
    third_party.take(browser.walk(third_party.authorization_url()))
    answer = third_party.introspect()
    if not third_party.registration["confidential"]:
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        return
    assert answer.json()["active"] is True
    assert answer.json()["username"] == browser.person.username
    third_party.revoke()
    assert third_party.introspect().json() == {"active": False}


@pytest.mark.long
@pytest.mark.spec("D4")
@pytest.mark.parametrize("kind", [AuthlibWithBasic, AuthlibInPublic, OAuthlibWithPost])
def test_a_client_requests_userinfo(
    gatebell: LiveGatebell, meet: Meet, browser: Browser, kind: type[ThirdParty]
) -> None:
    third_party = meet(kind, gatebell, scopes="openid email")
    third_party.take(browser.walk(third_party.authorization_url()))
    assert third_party.get(third_party.addresses.userinfo).json()["email"] == browser.person.email
    third_party.refresh()
    assert third_party.token["id_token"]
    assert third_party.get(third_party.addresses.userinfo).status_code == 200


@pytest.mark.spec("A3")
@pytest.mark.rfc("rfc6749-4.1.2.1-c")
def test_a_client_gets_an_error_if_the_user_denies(
    gatebell: LiveGatebell, meet: Meet, browser: Browser
) -> None:
    third_party = meet(OAuthlibWithBasic, gatebell)
    address = browser.walk(third_party.authorization_url(), "cancel")
    with pytest.raises(AccessDeniedError, match="The resource owner denied the request"):
        third_party.take(address)
