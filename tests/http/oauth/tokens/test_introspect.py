"""An application asks about its own tokens (RFC 7662)."""

import pytest
import requests

from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    make_application,
    make_user,
    open_browser,
    set_state,
)
from tests.support.oauth.oauth_wire import (
    Changes,
    ask,
    assert_refused,
    changed,
    landing,
    machine,
    new_pair,
    new_public_pair,
    pair_in,
    phone_application,
    redeem,
    refresh,
    revoke,
    server_application,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def introspect(
    gatebell: LiveGatebell, client: ClientCredentials, token: str, /, **changes: Changes
) -> requests.Response:
    parameters = {"client_id": client.client_id, "client_secret": client.secret, "token": token}
    return machine(gatebell).post(
        f"{gatebell.url}/oauth/introspect", data=changed(parameters, changes)
    )


def assert_inactive(answer: requests.Response) -> None:
    assert answer.status_code == 200
    assert answer.json() == {"active": False}
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7662-2.2-a", "rfc7662-2.2-c", "rfc7662-4-c")
def test_a_live_access_token_is_described(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    answer = introspect(gatebell, client, pair.access)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.json()
    assert body == {
        "active": True,
        "scope": pair.answer["scope"],
        "client_id": client.client_id,
        "username": alice(gatebell).username,
        "token_type": "bearer",
        "exp": pair.answer["created_at"] + 7200,
        "iat": pair.answer["created_at"],
        "sub": body["sub"],
        "iss": gatebell.url,
    }
    assert body["sub"].isdecimal()


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7662-2.2-c")
def test_a_live_refresh_token_has_no_end_and_is_no_bearer_token(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    body = introspect(gatebell, client, pair.refresh, token_type_hint="refresh_token").json()
    assert body["active"] is True
    assert body["client_id"] == client.client_id
    assert {"exp", "token_type"} & set(body) == set()


@pytest.mark.rfc("rfc7662-2.1-b")
@pytest.mark.parametrize("hint", ["access_token", "refresh_token", "nonsense"])
def test_a_wrong_hint_does_no_harm(gatebell: LiveGatebell, hint: str) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    for token in (pair.access, pair.refresh):
        assert introspect(gatebell, client, token, token_type_hint=hint).json()["active"] is True


@pytest.mark.rfc("rfc7662-2.1-c")
def test_the_client_may_use_basic(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    answer = machine(gatebell).post(
        f"{gatebell.url}/oauth/introspect",
        data={"token": pair.access},
        auth=(client.client_id, client.secret),
    )
    assert answer.json()["active"] is True


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7009-2.1-g", "rfc7662-2.2-a", "rfc7662-2.2-b", "rfc7662-4-a")
def test_dead_tokens_are_inactive(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    revoked, rotated = new_pair(gatebell, client), new_pair(gatebell, client)
    revoke(gatebell, client, revoked.access)
    assert refresh(gatebell, client, rotated.refresh).ok
    for pair in (revoked, rotated):
        for token in (pair.access, pair.refresh):
            assert_inactive(introspect(gatebell, client, token))


@pytest.mark.rfc("rfc7662-2.2-d")
def test_nothing_is_said_of_another_clients_token(gatebell: LiveGatebell) -> None:
    curious = make_application(gatebell, bob(gatebell))
    pair = new_pair(gatebell, server_application(gatebell))
    for token in (pair.access, pair.refresh):
        assert_inactive(introspect(gatebell, curious, token))


@pytest.mark.rfc("rfc7662-2.2-b", "rfc7662-2.3-b")
@pytest.mark.parametrize("token", ["x", "gba-x", "a\x00b", "é", "a" * 3000])
def test_what_is_no_token_is_inactive(gatebell: LiveGatebell, token: str) -> None:
    assert_inactive(introspect(gatebell, server_application(gatebell), token))


def test_a_personal_token_belongs_to_no_client(gatebell: LiveGatebell) -> None:
    personal = gatebell.cli(
        "tokens", "create", alice(gatebell).username, "--name", "x", "--scopes", "api"
    )["token"]
    assert_inactive(introspect(gatebell, server_application(gatebell), personal))


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7662-4-a")
def test_tokens_of_somebody_locked_are_inactive(gatebell: LiveGatebell) -> None:
    client, person = server_application(gatebell), make_user(gatebell)
    code = landing(ask(open_browser(gatebell, person), gatebell, client))["code"]
    pair = pair_in(redeem(gatebell, client, code))
    set_state(gatebell, person, "locked")
    for token in (pair.access, pair.refresh):
        assert_inactive(introspect(gatebell, client, token))


@pytest.mark.rfc("rfc7662-2.1-c", "rfc7662-4-b")
def test_a_public_client_is_refused_with_and_without_its_secret(gatebell: LiveGatebell) -> None:
    client = phone_application(gatebell)
    pair = new_public_pair(gatebell, client)
    for secret in (None, client.secret):
        answer = introspect(gatebell, client, pair.access, client_secret=secret)
        assert_refused(answer, "invalid_client", 401)


@pytest.mark.rfc("rfc7662-2.1-c", "rfc7662-2.3-a")
@pytest.mark.parametrize("secret", [None, "wrong"])
def test_a_client_without_its_secret_is_refused(gatebell: LiveGatebell, secret: str | None) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    answer = introspect(gatebell, client, pair.access, client_secret=secret)
    assert_refused(answer, "invalid_client", 401)


@pytest.mark.rfc("rfc7662-2.1-a")
@pytest.mark.parametrize("token", [None, ["x", "x"]])
def test_one_token_has_to_be_asked_about(gatebell: LiveGatebell, token: list[str] | None) -> None:
    client = server_application(gatebell)
    assert_refused(introspect(gatebell, client, "", token=token), "invalid_request")


@pytest.mark.rfc("rfc7662-2.1-a")
def test_it_is_not_asked_by_get(gatebell: LiveGatebell) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/oauth/introspect")
    assert (answer.status_code, answer.json()["error"]) == (405, "invalid_request")
