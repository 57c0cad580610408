"""Tests of `GET /api/v4/user`: the user of a token, and the places of a token in a request."""

from functools import cache
from itertools import combinations

import pytest
import requests

from tests.support.accounts.people import Person, alice, make_user, set_state
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
#: Places of a token: two headers, and two parameters of the query.
PLACES = ("Authorization", "PRIVATE_TOKEN", "access_token", "private_token")
HEADERS = {"Authorization": "Bearer {}", "PRIVATE_TOKEN": "{}"}


@cache
def token_of(gatebell: LiveGatebell, person: Person, scopes: str = "read_user") -> str:
    """Create a personal access token as an operator."""
    arguments = ("tokens", "create", person.username, "--name", "script", "--scopes", scopes)
    token: str = gatebell.cli(*arguments)["token"]
    return token


def ask(
    gatebell: LiveGatebell, path: str = "user", query: str = "", **headers: str
) -> requests.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return requests.get(f"{gatebell.url}/api/v4/{path}{query}", headers=given, timeout=30)


@pytest.mark.both_databases
@pytest.mark.spec("G1", "M1")
@pytest.mark.rfc("rfc6750-2.1-a", "rfc6750-2.3-a")
def test_a_token_can_be_sent_in_three_places(gatebell: LiveGatebell) -> None:
    token = token_of(gatebell, alice(gatebell))
    answers = [
        ask(gatebell, Authorization=f"Bearer {token}"),
        ask(gatebell, Authorization=f"bearer {token}"),
        ask(gatebell, query=f"?access_token={token}"),
        ask(gatebell, PRIVATE_TOKEN=token),
    ]
    for answer in answers:
        assert answer.status_code == 200
        body = answer.json()
        assert body["username"] == alice(gatebell).username
        assert body["email"] == alice(gatebell).email
        assert body["state"] == "active"
        assert "is_admin" not in body
        assert "password" not in answer.text
        assert "Set-Cookie" not in answer.headers


@pytest.mark.spec("G1")
def test_an_unchanged_user_is_not_sent_again(gatebell: LiveGatebell) -> None:
    token = token_of(gatebell, alice(gatebell))
    first = ask(gatebell, query="?unknown=1", PRIVATE_TOKEN=token)
    assert first.status_code == 200
    unchanged = ask(gatebell, PRIVATE_TOKEN=token, If_None_Match=first.headers["ETag"])
    assert (unchanged.status_code, unchanged.text) == (304, "")
    other = token_of(gatebell, make_user(gatebell))
    assert (
        ask(gatebell, PRIVATE_TOKEN=other, If_None_Match=first.headers["ETag"]).status_code == 200
    )


@pytest.mark.spec("G1")
@pytest.mark.rfc("rfc6750-2-a", "rfc6750-3.1-a")
@pytest.mark.parametrize(
    "places",
    [*combinations(PLACES, 2), ("access_token",) * 2, ("private_token",) * 2],
    ids=" and ".join,
)
def test_a_repeated_token_is_accepted_and_different_tokens_are_rejected(
    gatebell: LiveGatebell, places: tuple[str, str]
) -> None:
    token, other = (token_of(gatebell, alice(gatebell), scopes) for scopes in ("read_user", "api"))
    for second, status in ((token, 200), (other, 400)):
        sent = list(zip(places, (token, second), strict=True))
        query = "&".join(f"{place}={value}" for place, value in sent if place not in HEADERS)
        headers = {place: HEADERS[place].format(value) for place, value in sent if place in HEADERS}
        answer = ask(gatebell, query=f"?{query}", **headers)
        assert answer.status_code == status, answer.text
        if status == 400:
            assert answer.json()["error"] == "invalid_request"
            assert "two different access tokens" in answer.json()["error_description"]


@pytest.mark.spec("G1")
@pytest.mark.rfc("rfc6750-3-a", "rfc6750-3-c", "rfc9728-5.1-a")
def test_a_request_without_a_valid_token_is_rejected_with_a_challenge(
    gatebell: LiveGatebell,
) -> None:
    described = f"{gatebell.url}/.well-known/oauth-protected-resource/api/v4"
    challenge = f'Bearer realm="Gatebell", resource_metadata="{described}"'
    for value in (
        *("", "Bearer", "Bearer ", "Basic YTpi", "Bearer gba-unknown", "Bearer gbp-" + "x" * 50),
        *("Bearer \xe9", "Bearer a b", "Bearer " + "x" * 8_000),
    ):
        answer = ask(gatebell, Authorization=value)
        assert answer.status_code == 401, value
        assert answer.json() == {"message": "401 Unauthorized"}
        assert answer.headers["WWW-Authenticate"].startswith(challenge)
        # A request without a token gets no error code (RFC 6750 section 3.1).
        is_named = "error=" in answer.headers["WWW-Authenticate"]
        assert is_named == (value.startswith("Bearer ") and value != "Bearer ")


@pytest.mark.rfc("rfc6750-2.3-b")
def test_responses_to_a_token_in_the_address_are_private(gatebell: LiveGatebell) -> None:
    token = token_of(gatebell, alice(gatebell))
    for path in ("user", "version"):
        answer = ask(gatebell, path, query=f"?access_token={token}")
        assert answer.status_code == 200
        assert "private" in answer.headers["Cache-Control"]


@pytest.mark.spec("G5")
@pytest.mark.rfc("rfc6749-7-a", "rfc6750-3.1-c", "rfc9700-2.3-a")
def test_a_token_without_the_scope_is_rejected_with_the_needed_scope(
    gatebell: LiveGatebell,
) -> None:
    answer = ask(gatebell, PRIVATE_TOKEN=token_of(gatebell, alice(gatebell), "read_repository"))
    assert answer.status_code == 403
    assert answer.json()["error"] == "insufficient_scope"
    assert "read_user" in answer.json()["scope"].split()


@pytest.mark.both_databases
@pytest.mark.spec("G1")
def test_tokens_of_locked_and_blocked_users_are_rejected(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    token = token_of(gatebell, person)
    for state, status in (("active", 200), ("locked", 401), ("blocked", 401)):
        set_state(gatebell, person, state)
        assert ask(gatebell, PRIVATE_TOKEN=token).status_code == status


@pytest.mark.spec("M1")
def test_only_requests_with_a_token_can_read_the_release(gatebell: LiveGatebell) -> None:
    token = token_of(gatebell, alice(gatebell))
    for path in ("version", "metadata"):
        assert ask(gatebell, path, PRIVATE_TOKEN=token).json()["version"] == "18.0.0"
        assert ask(gatebell, path).status_code == 401
