"""A used refresh token within `refresh_replay_seconds`: the same pair again, and nothing more."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from time import sleep

import pytest
import requests
from sqlalchemy import select, update

from models import AccessToken
from tests.conftest import KINDS
from tests.support.accounts.people import alice, bob, database_of, make_application, now, set_state
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    TokenPair,
    age_refreshes,
    assert_refused,
    changed,
    is_live,
    new_code,
    new_pair,
    new_public_pair,
    pair_in,
    phone_application,
    refresh,
    revoke,
    server_application,
)
from tests.support.oauth.proofs import Prover, redeem_with_key, refresh_with_key
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")

PARALLEL = 16


@pytest.fixture(scope="module", params=KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service that sends an answer again for half a minute."""
    live: LiveGatebell = request.getfixturevalue(f"live_{request.param}")
    with changed_settings(live, refresh_replay_seconds="30"):
        yield live


def refresh_publicly(gatebell: LiveGatebell, pair: TokenPair) -> requests.Response:
    return refresh(gatebell, phone_application(gatebell), pair.refresh, client_secret=None)


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9449-5-d")
def test_the_same_key_gets_it_again_with_a_new_proof(own: LiveGatebell) -> None:
    phone, key = phone_application(own), Prover()
    old = pair_in(redeem_with_key(own, phone, new_code(own, phone, **PKCE), key))
    first = pair_in(refresh_with_key(own, phone, old.refresh, key))
    again = [refresh_with_key(own, phone, old.refresh, key) for _ in range(3)]
    assert {pair_in(each).refresh for each in again} == {first.refresh}
    # Nobody has waited for a lock of their own; a machine may stand still, but not each time.
    assert min(each.elapsed for each in again) < timedelta(seconds=3)


@pytest.mark.both_databases
@pytest.mark.spec("B5")
def test_within_the_time_the_same_client_gets_the_same_pair_again(own: LiveGatebell) -> None:
    client = server_application(own)
    old = new_pair(own, client)
    first = pair_in(refresh(own, client, old.refresh))
    sleep(1.1)
    answer = refresh(own, client, old.refresh)
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    again = pair_in(answer)
    assert (again.access, again.refresh) == (first.access, first.refresh)
    assert list(again.answer) == list(first.answer)
    assert again.answer["scope"] == first.answer["scope"]
    assert again.answer["created_at"] == first.answer["created_at"]
    assert 7140 <= again.answer["expires_in"] < first.answer["expires_in"]
    assert is_live(own, again.access)
    assert not is_live(own, old.access)


def test_the_pair_that_was_sent_again_goes_on(own: LiveGatebell) -> None:
    first = new_public_pair(own, phone_application(own))
    second = pair_in(refresh_publicly(own, first))
    assert pair_in(refresh_publicly(own, first)).refresh == second.refresh
    third = pair_in(refresh_publicly(own, second))
    assert is_live(own, third.access)


@pytest.mark.both_databases
@pytest.mark.spec("B5")
def test_sixteen_at_once_all_get_the_same_pair(own: LiveGatebell) -> None:
    for client in (server_application(own), phone_application(own)):
        is_public = client == phone_application(own)
        old = new_public_pair(own, client) if is_public else new_pair(own, client)
        form = {
            "grant_type": "refresh_token",
            "client_id": client.client_id,
            "refresh_token": old.refresh,
            **({} if is_public else {"client_secret": client.secret}),
        }
        pairs = [pair_in(answer) for answer in _all_at_once(own, form)]
        assert len({(pair.access, pair.refresh) for pair in pairs}) == 1
        assert is_live(own, pairs[0].access)
        with database_of(own) as session:
            (row,) = session.scalars(
                select(AccessToken).order_by(AccessToken.id.desc()).limit(1)
            ).all()
            family = AccessToken.authorization_id == row.authorization_id
            assert len(session.scalars(select(AccessToken).where(family)).all()) == 2


def _all_at_once(gatebell: LiveGatebell, form: dict[str, str]) -> list[requests.Response]:
    barrier = Barrier(PARALLEL)

    def send(_number: int) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            session.get(f"{gatebell.url}/healthz")
            barrier.wait(timeout=60)
            return session.post(f"{gatebell.url}/oauth/token", data=changed(form, {}))

    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(send, range(PARALLEL)))


@pytest.mark.both_databases
def test_after_the_time_it_is_dead_and_ends_the_family_of_a_public_client(
    own: LiveGatebell,
) -> None:
    first = new_public_pair(own, phone_application(own))
    second = pair_in(refresh_publicly(own, first))
    age_refreshes(own, timedelta(seconds=31))
    assert_refused(refresh_publicly(own, first), "invalid_grant")
    assert not is_live(own, second.access)
    assert_refused(refresh_publicly(own, second), "invalid_grant")


def test_after_the_time_a_client_with_a_secret_is_only_refused(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    second = pair_in(refresh(own, client, first.refresh))
    age_refreshes(own, timedelta(seconds=31))
    assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    assert is_live(own, second.access)


@pytest.mark.both_databases
def test_once_the_new_pair_was_refreshed_the_old_token_is_a_thiefs(own: LiveGatebell) -> None:
    first = new_public_pair(own, phone_application(own))
    second = pair_in(refresh_publicly(own, first))
    third = pair_in(refresh_publicly(own, second))
    assert_refused(refresh_publicly(own, first), "invalid_grant")
    assert not is_live(own, third.access)


@pytest.mark.both_databases
def test_a_pair_that_was_given_back_does_not_come_back(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    second = pair_in(refresh(own, client, first.refresh))
    assert revoke(own, client, second.access).status_code == 200
    assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    assert not is_live(own, second.access)


def test_a_token_that_died_otherwise_has_no_successor(own: LiveGatebell) -> None:
    client = server_application(own)
    pair = new_pair(own, client)
    revoke(own, client, pair.access)
    assert_refused(refresh(own, client, pair.refresh), "invalid_grant")


def test_another_client_gets_nothing(own: LiveGatebell) -> None:
    client = server_application(own)
    thief = make_application(own, bob(own))
    first = new_pair(own, client)
    second = pair_in(refresh(own, client, first.refresh))
    assert_refused(refresh(own, thief, first.refresh), "invalid_grant")
    assert_refused(refresh(own, client, first.refresh, client_secret="x"), "invalid_client", 401)
    assert is_live(own, second.access)


@pytest.mark.both_databases
def test_a_person_who_is_locked_gives_nothing(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    refresh(own, client, first.refresh)
    set_state(own, alice(own), "locked")
    try:
        assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    finally:
        set_state(own, alice(own), "active")


def test_what_is_sent_along_must_still_be_right(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client, scope="read_user read_api")
    narrow = pair_in(refresh(own, client, first.refresh, scope="read_user"))
    assert pair_in(refresh(own, client, first.refresh)).answer["scope"] == "read_user"
    for scope in ("read_user", "read_user read_api"):  # the answer says what the pair is good for
        same = pair_in(refresh(own, client, first.refresh, scope=scope))
        assert (same.refresh, same.answer["scope"]) == (narrow.refresh, "read_user")
    for scope in ("read_api", "api"):
        assert_refused(refresh(own, client, first.refresh, scope=scope), "invalid_scope")
    wrong = refresh(own, client, first.refresh, code_verifier=VERIFIER)
    assert_refused(wrong, "invalid_grant")
    wrong = refresh(own, client, first.refresh, redirect_uri="https://a.example/")
    assert_refused(wrong, "invalid_grant")
    assert is_live(own, narrow.access)


def test_an_expired_successor_is_sent_with_no_time_left(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    second = pair_in(refresh(own, client, first.refresh))
    with database_of(own) as session:
        past = now() - timedelta(hours=1)
        session.execute(update(AccessToken).values(expires_at=past))
    again = pair_in(refresh(own, client, first.refresh))
    assert again.answer["expires_in"] == 0
    assert pair_in(refresh(own, client, second.refresh)).answer["expires_in"] == 7200


def test_tokens_are_as_long_and_as_well_hidden_as_others(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    second = pair_in(refresh(own, client, first.refresh))
    assert len(second.access) == len(first.access)
    assert second.access.removeprefix("gba-")[:43] != second.refresh.removeprefix("gbr-")[:43]
    log = own.log_text()
    assert second.access not in log
    assert second.refresh not in log


def test_without_the_setting_nothing_is_sent_again(own: LiveGatebell) -> None:
    client = server_application(own)
    with changed_settings(own, refresh_replay_seconds="0"):
        first = new_pair(own, client)
        second = pair_in(refresh(own, client, first.refresh))
        assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    # What was not made to be sent again stays so.
    assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    assert is_live(own, second.access)


def test_at_most_a_minute_may_be_set(own: LiveGatebell) -> None:
    assert own.run_cli("settings", "set", "refresh_replay_seconds", "61").returncode == 1
