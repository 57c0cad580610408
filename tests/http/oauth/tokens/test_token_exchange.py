"""Token exchange: an application narrows an access token (RFC 8693)."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from models import AccessToken, AuditEvent, Authorization
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
    set_state,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import (
    Changes,
    assert_refused,
    exchange,
    is_token_valid,
    machine,
    new_code,
    new_pair,
    offered_grants,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    refresh,
    revoke,
)
from tests.support.oauth.proofs import Prover, redeem_with_key
from tests.support.oauth.token_exchange import (
    ACCESS_TOKEN,
    TOKEN_EXCHANGE,
    allow_exchange,
    exchange_token,
    exchanging_application,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def narrowed(gatebell: LiveGatebell, token: str, scope: str = "read_user") -> str:
    answer = exchange_token(gatebell, exchanging_application(gatebell), token, scope=scope)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


def introspected(
    gatebell: LiveGatebell, client: ClientCredentials, token: str
) -> dict[str, object]:
    form = {"client_id": client.client_id, "client_secret": client.secret, "token": token}
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/introspect", data=form)
    body: dict[str, object] = answer.json()
    return body


def called(gatebell: LiveGatebell, path: str, token: str, method: str = "GET") -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return machine(gatebell).request(method, f"{gatebell.url}{path}", headers=headers).status_code


@pytest.mark.both_databases
@pytest.mark.rfc("rfc8693-2.1-a", "rfc8693-2.2.1-a", "rfc8693-2.2.1-b")
def test_a_token_is_exchanged_for_one_with_fewer_scopes(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client, scope="read_api read_user")
    answer = exchange_token(gatebell, client, pair.access, scope="read_user")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.json()
    assert set(body) == {
        *("access_token", "token_type", "expires_in", "scope", "created_at", "issued_token_type")
    }
    assert (body["scope"], body["token_type"]) == ("read_user", "bearer")
    assert body["issued_token_type"] == ACCESS_TOKEN
    assert called(gatebell, "/api/v4/user", body["access_token"]) == 200
    assert called(gatebell, "/api/v4/projects", body["access_token"]) == 403
    assert is_token_valid(gatebell, pair.access)
    described = introspected(gatebell, client, body["access_token"])
    assert (described["active"], described["scope"]) == (True, "read_user")
    with database_of(gatebell) as session:
        found = select(AuditEvent).where(AuditEvent.kind == "token.exchanged")
        (event,) = session.scalars(found.order_by(AuditEvent.id.desc()).limit(1))
        assert event.details == {"application_id": client.client_id, "scopes": "read_user"}


def test_offline_and_admin_scopes_are_not_passed_on(
    gatebell: LiveGatebell,
) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client, scope="read_api read_user")
    with database_of(gatebell) as session:
        token = select(AccessToken).order_by(AccessToken.id.desc()).limit(1)
        session.scalars(token).one().scopes = "read_api read_user offline_access admin_mode"
    assert exchange_token(gatebell, client, pair.access).json()["scope"] == "read_api read_user"
    refused = exchange_token(gatebell, client, pair.access, scope="offline_access")
    assert_refused(refused, "invalid_scope")


@pytest.mark.parametrize("scope", ["api", "read_user api", "admin_mode", "sudo"])
def test_an_exchange_cannot_add_scopes(gatebell: LiveGatebell, scope: str) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client, scope="read_user")
    assert_refused(exchange_token(gatebell, client, pair.access, scope=scope), "invalid_scope")


def test_a_chain_of_exchanges_cannot_widen_the_scope(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    first = narrowed(gatebell, new_pair(gatebell, client, scope="read_api read_user").access)
    wider = exchange_token(gatebell, client, first, scope="read_api")
    assert_refused(wider, "invalid_scope")
    again = exchange_token(gatebell, client, first)
    assert again.json()["scope"] == "read_user"


@pytest.mark.advisory("CVE-2026-96460")
def test_the_new_token_does_not_outlive_the_old_token(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client)
    with database_of(gatebell) as session:
        token = session.scalars(select(AccessToken).order_by(AccessToken.id.desc()).limit(1)).one()
        token.expires_at = now() + timedelta(seconds=90)
    body = exchange_token(gatebell, client, pair.access).json()
    assert 0 < body["expires_in"] <= 90
    exp = introspected(gatebell, client, body["access_token"])["exp"]
    assert exp == introspected(gatebell, client, pair.access)["exp"]


@pytest.mark.both_databases
def test_an_exchanged_token_is_revoked_with_its_authorization(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client)
    token = narrowed(gatebell, pair.access)
    assert revoke(gatebell, client, pair.refresh).status_code == 200
    assert not is_token_valid(gatebell, token)


def test_revocation_of_an_exchanged_token_keeps_the_authorization(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client)
    token = narrowed(gatebell, pair.access)
    assert revoke(gatebell, client, token).status_code == 200
    assert not is_token_valid(gatebell, token)
    assert is_token_valid(gatebell, pair.access)
    assert refresh(gatebell, client, pair.refresh).status_code == 200


def test_a_refreshed_or_revoked_token_is_not_exchanged(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    first = new_pair(gatebell, client)
    second = parse_token_pair(refresh(gatebell, client, first.refresh))
    revoked = narrowed(gatebell, second.access)
    revoke(gatebell, client, revoked)
    for token in (first.access, revoked):
        answer = exchange_token(gatebell, client, token)
        assert_refused(answer, "invalid_request")
        assert "revoked" in answer.json()["error_description"]


def test_the_token_of_an_ended_authorization_is_not_exchanged(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client)
    with database_of(gatebell) as session:
        newest = select(Authorization).order_by(Authorization.id.desc()).limit(1)
        session.scalars(newest).one().revoked_at = now()
    assert_refused(exchange_token(gatebell, client, pair.access), "invalid_request")


def test_an_expired_token_is_not_exchanged(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client)
    with database_of(gatebell) as session:
        newest = select(AccessToken.id).order_by(AccessToken.id.desc()).limit(1).scalar_subquery()
        session.execute(
            update(AccessToken).where(AccessToken.id == newest).values(expires_at=now())
        )
    answer = exchange_token(gatebell, client, pair.access)
    assert_refused(answer, "invalid_request")
    assert "expired" in answer.json()["error_description"]


def test_a_token_of_a_blocked_user_is_not_exchanged(gatebell: LiveGatebell) -> None:
    client, carol = exchanging_application(gatebell), make_user(gatebell)
    answer = open_authorization(open_browser(gatebell, carol), gatebell, client)
    pair = parse_token_pair(redeem(gatebell, client, parse_redirect(answer)["code"]))
    set_state(gatebell, carol, "blocked")
    assert_refused(exchange_token(gatebell, client, pair.access), "invalid_request")


@pytest.mark.advisory("CVE-2022-1245", "CVE-2026-9704")
@pytest.mark.rfc("rfc8693-2.2.2-a")
def test_foreign_tokens_and_other_kinds_of_tokens_are_unknown(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    other = make_application(gatebell, bob(gatebell), name="Other App", trusted=True)
    stolen, own = new_pair(gatebell, other), new_pair(gatebell, client)
    personal = make_token(gatebell, alice(gatebell)).clear
    # A token that is too long does not count as a missing token.
    for token in (stolen.access, own.refresh, personal, own.access[:-1], "x", "x" * 5_000):
        answer = exchange_token(gatebell, client, token)
        assert_refused(answer, "invalid_request")
        assert "unknown" in answer.json()["error_description"]
    assert is_token_valid(gatebell, stolen.access)


def test_a_token_without_an_authorization_is_not_exchanged(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    auth = (client.client_id, client.secret)
    token = exchange(gatebell, alice(gatebell), auth=auth, scope="read_user").json()
    answer = exchange_token(gatebell, client, token["access_token"])
    assert_refused(answer, "invalid_request")
    assert "password" in answer.json()["error_description"]


def test_only_allowed_confidential_applications_can_exchange_tokens(gatebell: LiveGatebell) -> None:
    plain = make_application(gatebell, bob(gatebell), trusted=True)
    pair = new_pair(gatebell, plain)
    refused = exchange_token(gatebell, plain, pair.access)
    assert_refused(refused, "unauthorized_client")
    assert "administrator" in refused.json()["error_description"]
    public = make_application(gatebell, bob(gatebell), trusted=True, confidential=False)
    allow_exchange(gatebell, public)
    answer = exchange_token(gatebell, public, pair.access, client_secret=None)
    assert_refused(answer, "unauthorized_client")
    assert "confidential" in answer.json()["error_description"]
    allow_exchange(gatebell, plain)
    assert exchange_token(gatebell, plain, pair.access).status_code == 200
    wrong = exchange_token(gatebell, plain, pair.access, client_secret="wrong")
    assert_refused(wrong, "invalid_client", 401)


@pytest.mark.rfc("rfc8693-2.1-b", "rfc8693-2.1-c")
@pytest.mark.parametrize(
    "changes",
    [
        {"subject_token": None},
        {"subject_token_type": None},
        {"subject_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        {"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        {"actor_token": "x", "actor_token_type": ACCESS_TOKEN},
        {"actor_token_type": ACCESS_TOKEN},
        {"subject_token_type": [ACCESS_TOKEN, ACCESS_TOKEN]},
    ],
)
def test_other_types_actors_and_repetitions_are_refused(
    gatebell: LiveGatebell, changes: dict[str, Changes]
) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client)
    assert_refused(exchange_token(gatebell, client, pair.access, **changes), "invalid_request")


@pytest.mark.rfc("rfc8693-2.1-d", "rfc8693-2.2.2-b")
def test_only_this_instance_is_accepted_as_a_target(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    pair = new_pair(gatebell, client)
    issuer = gatebell.url
    for resource in (issuer, f"{issuer}/api/v4", [issuer, f"{issuer}/api/v4/user"]):
        answer = exchange_token(gatebell, client, pair.access, resource=resource, audience=issuer)
        assert answer.status_code == 200, answer.text
    others = ("https://other.example/", f"{issuer}.example/", f"{issuer}/#a", "x")
    for resource in (*others, [issuer, "https://other.example/"]):
        answer = exchange_token(gatebell, client, pair.access, resource=resource)
        assert_refused(answer, "invalid_target")
    answer = exchange_token(gatebell, client, pair.access, audience="another service")
    assert_refused(answer, "invalid_target")


def test_a_bound_token_is_exchanged_only_with_its_key(gatebell: LiveGatebell) -> None:
    client, prover, thief = exchanging_application(gatebell), Prover(), Prover()
    code, secret = new_code(gatebell, client), client.secret
    answer = redeem_with_key(
        gatebell, client, code, prover, client_secret=secret, code_verifier=None
    )
    bound = answer.json()["access_token"]
    for headers in (None, thief.for_token(gatebell)):
        refused = exchange_token(gatebell, client, bound, headers=headers)
        assert_refused(refused, "invalid_request")
        assert "bound to a key" in refused.json()["error_description"]
    body = exchange_token(gatebell, client, bound, headers=prover.for_token(gatebell)).json()
    assert body["token_type"] == "DPoP"
    described = introspected(gatebell, client, body["access_token"])
    assert described["cnf"] == {"jkt": prover.thumbprint}


def test_an_unbound_token_can_be_bound_by_an_exchange(gatebell: LiveGatebell) -> None:
    client, prover = exchanging_application(gatebell), Prover()
    pair = new_pair(gatebell, client)
    headers = prover.for_token(gatebell)
    body = exchange_token(gatebell, client, pair.access, headers=headers).json()
    assert body["token_type"] == "DPoP"
    assert called(gatebell, "/api/v4/user", body["access_token"]) == 401


def test_an_exchanged_token_cannot_create_access_tokens(gatebell: LiveGatebell) -> None:
    client = exchanging_application(gatebell)
    project = make_project(gatebell, alice(gatebell)).replace("/", "%2F")
    path = f"/api/v4/projects/{project}/access_tokens?name=n&scopes=read_api&expires_at=2030-01-01"
    pair = new_pair(gatebell, client, scope="api")
    token = narrowed(gatebell, pair.access, "api")
    assert called(gatebell, path, token, "POST") == 403
    assert called(gatebell, path, pair.access, "POST") in {201, 400}


def test_the_metadata_list_the_token_exchange_grant(gatebell: LiveGatebell) -> None:
    assert TOKEN_EXCHANGE in offered_grants(gatebell)
