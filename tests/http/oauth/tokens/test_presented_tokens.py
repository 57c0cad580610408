"""Introspection (RFC 7662), token info and revocation (RFC 7009)."""

from datetime import timedelta
from time import time

import pytest
import requests
from sqlalchemy import select, update

from models import AccessToken, User
from tests.support.accounts.people import (
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
from tests.support.accounts.personal_tokens import change, make_token
from tests.support.oauth.oauth_wire import (
    Changes,
    TokenPair,
    assert_refused,
    changed,
    is_token_valid,
    machine,
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
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

# GET /oauth/token/info.


@pytest.fixture
def pair(gatebell: LiveGatebell) -> TokenPair:
    """A token pair of Alice."""
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
def test_token_info_shows_owner_scopes_and_lifetime(
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


@pytest.mark.both_databases
def test_token_info_shows_a_personal_token_without_application(gatebell: LiveGatebell) -> None:
    made = make_token(gatebell, alice(gatebell), scopes="read_api")
    body = token_info(gatebell, made.clear).json()
    assert body["resource_owner_id"] == made.user_id
    assert (body["application"], body["scope"]) == ({"uid": None}, ["read_api"])
    assert body["expires_in"] > 0
    change(gatebell, made.id, expires_at=None)
    assert token_info(gatebell, made.clear).json()["expires_in"] is None
    change(gatebell, made.id, revoked_at=now())
    assert token_info(gatebell, made.clear).status_code == 401


@pytest.mark.spec("D1")
@pytest.mark.rfc("rfc6750-2.3-a")
def test_token_info_accepts_the_token_in_the_url(gatebell: LiveGatebell, pair: TokenPair) -> None:
    address = f"{gatebell.url}/oauth/token/info"
    answer = machine(gatebell).get(address, params={"access_token": pair.access})
    assert answer.json()["scope"] == ["read_api", "read_user"]


@pytest.mark.rfc("rfc6750-2-a")
def test_two_different_tokens_are_an_invalid_request(
    gatebell: LiveGatebell, pair: TokenPair
) -> None:
    def open_authorization(*in_query: str) -> requests.Response:
        return machine(gatebell).get(
            f"{gatebell.url}/oauth/token/info",
            params={"access_token": in_query},
            headers={"Authorization": f"Bearer {pair.access}"},
        )

    for different in ([pair.refresh], [pair.access, "x"]):
        answer = open_authorization(*different)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    for same in ([pair.access], [pair.access, pair.access]):
        assert open_authorization(*same).status_code == 200


@pytest.mark.spec("D1")
@pytest.mark.rfc("rfc6750-5.2-b")
def test_token_info_shows_the_remaining_lifetime(gatebell: LiveGatebell, pair: TokenPair) -> None:
    with database_of(gatebell) as session:
        session.execute(update(AccessToken).values(expires_at=now() + timedelta(seconds=60)))
    assert 50 <= token_info(gatebell, pair.access).json()["expires_in"] <= 60


@pytest.mark.both_databases
@pytest.mark.spec("D1")
def test_a_token_that_never_expires_has_no_remaining_lifetime(
    gatebell: LiveGatebell, pair: TokenPair
) -> None:
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
def test_an_unknown_token_is_invalid(gatebell: LiveGatebell, token: str) -> None:
    assert_invalid(token_info(gatebell, token))


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer ", "Basic eDp5", "Token x", "\xe9"])
def test_a_request_without_a_token_is_invalid(gatebell: LiveGatebell, header: str | None) -> None:
    headers = {"Authorization": header.strip()} if header else {}
    address = f"{gatebell.url}/oauth/token/info"
    assert_invalid(machine(gatebell).get(address, headers=headers))


def test_a_request_without_a_token_is_challenged_without_an_error(gatebell: LiveGatebell) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/oauth/token/info")
    assert_invalid(answer)
    # RFC 6750 section 3.1: a request without a token gets no error code.
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Gatebell"'
    unknown = token_info(gatebell, "x")
    assert 'error="invalid_token"' in unknown.headers["WWW-Authenticate"]


# POST /oauth/introspect.


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
def test_introspection_describes_a_live_access_token(gatebell: LiveGatebell) -> None:
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
def test_introspection_of_a_refresh_token_has_no_expiry_and_no_type(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    body = introspect(gatebell, client, pair.refresh, token_type_hint="refresh_token").json()
    assert body["active"] is True
    assert body["client_id"] == client.client_id
    assert {"exp", "token_type"} & set(body) == set()


@pytest.mark.rfc("rfc7662-2.1-b")
@pytest.mark.parametrize("hint", ["access_token", "refresh_token", "nonsense"])
def test_a_wrong_hint_is_ignored(gatebell: LiveGatebell, hint: str) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    for token in (pair.access, pair.refresh):
        assert introspect(gatebell, client, token, token_type_hint=hint).json()["active"] is True


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7009-2.1-g", "rfc7662-2.2-a", "rfc7662-2.2-b", "rfc7662-4-a")
def test_revoked_and_rotated_tokens_are_inactive(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    revoked, rotated = new_pair(gatebell, client), new_pair(gatebell, client)
    revoke(gatebell, client, revoked.access)
    assert refresh(gatebell, client, rotated.refresh).ok
    for pair in (revoked, rotated):
        for token in (pair.access, pair.refresh):
            assert_inactive(introspect(gatebell, client, token))


@pytest.mark.advisory("CVE-2026-58425")
@pytest.mark.rfc("rfc7662-2.2-d")
def test_a_token_of_another_client_is_inactive(gatebell: LiveGatebell) -> None:
    curious = make_application(gatebell, bob(gatebell))
    pair = new_pair(gatebell, server_application(gatebell))
    for token in (pair.access, pair.refresh):
        assert_inactive(introspect(gatebell, curious, token))


@pytest.mark.rfc("rfc7662-2.2-b", "rfc7662-2.3-b")
@pytest.mark.parametrize("token", ["x", "gba-x", "a\x00b", "é", "a" * 3000])
def test_a_malformed_token_is_inactive(gatebell: LiveGatebell, token: str) -> None:
    assert_inactive(introspect(gatebell, server_application(gatebell), token))


def test_a_personal_token_is_inactive_for_clients(gatebell: LiveGatebell) -> None:
    personal = gatebell.cli(
        "tokens", "create", alice(gatebell).username, "--name", "x", "--scopes", "api"
    )["token"]
    assert_inactive(introspect(gatebell, server_application(gatebell), personal))


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7662-4-a")
def test_tokens_of_a_locked_user_are_inactive(gatebell: LiveGatebell) -> None:
    client, person = server_application(gatebell), make_user(gatebell)
    code = parse_redirect(open_authorization(open_browser(gatebell, person), gatebell, client))[
        "code"
    ]
    pair = parse_token_pair(redeem(gatebell, client, code))
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
def test_introspection_needs_exactly_one_token(
    gatebell: LiveGatebell, token: list[str] | None
) -> None:
    client = server_application(gatebell)
    assert_refused(introspect(gatebell, client, "", token=token), "invalid_request")


# POST /oauth/revoke.


def assert_done(answer: requests.Response) -> None:
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.both_databases
@pytest.mark.spec("D3")
@pytest.mark.rfc("rfc7009-2-a", "rfc7009-2.1-d", "rfc7009-2.1-e", "rfc7009-2.1-f", "rfc7009-2.1-g")
@pytest.mark.parametrize("which", ["access", "refresh"])
@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "nonsense"])
def test_either_token_revokes_the_pair_with_any_hint(
    gatebell: LiveGatebell, client: ClientCredentials, which: str, hint: str | None
) -> None:
    pair = new_pair(gatebell, client)
    token = pair.access if which == "access" else pair.refresh
    assert_done(revoke(gatebell, client, token, token_type_hint=hint))
    assert not is_token_valid(gatebell, pair.access)
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_grant")


@pytest.mark.spec("D3")
def test_the_secret_is_accepted_in_a_basic_header(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    address, form = f"{gatebell.url}/oauth/revoke", {"token": pair.access}
    credentials = (client.client_id, client.secret)
    assert_done(machine(gatebell).post(address, form, auth=credentials))
    assert not is_token_valid(gatebell, pair.access)


@pytest.mark.spec("D3")
@pytest.mark.rfc("rfc7009-2.2-a")
def test_revocation_of_an_unknown_token_succeeds(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    assert_done(revoke(gatebell, client, "gba-unknown"))
    pair = new_pair(gatebell, client)
    assert_done(revoke(gatebell, client, pair.access))
    assert_done(revoke(gatebell, client, pair.access))


@pytest.mark.both_databases
@pytest.mark.spec("D3")
def test_revocation_does_not_affect_other_pairs_of_the_user(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    one, other = new_pair(gatebell, client), new_pair(gatebell, client)
    assert_done(revoke(gatebell, client, one.access))
    assert is_token_valid(gatebell, other.access)


@pytest.mark.spec("D3")
def test_a_pair_that_was_refreshed_can_still_be_revoked(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    new = parse_token_pair(refresh(gatebell, client, new_pair(gatebell, client).refresh))
    assert_done(revoke(gatebell, client, new.refresh))
    assert not is_token_valid(gatebell, new.access)


@pytest.mark.advisory("CVE-2026-115472")
@pytest.mark.both_databases
@pytest.mark.rfc("rfc7009-2.1-c")
@pytest.mark.parametrize("which", ["access", "refresh"])
def test_a_client_cannot_revoke_a_token_of_another_client(
    gatebell: LiveGatebell, client: ClientCredentials, which: str
) -> None:
    other = make_application(gatebell, bob(gatebell))
    pair = new_pair(gatebell, client)
    token = pair.access if which == "access" else pair.refresh
    assert_refused(revoke(gatebell, other, token), "unauthorized_client", 403)
    phone = phone_application(gatebell)
    public = revoke(gatebell, phone, token, client_secret=None)
    assert_refused(public, "unauthorized_client", 403)
    assert is_token_valid(gatebell, pair.access)
    assert refresh(gatebell, client, pair.refresh).status_code == 200


@pytest.mark.rfc("rfc7009-2.1-b", "rfc7009-2.2.1-a")
@pytest.mark.parametrize(
    "changes", [{"client_secret": "wrong"}, {"client_secret": None}, {"client_id": "0" * 64}]
)
def test_an_unauthenticated_client_cannot_revoke_tokens(
    gatebell: LiveGatebell, client: ClientCredentials, changes: dict[str, Changes]
) -> None:
    pair = new_pair(gatebell, client)
    answer = revoke(gatebell, client, pair.access, **changes)
    assert_refused(answer, "invalid_client", 401)
    assert is_token_valid(gatebell, pair.access)


@pytest.mark.advisory("CVE-2018-1000211")
@pytest.mark.spec("D3")
def test_a_public_client_needs_only_its_id(gatebell: LiveGatebell) -> None:
    phone = phone_application(gatebell)
    pair = new_public_pair(gatebell, phone)
    wrong = revoke(gatebell, phone, pair.access, client_secret="wrong")
    assert_refused(wrong, "invalid_client", 401)
    assert is_token_valid(gatebell, pair.access)
    assert_done(revoke(gatebell, phone, pair.access, client_secret=None))
    assert not is_token_valid(gatebell, pair.access)


@pytest.mark.rfc("rfc7009-2.1-a", "rfc7009-2.2.1-a")
@pytest.mark.parametrize("token", [None, "", ["gba-x", "gba-y"]])
def test_revocation_needs_exactly_one_token(
    gatebell: LiveGatebell, client: ClientCredentials, token: Changes
) -> None:
    assert_refused(revoke(gatebell, client, "", token=token), "invalid_request")
