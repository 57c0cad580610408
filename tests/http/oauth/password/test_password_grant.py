"""The password grant of POST /oauth/token, its limits, and the settings that turn it off."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import requests
from sqlalchemy import delete, update

from models import Application, AttemptCount
from tests.conftest import KINDS
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    set_state,
    signed_in,
    try_to_sign_in,
)
from tests.support.oauth.oauth_wire import (
    age_refreshes,
    assert_refused,
    exchange,
    is_token_valid,
    machine,
    offered_grants,
    read_error_text,
    refresh,
    revoke,
    server_application,
    token_info,
)
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("postgres")


def scopes_of(gatebell: LiveGatebell, answer: requests.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    scopes: list[str] = token_info(gatebell, answer.json()["access_token"]).json()["scope"]
    return scopes


@pytest.mark.both_databases
@pytest.mark.spec("B7", "M6")
@pytest.mark.rfc("rfc6749-4.3.2-b")
@pytest.mark.parametrize("by_email", [False, True])
def test_a_name_and_a_password_are_exchanged_for_a_token(
    gatebell: LiveGatebell, *, by_email: bool
) -> None:
    person = alice(gatebell)
    login = person.email.upper() if by_email else person.username
    answer = exchange(gatebell, person, username=login)
    assert answer.status_code == 200, answer.text
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    body = answer.json()
    assert list(body) == ["access_token", "token_type", "expires_in"]
    assert (body["token_type"], body["expires_in"]) == ("bearer", 7200)
    headers = {"Authorization": f"Bearer {body['access_token']}"}
    user = machine(gatebell).get(f"{gatebell.url}/api/v4/user", headers=headers)
    assert user.json()["username"] == person.username


@pytest.mark.spec("B7", "D1")
def test_a_token_without_client_has_the_api_scope_and_no_application(
    gatebell: LiveGatebell,
) -> None:
    token = exchange(gatebell, alice(gatebell)).json()["access_token"]
    info = token_info(gatebell, token).json()
    assert info["scope"] == ["api"]
    assert info["application"] == {"uid": None}


def test_the_scope_parameter_narrows_the_token(gatebell: LiveGatebell) -> None:
    answer = exchange(gatebell, alice(gatebell), scope="read_user read_api")
    assert scopes_of(gatebell, answer) == ["read_api", "read_user"]
    # A token without a client could not be refreshed.
    answer = exchange(gatebell, alice(gatebell), scope="read_user offline_access")
    assert "refresh_token" not in answer.json()
    assert scopes_of(gatebell, answer) == ["read_user"]


@pytest.mark.parametrize("scope", ["nonsense", "api nonsense", " ", "\x00", "é", "offline_access"])
def test_an_unknown_scope_is_rejected(gatebell: LiveGatebell, scope: str) -> None:
    assert_refused(exchange(gatebell, alice(gatebell), scope=scope), "invalid_scope")


def test_registry_and_admin_scopes_are_rejected_without_a_client(
    gatebell: LiveGatebell,
) -> None:
    for person in (alice(gatebell), get_shared_administrator(gatebell)):
        for scope in ("read_registry", "write_registry", "sudo", "admin_mode"):
            answer = exchange(gatebell, person, scope=f"read_user {scope}")
            assert_refused(answer, "invalid_scope")
            assert answer.json()["error_description"] == (
                f"A token without an application cannot have the scope: {scope}."
            )


# Requests with a client.


@pytest.mark.spec("B7")
@pytest.mark.rfc("rfc6749-4.3.2-a")
def test_a_client_can_authenticate_with_basic_or_in_the_body(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    basic = exchange(gatebell, alice(gatebell), auth=(client.client_id, client.secret))
    posted = exchange(
        gatebell, alice(gatebell), client_id=client.client_id, client_secret=client.secret
    )
    for answer in (basic, posted):
        assert list(answer.json()) == ["access_token", "token_type", "expires_in"]
        info = token_info(gatebell, answer.json()["access_token"]).json()
        assert info["application"] == {"uid": client.client_id}


@pytest.mark.rfc("rfc6749-4.3.2-a")
def test_a_client_id_without_valid_credentials_is_rejected(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    person = alice(gatebell)
    for answer in (
        exchange(gatebell, person, client_id=client.client_id),
        exchange(gatebell, person, client_id=client.client_id, client_secret="wrong"),
        exchange(gatebell, person, client_secret=client.secret),
        exchange(gatebell, person, client_id="unknown"),
    ):
        assert_refused(answer, "invalid_client", 401)
    for auth in ((client.client_id, "wrong"), (client.client_id, ""), ("", client.secret)):
        refused = exchange(gatebell, person, auth=auth)
        assert_refused(refused, "invalid_client", 401)
        assert refused.headers["WWW-Authenticate"].startswith("Basic")


@pytest.mark.long
def test_a_client_gets_only_registered_scopes(gatebell: LiveGatebell) -> None:
    small = _public(gatebell, scopes="read_user read_api")
    large = _public(gatebell, scopes="read_user api")
    person = alice(gatebell)
    asked = exchange(gatebell, person, client_id=small.client_id)
    assert scopes_of(gatebell, asked) == ["read_api", "read_user"]
    asked = exchange(gatebell, person, client_id=large.client_id)
    assert scopes_of(gatebell, asked) == ["api"]
    asked = exchange(gatebell, person, client_id=small.client_id, scope="read_user")
    assert scopes_of(gatebell, asked) == ["read_user"]
    refused = exchange(gatebell, person, client_id=small.client_id, scope="api")
    assert_refused(refused, "invalid_scope")


def _public(gatebell: LiveGatebell, **changes: object) -> ClientCredentials:
    return make_application(gatebell, bob(gatebell), confidential=False, **changes)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_refresh_token_needs_offline_access_or_a_setting_of_the_application(
    gatebell: LiveGatebell,
) -> None:
    client = _public(gatebell)
    person = alice(gatebell)
    assert "refresh_token" not in exchange(gatebell, person, client_id=client.client_id).json()
    offline = exchange(
        gatebell, person, client_id=client.client_id, scope="read_user offline_access"
    ).json()
    assert list(offline) == ["access_token", "token_type", "expires_in", "refresh_token"]
    with database_of(gatebell) as session:
        row = Application.uid == client.client_id
        session.execute(update(Application).where(row).values(refresh_for_devices=True))
    first = exchange(gatebell, person, client_id=client.client_id).json()
    second = refresh(gatebell, client, first["refresh_token"], client_secret=None).json()
    assert second["scope"] == "read_api read_user"
    # Reuse of a refresh token of a public client ends the family, as in other grants.
    age_refreshes(gatebell, timedelta(minutes=1))
    again = refresh(gatebell, client, first["refresh_token"], client_secret=None)
    assert_refused(again, "invalid_grant")
    assert not is_token_valid(gatebell, second["access_token"])


def test_a_client_with_the_openid_scope_gets_an_id_token(gatebell: LiveGatebell) -> None:
    client = _public(gatebell, scopes="openid read_user")
    answer = exchange(gatebell, alice(gatebell), client_id=client.client_id, scope="openid")
    assert list(answer.json()) == ["access_token", "token_type", "expires_in", "id_token"]
    assert "id_token" not in exchange(gatebell, alice(gatebell), scope="openid").json()


# Rejected requests.


@pytest.mark.long
@pytest.mark.spec("B7")
@pytest.mark.rfc("rfc6749-4.3.2-b")
def test_all_failed_sign_ins_get_the_same_error(gatebell: LiveGatebell) -> None:
    locked, blocked, other = (make_user(gatebell, name="charlie") for _ in range(3))
    set_state(gatebell, locked, "locked")
    set_state(gatebell, blocked, "blocked")
    answers = [
        exchange(gatebell, locked),
        exchange(gatebell, blocked),
        exchange(gatebell, other, password="wrong"),
        exchange(gatebell, other, password="x" * 2000),
        exchange(gatebell, other, username="nobody"),
        exchange(gatebell, other, username="no\x00body"),
        exchange(gatebell, other, password=other.password + "\x00"),
    ]
    for answer in answers:
        assert_refused(answer, "invalid_grant")
    assert len({read_error_text(answer) for answer in answers}) == 1
    assert exchange(gatebell, other).status_code == 200


@pytest.mark.parametrize("name", ["username", "password"])
def test_missing_and_repeated_parameters_are_rejected(gatebell: LiveGatebell, name: str) -> None:
    person = alice(gatebell)
    for value in (None, "", [person.username, person.username]):
        assert_refused(exchange(gatebell, person, **{name: value}), "invalid_request")


def test_a_password_in_the_url_is_rejected(gatebell: LiveGatebell) -> None:
    person = alice(gatebell)
    query = {"username": person.username, "password": person.password, "grant_type": "password"}
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/token", params=query)
    assert_refused(answer, "invalid_request")


def test_the_token_of_a_locked_user_is_invalid(gatebell: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    token = exchange(gatebell, charlie).json()["access_token"]
    set_state(gatebell, charlie, "locked")
    assert not is_token_valid(gatebell, token)


# Revocation.


@pytest.mark.both_databases
@pytest.mark.spec("D3")
def test_a_token_without_client_is_revoked_without_client(
    gatebell: LiveGatebell,
) -> None:
    client = server_application(gatebell)
    token = exchange(gatebell, alice(gatebell)).json()["access_token"]
    other = exchange(gatebell, alice(gatebell), auth=(client.client_id, client.secret)).json()
    without = {"client_id": None, "client_secret": None}
    assert_refused(revoke(gatebell, client, token), "unauthorized_client", 403)
    assert_refused(
        revoke(gatebell, client, other["access_token"], **without), "invalid_client", 401
    )
    assert_refused(revoke(gatebell, client, "unknown", **without), "invalid_client", 401)
    assert is_token_valid(gatebell, token)
    assert is_token_valid(gatebell, other["access_token"])
    for _ in range(2):
        answer = revoke(gatebell, client, token, **without)
        assert (answer.status_code, answer.json()) == (200, {})
    assert not is_token_valid(gatebell, token)


@pytest.mark.spec("M6")
@pytest.mark.rfc("rfc6749-4.2-a")
def test_the_implicit_grant_is_not_offered(gatebell: LiveGatebell) -> None:
    assert "implicit" not in offered_grants(gatebell)


def test_no_password_is_logged(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    token = exchange(gatebell, person).json()["access_token"]
    exchange(gatebell, person, password="a wrong one that nobody has")
    log = gatebell.log_text()
    for secret in (person.password, token, "a wrong one that nobody has"):
        assert secret not in log


# A service with a low limit of attempts, and with the password grant turned off.


@pytest.fixture(scope="module", params=KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service with a low limit of sign-in attempts."""
    live: LiveGatebell = request.getfixturevalue(f"live_{request.param}")
    with changed_settings(live, sign_in_attempts_per_account="3", sign_in_attempts_per_address="7"):
        yield live
        reset_counts(live)


def reset_counts(gatebell: LiveGatebell) -> None:
    with database_of(gatebell) as session:
        session.execute(delete(AttemptCount))


def assert_must_wait(answer: requests.Response) -> None:
    assert_refused(answer, "temporarily_unavailable", 429)
    assert 0 < int(answer.headers["Retry-After"]) <= 600


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-4.3.2-c")
def test_failed_attempts_and_failed_sign_ins_share_a_limit_by_account(own: LiveGatebell) -> None:
    reset_counts(own)
    charlie = make_user(own, name="charlie")
    assert try_to_sign_in(own, charlie.username, "wrong").status_code == 422
    for _ in range(2):
        assert_refused(exchange(own, charlie, password="wrong"), "invalid_grant")
    assert_must_wait(exchange(own, charlie))
    assert try_to_sign_in(own, charlie.username, charlie.password).status_code == 429
    assert exchange(own, make_user(own, name="dora")).status_code == 200


@pytest.mark.long
def test_the_right_password_clears_the_count(own: LiveGatebell) -> None:
    reset_counts(own)
    charlie = make_user(own, name="charlie")
    for _ in range(2):
        for _ in range(2):
            assert_refused(exchange(own, charlie, password="wrong"), "invalid_grant")
        assert exchange(own, charlie).status_code == 200


@pytest.mark.long
@pytest.mark.rfc("rfc6749-4.3.2-c")
def test_failed_attempts_are_limited_by_address(own: LiveGatebell) -> None:
    reset_counts(own)
    people = [make_user(own, name="charlie") for _ in range(8)]
    for person in people[:7]:
        assert_refused(exchange(own, person, password="wrong"), "invalid_grant")
    assert_must_wait(exchange(own, people[7]))


@pytest.mark.long
@pytest.mark.spec("B9")
@pytest.mark.rfc("rfc6749-5.2-d", "rfc6749-10.7-a", "rfc9700-2.4-a")
def test_the_setting_for_git_passwords_turns_the_password_grant_off(own: LiveGatebell) -> None:
    reset_counts(own)
    person = make_user(own)
    with changed_settings(own, password_authentication_enabled_for_git="off"):
        assert_refused(exchange(own, person), "unsupported_grant_type")
        assert "password" not in offered_grants(own)
    assert exchange(own, person).status_code == 200
    assert "password" in offered_grants(own)


@pytest.mark.long
def test_the_setting_for_git_passwords_explains_that_git_is_unaffected(
    own: LiveGatebell,
) -> None:
    said = "has no effect on Git, which only accepts access tokens"
    page = signed_in(own, get_shared_administrator(own)).get(f"{own.url}/admin/settings").text
    description = requests.get(f"{own.url}/api/openapi.json", timeout=60).text
    assert said in page
    assert said in description


@pytest.mark.long
@pytest.mark.rfc("rfc6749-10.7-a")
def test_the_instance_can_require_a_client(own: LiveGatebell) -> None:
    reset_counts(own)
    person = make_user(own)
    client = make_application(own, person)
    with changed_settings(own, password_grant_without_client="off"):
        assert_refused(exchange(own, person), "invalid_client", 401)
        assert exchange(own, person, auth=(client.client_id, client.secret)).status_code == 200
    assert exchange(own, person).status_code == 200
