"""The refresh token grant, including a refresh token that was used a moment ago."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from time import sleep

import pytest
import requests
from sqlalchemy import select, update

from models import AccessToken, Authorization
from tests.conftest import KINDS
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    set_state,
)
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    Changes,
    TokenPair,
    age_refreshes,
    assert_refused,
    changed,
    is_token_valid,
    machine,
    new_code,
    new_pair,
    new_public_pair,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    phone_application,
    redeem,
    refresh,
    revoke,
    server_application,
    token_info,
)
from tests.support.oauth.proofs import Prover, redeem_with_key, refresh_with_key
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")


def introspected(
    gatebell: LiveGatebell, client: ClientCredentials, token: str
) -> dict[str, object]:
    form = {"client_id": client.client_id, "client_secret": client.secret, "token": token}
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/introspect", data=form)
    found: dict[str, object] = answer.json()
    return found


def renew(gatebell: LiveGatebell, client: ClientCredentials, pair: TokenPair) -> TokenPair:
    return parse_token_pair(refresh(gatebell, client, pair.refresh))


@pytest.mark.both_databases
@pytest.mark.spec("B5")
@pytest.mark.rfc("rfc6749-6-d", "rfc9700-2.2.2-a")
def test_a_refresh_issues_a_new_pair_and_revokes_the_old_pair(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    old = new_pair(gatebell, client)
    answer = refresh(gatebell, client, old.refresh)
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    new = parse_token_pair(answer)
    assert is_token_valid(gatebell, new.access)
    assert not is_token_valid(gatebell, old.access)
    age_refreshes(gatebell, timedelta(minutes=1))
    assert_refused(refresh(gatebell, client, old.refresh), "invalid_grant")
    assert set(new.answer) == set(old.answer)


@pytest.mark.advisory("CVE-2026-73312")
@pytest.mark.both_databases
@pytest.mark.spec("B6")
def test_a_refresh_works_once_after_the_access_token_has_expired(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    with database_of(gatebell) as session:
        session.execute(update(AccessToken).values(expires_at=now() - timedelta(days=100)))
    assert not is_token_valid(gatebell, pair.access)
    assert is_token_valid(gatebell, renew(gatebell, client, pair).access)
    age_refreshes(gatebell, timedelta(minutes=1))
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_grant")


@pytest.mark.spec("B5")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"redirect_uri": CALLBACK}, None),
        ({"code_verifier": VERIFIER}, None),
        ({"redirect_uri": CALLBACK, "code_verifier": VERIFIER}, None),
        ({"redirect_uri": CALLBACK + "/"}, "invalid_grant"),
        ({"code_verifier": VERIFIER + "x"}, "invalid_grant"),
        ({"code_verifier": "short"}, "invalid_grant"),
    ],
)
def test_extra_parameters_must_match_the_authorization(
    gatebell: LiveGatebell,
    client: ClientCredentials,
    changes: dict[str, Changes],
    error: str | None,
) -> None:
    code = new_code(gatebell, client, **PKCE)
    pair = parse_token_pair(redeem(gatebell, client, code, code_verifier=VERIFIER))
    answer = refresh(gatebell, client, pair.refresh, **changes)
    if error is None:
        assert answer.status_code == 200
    else:
        assert_refused(answer, error)
        assert is_token_valid(gatebell, pair.access)


@pytest.mark.rfc("rfc9700-2.1.1-c")
def test_a_verifier_without_a_challenge_is_refused(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    answer = refresh(gatebell, client, pair.refresh, code_verifier=VERIFIER)
    assert_refused(answer, "invalid_grant")


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-3.3-b", "rfc6749-6-a")
def test_the_scope_parameter_narrows_only_the_access_token(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client, scope="read_user read_api")
    narrow = parse_token_pair(refresh(gatebell, client, pair.refresh, scope="read_user"))
    assert narrow.answer["scope"] == "read_user"
    assert token_info(gatebell, narrow.access).json()["scope"] == ["read_user"]
    assert introspected(gatebell, client, narrow.access)["scope"] == "read_user"
    assert introspected(gatebell, client, narrow.refresh)["scope"] == "read_api read_user"
    wide = renew(gatebell, client, narrow)
    assert wide.answer["scope"] == "read_api read_user"
    assert is_token_valid(gatebell, wide.access)


def test_the_page_shows_the_scopes_of_the_refresh_token(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    charlie = make_user(gatebell, name="charlie")
    browser = open_browser(gatebell, charlie)
    code = parse_redirect(
        open_authorization(browser, gatebell, client, scope="read_user read_api")
    )["code"]
    pair = parse_token_pair(redeem(gatebell, client, code))
    parse_token_pair(refresh(gatebell, client, pair.refresh, scope="read_user"))
    page = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    assert "read_api, read_user" in page.text


@pytest.mark.rfc("rfc6749-6-a", "rfc9700-4.14.2-a")
@pytest.mark.parametrize(
    "scope", ["read_user read_api", "read_api", "api", "nonsense", " ", "\x00"]
)
def test_a_wider_scope_is_rejected_and_the_old_pair_stays_valid(
    gatebell: LiveGatebell, client: ClientCredentials, scope: str
) -> None:
    pair = new_pair(gatebell, client, scope="read_user")
    assert_refused(refresh(gatebell, client, pair.refresh, scope=scope), "invalid_scope")
    assert is_token_valid(gatebell, pair.access)
    assert refresh(gatebell, client, pair.refresh, scope="").status_code == 200


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-6-b", "rfc6749-10.4-a", "oidc-core-12-a")
def test_a_refresh_token_of_another_client_is_rejected_and_stays_valid(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    thief = make_application(gatebell, bob(gatebell))
    pair = new_pair(gatebell, client)
    assert_refused(refresh(gatebell, thief, pair.refresh), "invalid_grant")
    assert is_token_valid(gatebell, renew(gatebell, client, pair).access)


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-10.4-a", "rfc9700-2.2.2-a", "rfc9700-4.14.2-b")
def test_a_reused_refresh_token_of_a_public_client_revokes_the_family(
    gatebell: LiveGatebell, phone: ClientCredentials
) -> None:
    first = new_public_pair(gatebell, phone)
    second = parse_token_pair(refresh(gatebell, phone, first.refresh, client_secret=None))
    third = parse_token_pair(refresh(gatebell, phone, second.refresh, client_secret=None))
    stolen = refresh(gatebell, phone, first.refresh, client_secret=None)
    assert_refused(stolen, "invalid_grant")
    assert not is_token_valid(gatebell, third.access)
    assert_refused(refresh(gatebell, phone, third.refresh, client_secret=None), "invalid_grant")


@pytest.mark.both_databases
def test_a_reused_refresh_token_does_not_affect_other_families(
    gatebell: LiveGatebell, phone: ClientCredentials
) -> None:
    other = new_public_pair(gatebell, phone)
    first = new_public_pair(gatebell, phone)
    refresh(gatebell, phone, first.refresh, client_secret=None)
    refresh(gatebell, phone, first.refresh, client_secret=None)
    assert is_token_valid(gatebell, other.access)


@pytest.mark.both_databases
def test_a_reused_refresh_token_of_a_confidential_client_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    first = new_pair(gatebell, client)
    second = renew(gatebell, client, first)
    age_refreshes(gatebell, timedelta(minutes=1))
    assert_refused(refresh(gatebell, client, first.refresh), "invalid_grant")
    assert is_token_valid(gatebell, second.access)


@pytest.mark.both_databases
def test_a_refresh_in_a_revoked_family_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    # Simulates a pair that was issued while its family was revoked.
    pair = new_pair(gatebell, client)
    with database_of(gatebell) as session:
        session.execute(update(Authorization).values(revoked_at=now()))
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_grant")


@pytest.mark.rfc("rfc6749-3.2.1-a", "rfc6749-6-b")
def test_a_confidential_client_must_authenticate_to_refresh(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    for secret in (None, "wrong"):
        answer = refresh(gatebell, client, pair.refresh, client_secret=secret)
        assert_refused(answer, "invalid_client", 401)
    assert refresh(gatebell, client, pair.refresh).status_code == 200


@pytest.mark.rfc("rfc6749-5.2-c", "rfc6749-6-c")
@pytest.mark.parametrize("token", [None, "", "gbr-x", "gbr-" + "0" * 49, "\x00", "é", "x" * 9000])
def test_a_malformed_refresh_token_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials, token: str | None
) -> None:
    error = "invalid_grant" if token else "invalid_request"
    assert_refused(refresh(gatebell, client, "", refresh_token=token), error)


@pytest.mark.advisory("CVE-2026-101023")
@pytest.mark.rfc("rfc6749-6-c")
def test_other_credentials_are_rejected_as_refresh_tokens(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    for other in (pair.access, client.secret, new_code(gatebell, client)):
        assert_refused(refresh(gatebell, client, other), "invalid_grant")
    assert is_token_valid(gatebell, pair.access)


@pytest.mark.rfc("rfc6749-1.5-a")
def test_a_refresh_token_is_rejected_as_an_access_token(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    for credential in (pair.refresh, client.secret, new_code(gatebell, client)):
        assert not is_token_valid(gatebell, credential)
        headers = {"Authorization": f"Bearer {credential}"}
        answer = machine(gatebell).get(f"{gatebell.url}/api/v4/user", headers=headers)
        assert answer.status_code == 401


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9700-4.14.2-c")
@pytest.mark.parametrize("state", ["locked", "blocked"])
def test_tokens_of_a_locked_user_are_invalid(
    gatebell: LiveGatebell, client: ClientCredentials, state: str
) -> None:
    charlie = make_user(gatebell, name="charlie")
    code = parse_redirect(open_authorization(open_browser(gatebell, charlie), gatebell, client))[
        "code"
    ]
    pair = parse_token_pair(redeem(gatebell, client, code))
    set_state(gatebell, charlie, state)
    assert not is_token_valid(gatebell, pair.access)
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_grant")
    set_state(gatebell, charlie, "active")
    assert is_token_valid(gatebell, renew(gatebell, client, pair).access)


def _send_in_turn(
    gatebell: LiveGatebell, form: dict[str, str], pause: float
) -> list[requests.Response]:
    """Send a request four times, with a pause between, on separate connections."""
    barrier = Barrier(4)

    def send(number: int) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            session.get(f"{gatebell.url}/healthz")
            barrier.wait(timeout=60)
            sleep(number * pause)
            return session.post(f"{gatebell.url}/oauth/token", data=form)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(send, range(4)))


@pytest.mark.both_databases
@pytest.mark.spec("B5")
def test_by_default_four_concurrent_refreshes_get_the_same_pair(
    gatebell: LiveGatebell, phone: ClientCredentials
) -> None:
    for _ in range(3):
        old = new_public_pair(gatebell, phone)
        form = {
            "grant_type": "refresh_token",
            "client_id": phone.client_id,
            "refresh_token": old.refresh,
        }
        pairs = [parse_token_pair(answer) for answer in _send_in_turn(gatebell, form, 0.01)]
        assert len({(pair.access, pair.refresh) for pair in pairs}) == 1
        assert is_token_valid(gatebell, pairs[0].access)
        # After eleven seconds, the old token counts as stolen.
        age_refreshes(gatebell, timedelta(seconds=11))
        assert_refused(refresh(gatebell, phone, old.refresh, client_secret=None), "invalid_grant")
        assert not is_token_valid(gatebell, pairs[0].access)
        assert_refused(
            refresh(gatebell, phone, pairs[0].refresh, client_secret=None), "invalid_grant"
        )


# Replays within `refresh_replay_seconds`.


PARALLEL = 16


@pytest.fixture(scope="module", params=KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service that repeats the response of a refresh for half a minute."""
    live: LiveGatebell = request.getfixturevalue(f"live_{request.param}")
    with changed_settings(live, refresh_replay_seconds="30"):
        yield live


def refresh_publicly(gatebell: LiveGatebell, pair: TokenPair) -> requests.Response:
    return refresh(gatebell, phone_application(gatebell), pair.refresh, client_secret=None)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.rfc("rfc9449-5-d")
def test_a_replay_with_a_new_proof_of_the_same_key_gets_the_same_pair(own: LiveGatebell) -> None:
    phone, key = phone_application(own), Prover()
    old = parse_token_pair(redeem_with_key(own, phone, new_code(own, phone, **PKCE), key))
    first = parse_token_pair(refresh_with_key(own, phone, old.refresh, key))
    again = [refresh_with_key(own, phone, old.refresh, key) for _ in range(3)]
    assert {parse_token_pair(each).refresh for each in again} == {first.refresh}
    # No request waits for its own lock. The minimum allows for a slow machine.
    assert min(each.elapsed for each in again) < timedelta(seconds=3)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("B5")
def test_a_replay_gets_the_same_pair(own: LiveGatebell) -> None:
    client = server_application(own)
    old = new_pair(own, client)
    first = parse_token_pair(refresh(own, client, old.refresh))
    sleep(1.1)
    answer = refresh(own, client, old.refresh)
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    again = parse_token_pair(answer)
    assert (again.access, again.refresh) == (first.access, first.refresh)
    assert list(again.answer) == list(first.answer)
    assert again.answer["scope"] == first.answer["scope"]
    assert again.answer["created_at"] == first.answer["created_at"]
    assert 7140 <= again.answer["expires_in"] < first.answer["expires_in"]
    assert is_token_valid(own, again.access)
    assert not is_token_valid(own, old.access)


@pytest.mark.long
def test_a_pair_from_a_replay_can_be_refreshed(own: LiveGatebell) -> None:
    first = new_public_pair(own, phone_application(own))
    second = parse_token_pair(refresh_publicly(own, first))
    assert parse_token_pair(refresh_publicly(own, first)).refresh == second.refresh
    third = parse_token_pair(refresh_publicly(own, second))
    assert is_token_valid(own, third.access)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("B5")
def test_sixteen_concurrent_refreshes_get_the_same_pair(own: LiveGatebell) -> None:
    for client in (server_application(own), phone_application(own)):
        is_public = client == phone_application(own)
        old = new_public_pair(own, client) if is_public else new_pair(own, client)
        form = {
            "grant_type": "refresh_token",
            "client_id": client.client_id,
            "refresh_token": old.refresh,
            **({} if is_public else {"client_secret": client.secret}),
        }
        pairs = [parse_token_pair(answer) for answer in _send_concurrently(own, form)]
        assert len({(pair.access, pair.refresh) for pair in pairs}) == 1
        assert is_token_valid(own, pairs[0].access)
        with database_of(own) as session:
            (row,) = session.scalars(
                select(AccessToken).order_by(AccessToken.id.desc()).limit(1)
            ).all()
            family = AccessToken.authorization_id == row.authorization_id
            assert len(session.scalars(select(AccessToken).where(family)).all()) == 2


def _send_concurrently(gatebell: LiveGatebell, form: dict[str, str]) -> list[requests.Response]:
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
def test_a_late_replay_revokes_the_family_of_a_public_client(
    own: LiveGatebell,
) -> None:
    first = new_public_pair(own, phone_application(own))
    second = parse_token_pair(refresh_publicly(own, first))
    age_refreshes(own, timedelta(seconds=31))
    assert_refused(refresh_publicly(own, first), "invalid_grant")
    assert not is_token_valid(own, second.access)
    assert_refused(refresh_publicly(own, second), "invalid_grant")


@pytest.mark.both_databases
def test_a_revoked_pair_is_not_replayed(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    second = parse_token_pair(refresh(own, client, first.refresh))
    assert revoke(own, client, second.access).status_code == 200
    assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    assert not is_token_valid(own, second.access)


def test_a_replay_of_another_client_is_rejected(own: LiveGatebell) -> None:
    client = server_application(own)
    thief = make_application(own, bob(own))
    first = new_pair(own, client)
    second = parse_token_pair(refresh(own, client, first.refresh))
    assert_refused(refresh(own, thief, first.refresh), "invalid_grant")
    assert_refused(refresh(own, client, first.refresh, client_secret="x"), "invalid_client", 401)
    assert is_token_valid(own, second.access)


@pytest.mark.both_databases
def test_a_replay_for_a_locked_user_is_rejected(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    refresh(own, client, first.refresh)
    set_state(own, alice(own), "locked")
    try:
        assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    finally:
        set_state(own, alice(own), "active")


def test_a_replay_with_wrong_parameters_is_rejected(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client, scope="read_user read_api")
    narrow = parse_token_pair(refresh(own, client, first.refresh, scope="read_user"))
    assert parse_token_pair(refresh(own, client, first.refresh)).answer["scope"] == "read_user"
    # The response contains the scope of the pair.
    for scope in ("read_user", "read_user read_api"):
        same = parse_token_pair(refresh(own, client, first.refresh, scope=scope))
        assert (same.refresh, same.answer["scope"]) == (narrow.refresh, "read_user")
    for scope in ("read_api", "api"):
        assert_refused(refresh(own, client, first.refresh, scope=scope), "invalid_scope")
    wrong = refresh(own, client, first.refresh, code_verifier=VERIFIER)
    assert_refused(wrong, "invalid_grant")
    wrong = refresh(own, client, first.refresh, redirect_uri="https://a.example/")
    assert_refused(wrong, "invalid_grant")
    assert is_token_valid(own, narrow.access)


@pytest.mark.long
def test_a_replay_of_an_expired_pair_has_no_lifetime(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    second = parse_token_pair(refresh(own, client, first.refresh))
    with database_of(own) as session:
        past = now() - timedelta(hours=1)
        session.execute(update(AccessToken).values(expires_at=past))
    again = parse_token_pair(refresh(own, client, first.refresh))
    assert again.answer["expires_in"] == 0
    assert parse_token_pair(refresh(own, client, second.refresh)).answer["expires_in"] == 7200


@pytest.mark.long
def test_replayed_tokens_have_the_same_length_and_are_not_logged(own: LiveGatebell) -> None:
    client = server_application(own)
    first = new_pair(own, client)
    second = parse_token_pair(refresh(own, client, first.refresh))
    assert len(second.access) == len(first.access)
    assert second.access.removeprefix("gba-")[:43] != second.refresh.removeprefix("gbr-")[:43]
    log = own.log_text()
    assert second.access not in log
    assert second.refresh not in log


@pytest.mark.long
def test_without_the_setting_replays_are_rejected(own: LiveGatebell) -> None:
    client = server_application(own)
    with changed_settings(own, refresh_replay_seconds="0"):
        first = new_pair(own, client)
        second = parse_token_pair(refresh(own, client, first.refresh))
        assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    # The response was not stored, so the setting cannot bring it back.
    assert_refused(refresh(own, client, first.refresh), "invalid_grant")
    assert is_token_valid(own, second.access)


@pytest.mark.long
def test_a_replay_time_over_a_minute_is_rejected(own: LiveGatebell) -> None:
    assert own.run_cli("settings", "set", "refresh_replay_seconds", "61").returncode == 1
