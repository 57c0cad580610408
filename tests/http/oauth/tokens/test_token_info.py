"""GET /oauth/token/info."""

from datetime import timedelta
from time import time

import pytest
import requests
from sqlalchemy import select, update

from models import AccessToken, User
from tests.support.accounts.people import alice, database_of, now
from tests.support.oauth.oauth_wire import (
    TokenPair,
    machine,
    new_pair,
    revoke,
    server_application,
    token_info,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def pair(gatebell: LiveGatebell) -> TokenPair:
    """A pair of tokens of Alice's."""
    return new_pair(gatebell, server_application(gatebell))


def assert_invalid(answer: requests.Response) -> None:
    assert answer.status_code == 401
    body = answer.json()
    assert set(body) == {"error", "error_description", "error_uri", "request_id"}
    assert body["error"] == "invalid_token"
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.both_databases
@pytest.mark.spec("D1", "D2")
def test_it_says_whose_token_it_is_what_for_and_for_how_long(
    gatebell: LiveGatebell, pair: TokenPair
) -> None:
    answer = token_info(gatebell, pair.access)
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.json()
    with database_of(gatebell) as session:
        wanted = select(User.id).where(User.username == alice(gatebell).username)
        assert body.pop("resource_owner_id") == session.scalar(wanted)
    assert 7100 < body["expires_in"] <= 7200
    assert body.pop("expires_in") == body.pop("expires_in_seconds")
    assert abs(body.pop("created_at") - time()) < 60
    assert body == {
        "scope": ["read_api", "read_user"],
        "scopes": ["read_api", "read_user"],
        "application": {"uid": server_application(gatebell).client_id},
    }


@pytest.mark.spec("D1")
@pytest.mark.rfc("rfc6750-2.3-a")
def test_the_token_may_stand_in_the_address(gatebell: LiveGatebell, pair: TokenPair) -> None:
    address = f"{gatebell.url}/oauth/token/info"
    answer = machine(gatebell).get(address, params={"access_token": pair.access})
    assert answer.json()["scope"] == ["read_api", "read_user"]


@pytest.mark.rfc("rfc6750-2-a")
def test_two_tokens_at_once_are_an_invalid_request(gatebell: LiveGatebell, pair: TokenPair) -> None:
    answer = machine(gatebell).get(
        f"{gatebell.url}/oauth/token/info",
        params={"access_token": pair.access},
        headers={"Authorization": f"Bearer {pair.access}"},
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


@pytest.mark.spec("D1")
@pytest.mark.rfc("rfc6750-5.2-b")
def test_what_is_left_of_the_lifetime_counts_down(gatebell: LiveGatebell, pair: TokenPair) -> None:
    with database_of(gatebell) as session:
        session.execute(update(AccessToken).values(expires_at=now() + timedelta(seconds=60)))
    assert 50 <= token_info(gatebell, pair.access).json()["expires_in"] <= 60


@pytest.mark.both_databases
@pytest.mark.spec("D1")
def test_a_token_that_never_expires_has_no_rest(gatebell: LiveGatebell, pair: TokenPair) -> None:
    with database_of(gatebell) as session:
        session.execute(update(AccessToken).values(expires_at=None))
    body = token_info(gatebell, pair.access).json()
    assert (body["expires_in"], body["expires_in_seconds"]) == (None, None)


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-7-a", "rfc6750-3.1-b")
def test_an_expired_token_is_invalid(gatebell: LiveGatebell, pair: TokenPair) -> None:
    with database_of(gatebell) as session:
        session.execute(update(AccessToken).values(expires_at=now() - timedelta(seconds=1)))
    answer = token_info(gatebell, pair.access)
    assert_invalid(answer)
    assert "expired" in answer.json()["error_description"]


@pytest.mark.both_databases
def test_a_revoked_token_is_invalid(gatebell: LiveGatebell, pair: TokenPair) -> None:
    revoke(gatebell, server_application(gatebell), pair.access)
    answer = token_info(gatebell, pair.access)
    assert_invalid(answer)
    assert "revoked" in answer.json()["error_description"]


@pytest.mark.rfc("rfc6750-5.2-a")
@pytest.mark.parametrize("token", ["gba-x", "gba-" + "0" * 49, "x" * 5000, "gbp-x"])
def test_a_token_that_nobody_issued_is_invalid(gatebell: LiveGatebell, token: str) -> None:
    assert_invalid(token_info(gatebell, token))


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer ", "Basic eDp5", "Token x", "\xe9"])
def test_no_token_is_invalid_too(gatebell: LiveGatebell, header: str | None) -> None:
    headers = {"Authorization": header.strip()} if header else {}
    address = f"{gatebell.url}/oauth/token/info"
    assert_invalid(machine(gatebell).get(address, headers=headers))


def test_a_personal_access_token_is_none_of_its_business(gatebell: LiveGatebell) -> None:
    person = alice(gatebell).username
    made = gatebell.cli("tokens", "create", person, "--name", "script", "--scopes", "read_user")
    assert_invalid(token_info(gatebell, made["token"]))
    headers = {"PRIVATE-TOKEN": made["token"]}
    user = machine(gatebell).get(f"{gatebell.url}/api/v4/user", headers=headers)
    assert user.json()["username"] == person


def test_a_request_without_a_token_is_challenged_without_an_error(gatebell: LiveGatebell) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/oauth/token/info")
    assert_invalid(answer)
    # RFC 6750 section 3.1: nothing was presented that could be wrong.
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Gatebell"'
    unknown = token_info(gatebell, "x")
    assert 'error="invalid_token"' in unknown.headers["WWW-Authenticate"]
