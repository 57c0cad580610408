"""POST /oauth/revoke."""

import pytest
import requests

from tests.support.accounts.people import ClientCredentials, bob, make_application
from tests.support.oauth.oauth_wire import (
    Changes,
    assert_refused,
    is_live,
    machine,
    new_pair,
    new_public_pair,
    pair_in,
    phone_application,
    refresh,
    revoke,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def assert_done(answer: requests.Response) -> None:
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.both_databases
@pytest.mark.spec("D3")
@pytest.mark.rfc(
    "rfc7009-2-a",
    "rfc7009-2.1-d",
    "rfc7009-2.1-e",
    "rfc7009-2.1-f",
    "rfc7009-2.1-g",
    "rfc9700-4.9.1-a",
)
@pytest.mark.parametrize("which", ["access", "refresh"])
@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "nonsense"])
def test_either_token_kills_the_pair_whatever_the_hint(
    gatebell: LiveGatebell, client: ClientCredentials, which: str, hint: str | None
) -> None:
    pair = new_pair(gatebell, client)
    token = pair.access if which == "access" else pair.refresh
    assert_done(revoke(gatebell, client, token, token_type_hint=hint))
    assert not is_live(gatebell, pair.access)
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_grant")


@pytest.mark.spec("D3")
def test_the_secret_may_come_in_a_basic_header(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    address, form = f"{gatebell.url}/oauth/revoke", {"token": pair.access}
    credentials = (client.client_id, client.secret)
    assert_done(machine(gatebell).post(address, form, auth=credentials))
    assert not is_live(gatebell, pair.access)


@pytest.mark.spec("D3")
@pytest.mark.rfc("rfc7009-2.2-a")
def test_a_token_that_nobody_knows_is_as_good_as_dead(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    assert_done(revoke(gatebell, client, "gba-unknown"))
    pair = new_pair(gatebell, client)
    assert_done(revoke(gatebell, client, pair.access))
    assert_done(revoke(gatebell, client, pair.access))


@pytest.mark.both_databases
@pytest.mark.spec("D3")
def test_only_the_pair_dies_and_others_of_the_same_person_live_on(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    one, other = new_pair(gatebell, client), new_pair(gatebell, client)
    assert_done(revoke(gatebell, client, one.access))
    assert is_live(gatebell, other.access)


@pytest.mark.spec("D3")
def test_a_pair_that_was_refreshed_can_still_be_revoked(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    new = pair_in(refresh(gatebell, client, new_pair(gatebell, client).refresh))
    assert_done(revoke(gatebell, client, new.refresh))
    assert not is_live(gatebell, new.access)


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7009-2.1-c")
@pytest.mark.parametrize("which", ["access", "refresh"])
def test_a_token_of_another_client_lives_on(
    gatebell: LiveGatebell, client: ClientCredentials, which: str
) -> None:
    other = make_application(gatebell, bob(gatebell))
    pair = new_pair(gatebell, client)
    token = pair.access if which == "access" else pair.refresh
    assert_refused(revoke(gatebell, other, token), "unauthorized_client", 403)
    assert is_live(gatebell, pair.access)
    assert refresh(gatebell, client, pair.refresh).status_code == 200


@pytest.mark.rfc("rfc7009-2.1-b", "rfc7009-2.2.1-a")
@pytest.mark.parametrize(
    "changes", [{"client_secret": "wrong"}, {"client_secret": None}, {"client_id": "0" * 64}]
)
def test_a_client_that_cannot_prove_itself_revokes_nothing(
    gatebell: LiveGatebell, client: ClientCredentials, changes: dict[str, Changes]
) -> None:
    pair = new_pair(gatebell, client)
    answer = revoke(gatebell, client, pair.access, **changes)
    assert_refused(answer, "invalid_client", 401)
    assert is_live(gatebell, pair.access)


@pytest.mark.rfc("rfc7009-2.1-b")
def test_a_failed_basic_header_is_answered_with_a_challenge(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    address = f"{gatebell.url}/oauth/revoke"
    answer = machine(gatebell).post(address, {"token": "x"}, auth=(client.client_id, "wrong"))
    assert_refused(answer, "invalid_client", 401)
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.spec("D3")
def test_a_public_client_needs_only_its_id(gatebell: LiveGatebell) -> None:
    phone = phone_application(gatebell)
    pair = new_public_pair(gatebell, phone)
    wrong = revoke(gatebell, phone, pair.access, client_secret="wrong")
    assert_refused(wrong, "invalid_client", 401)
    assert is_live(gatebell, pair.access)
    assert_done(revoke(gatebell, phone, pair.access, client_secret=None))
    assert not is_live(gatebell, pair.access)


@pytest.mark.rfc("rfc7009-2.1-a", "rfc7009-2.2.1-a")
@pytest.mark.parametrize("token", [None, "", ["gba-x", "gba-y"]])
def test_one_token_must_be_named(
    gatebell: LiveGatebell, client: ClientCredentials, token: Changes
) -> None:
    assert_refused(revoke(gatebell, client, "", token=token), "invalid_request")


@pytest.mark.rfc("rfc7009-2.1-a")
def test_tokens_are_revoked_by_post_only(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    pair = new_pair(gatebell, client)
    form = {"client_id": client.client_id, "client_secret": client.secret, "token": pair.access}
    answer = machine(gatebell).get(f"{gatebell.url}/oauth/revoke", params=form)
    assert answer.status_code == 405
    assert is_live(gatebell, pair.access)
