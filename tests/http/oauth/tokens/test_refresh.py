"""POST /oauth/token with a refresh token."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from time import sleep

import pytest
import requests
from sqlalchemy import update

from models import AccessToken, Authorization
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
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
    ask,
    assert_refused,
    is_live,
    landing,
    machine,
    new_code,
    new_pair,
    new_public_pair,
    pair_in,
    redeem,
    refresh,
    token_info,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def introspected(
    gatebell: LiveGatebell, client: ClientCredentials, token: str
) -> dict[str, object]:
    form = {"client_id": client.client_id, "client_secret": client.secret, "token": token}
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/introspect", data=form)
    found: dict[str, object] = answer.json()
    return found


def renew(gatebell: LiveGatebell, client: ClientCredentials, pair: TokenPair) -> TokenPair:
    return pair_in(refresh(gatebell, client, pair.refresh))


@pytest.mark.both_databases
@pytest.mark.spec("B5")
@pytest.mark.rfc("rfc6749-6-d", "rfc9700-2.2.2-a")
def test_a_refresh_issues_a_new_pair_and_kills_the_old_one(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    old = new_pair(gatebell, client)
    answer = refresh(gatebell, client, old.refresh)
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    new = pair_in(answer)
    assert is_live(gatebell, new.access)
    assert not is_live(gatebell, old.access)
    age_refreshes(gatebell, timedelta(minutes=1))
    assert_refused(refresh(gatebell, client, old.refresh), "invalid_grant")
    assert set(new.answer) == set(old.answer)


@pytest.mark.both_databases
@pytest.mark.spec("B6")
def test_a_refresh_works_after_the_access_token_has_expired(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    with database_of(gatebell) as session:
        session.execute(update(AccessToken).values(expires_at=now() - timedelta(days=100)))
    assert not is_live(gatebell, pair.access)
    assert is_live(gatebell, renew(gatebell, client, pair).access)


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
def test_what_is_sent_along_must_be_that_of_the_authorization(
    gatebell: LiveGatebell,
    client: ClientCredentials,
    changes: dict[str, Changes],
    error: str | None,
) -> None:
    code = new_code(gatebell, client, **PKCE)
    pair = pair_in(redeem(gatebell, client, code, code_verifier=VERIFIER))
    answer = refresh(gatebell, client, pair.refresh, **changes)
    if error is None:
        assert answer.status_code == 200
    else:
        assert_refused(answer, error)
        assert is_live(gatebell, pair.access)


@pytest.mark.rfc("rfc9700-2.1.1-c")
def test_a_verifier_without_a_challenge_is_refused(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    answer = refresh(gatebell, client, pair.refresh, code_verifier=VERIFIER)
    assert_refused(answer, "invalid_grant")


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-3.3-b", "rfc6749-6-a")
def test_scope_may_narrow_for_the_access_token_alone(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client, scope="read_user read_api")
    narrow = pair_in(refresh(gatebell, client, pair.refresh, scope="read_user"))
    assert narrow.answer["scope"] == "read_user"
    assert token_info(gatebell, narrow.access).json()["scope"] == ["read_user"]
    assert introspected(gatebell, client, narrow.access)["scope"] == "read_user"
    assert introspected(gatebell, client, narrow.refresh)["scope"] == "read_api read_user"
    wide = renew(gatebell, client, narrow)
    assert wide.answer["scope"] == "read_api read_user"
    assert is_live(gatebell, wide.access)


def test_who_looks_at_a_narrowed_token_sees_what_its_refresh_token_can_do(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    charlie = make_user(gatebell, name="charlie")
    browser = open_browser(gatebell, charlie)
    code = landing(ask(browser, gatebell, client, scope="read_user read_api"))["code"]
    pair = pair_in(redeem(gatebell, client, code))
    pair_in(refresh(gatebell, client, pair.refresh, scope="read_user"))
    page = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    assert "read_api, read_user" in page.text


@pytest.mark.rfc("rfc6749-6-a", "rfc9700-4.14.2-a")
@pytest.mark.parametrize(
    "scope", ["read_user read_api", "read_api", "api", "nonsense", " ", "\x00"]
)
def test_scope_never_widens_and_the_old_pair_lives_on(
    gatebell: LiveGatebell, client: ClientCredentials, scope: str
) -> None:
    pair = new_pair(gatebell, client, scope="read_user")
    assert_refused(refresh(gatebell, client, pair.refresh, scope=scope), "invalid_scope")
    assert is_live(gatebell, pair.access)
    assert refresh(gatebell, client, pair.refresh, scope="").status_code == 200


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-6-b", "rfc6749-10.4-a", "oidc-core-12-a")
def test_a_refresh_token_of_another_client_is_refused_and_lives_on(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    thief = make_application(gatebell, bob(gatebell))
    pair = new_pair(gatebell, client)
    assert_refused(refresh(gatebell, thief, pair.refresh), "invalid_grant")
    assert is_live(gatebell, renew(gatebell, client, pair).access)


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-10.4-a", "rfc9700-2.2.2-a", "rfc9700-4.14.2-b")
def test_a_dead_refresh_token_of_a_public_client_ends_the_whole_family(
    gatebell: LiveGatebell, phone: ClientCredentials
) -> None:
    first = new_public_pair(gatebell, phone)
    second = pair_in(refresh(gatebell, phone, first.refresh, client_secret=None))
    third = pair_in(refresh(gatebell, phone, second.refresh, client_secret=None))
    stolen = refresh(gatebell, phone, first.refresh, client_secret=None)
    assert_refused(stolen, "invalid_grant")
    assert not is_live(gatebell, third.access)
    assert_refused(refresh(gatebell, phone, third.refresh, client_secret=None), "invalid_grant")


@pytest.mark.both_databases
def test_a_dead_refresh_token_of_another_family_ends_only_its_own(
    gatebell: LiveGatebell, phone: ClientCredentials
) -> None:
    other = new_public_pair(gatebell, phone)
    first = new_public_pair(gatebell, phone)
    refresh(gatebell, phone, first.refresh, client_secret=None)
    refresh(gatebell, phone, first.refresh, client_secret=None)
    assert is_live(gatebell, other.access)


@pytest.mark.both_databases
def test_a_dead_refresh_token_of_a_client_with_a_secret_is_only_refused(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    first = new_pair(gatebell, client)
    second = renew(gatebell, client, first)
    age_refreshes(gatebell, timedelta(minutes=1))
    assert_refused(refresh(gatebell, client, first.refresh), "invalid_grant")
    assert is_live(gatebell, second.access)


@pytest.mark.both_databases
def test_nothing_is_issued_in_a_family_that_was_revoked(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    # As if a pair had been on its way while its family was revoked.
    pair = new_pair(gatebell, client)
    with database_of(gatebell) as session:
        session.execute(update(Authorization).values(revoked_at=now()))
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_grant")


@pytest.mark.rfc("rfc6749-3.2.1-a", "rfc6749-6-b")
def test_a_client_with_a_secret_must_prove_itself_to_refresh(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    for secret in (None, "wrong"):
        answer = refresh(gatebell, client, pair.refresh, client_secret=secret)
        assert_refused(answer, "invalid_client", 401)
    assert refresh(gatebell, client, pair.refresh).status_code == 200


@pytest.mark.rfc("rfc6749-5.2-c", "rfc6749-6-c")
@pytest.mark.parametrize("token", [None, "", "gbr-x", "gbr-" + "0" * 49, "\x00", "é", "x" * 9000])
def test_what_is_no_refresh_token_is_refused(
    gatebell: LiveGatebell, client: ClientCredentials, token: str | None
) -> None:
    error = "invalid_grant" if token else "invalid_request"
    assert_refused(refresh(gatebell, client, "", refresh_token=token), error)


@pytest.mark.rfc("rfc6749-6-c")
def test_no_other_credential_passes_for_a_refresh_token(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    for other in (pair.access, client.secret, new_code(gatebell, client)):
        assert_refused(refresh(gatebell, client, other), "invalid_grant")
    assert is_live(gatebell, pair.access)


@pytest.mark.rfc("rfc6749-1.5-a")
def test_a_refresh_token_opens_nothing(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    pair = new_pair(gatebell, client)
    for credential in (pair.refresh, client.secret, new_code(gatebell, client)):
        assert not is_live(gatebell, credential)
        headers = {"Authorization": f"Bearer {credential}"}
        answer = machine(gatebell).get(f"{gatebell.url}/api/v4/user", headers=headers)
        assert answer.status_code == 401


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9700-4.14.2-c")
@pytest.mark.parametrize("state", ["locked", "blocked"])
def test_a_person_who_is_locked_gives_nothing_any_more(
    gatebell: LiveGatebell, client: ClientCredentials, state: str
) -> None:
    charlie = make_user(gatebell, name="charlie")
    code = landing(ask(open_browser(gatebell, charlie), gatebell, client))["code"]
    pair = pair_in(redeem(gatebell, client, code))
    set_state(gatebell, charlie, state)
    assert not is_live(gatebell, pair.access)
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_grant")
    set_state(gatebell, charlie, "active")
    assert is_live(gatebell, renew(gatebell, client, pair).access)


def _one_after_another(
    gatebell: LiveGatebell, form: dict[str, str], pause: float
) -> list[requests.Response]:
    """Send a request four times, each a moment after the one before, on its own connection."""
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
def test_by_default_four_tabs_that_refresh_at_once_stay_signed_in(
    gatebell: LiveGatebell, phone: ClientCredentials
) -> None:
    for _ in range(3):
        old = new_public_pair(gatebell, phone)
        form = {
            "grant_type": "refresh_token",
            "client_id": phone.client_id,
            "refresh_token": old.refresh,
        }
        pairs = [pair_in(answer) for answer in _one_after_another(gatebell, form, 0.01)]
        assert len({(pair.access, pair.refresh) for pair in pairs}) == 1
        assert is_live(gatebell, pairs[0].access)
        # The day after, as if eleven seconds were one: the old token is a thief's.
        age_refreshes(gatebell, timedelta(seconds=11))
        assert_refused(refresh(gatebell, phone, old.refresh, client_secret=None), "invalid_grant")
        assert not is_live(gatebell, pairs[0].access)
        assert_refused(
            refresh(gatebell, phone, pairs[0].refresh, client_secret=None), "invalid_grant"
        )
