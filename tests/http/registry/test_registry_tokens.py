"""Registry tokens from /jwt/auth: allowed actions and errors."""

import base64
import json
from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import Any, cast

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from joserfc import jwt
from joserfc.jwk import ECKey
from joserfc.jws import JWSRegistry
from sqlalchemy import delete, update

from domain.access.roles import Role
from domain.projects.access import INTERNAL, PRIVATE, PUBLIC
from domain.projects.visibility_sql import VISIBILITIES
from models import AttemptCount, Project
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_project,
    make_user,
    now,
    set_state,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role, person_for
from tests.support.oauth.oauth_wire import machine, new_pair, server_application
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("postgres")
SERVICE = "container_registry"
MEMBERS: tuple[Role, ...] = tuple(Role)
STRANGER, NOBODY = "stranger", "nobody"
ALL = "pull,push,delete,*"


def ask(
    gatebell: LiveGatebell,
    *scopes: str,
    token: str | None = None,
    user: str = "anybody",
    **options: Any,
) -> requests.Response:
    """Request a token as Docker does."""
    query = {"service": SERVICE, "scope": scopes, "account": user, **options.pop("params", {})}
    auth = (user, token) if token is not None else None
    return machine(gatebell).get(f"{gatebell.url}/jwt/auth", params=query, auth=auth, **options)


class _LongHeaders(JWSRegistry):
    """A registry that accepts the long header, which contains the certificate."""

    max_header_length = 4096


def certificates(gatebell: LiveGatebell) -> list[x509.Certificate]:
    bundle = machine(gatebell).get(f"{gatebell.url}/jwt/certificates")
    assert bundle.status_code == 200
    return x509.load_pem_x509_certificates(bundle.content)


def claims_in(gatebell: LiveGatebell, answer: requests.Response) -> dict[str, Any]:
    """Verify a token with the certificate in its header, as registries do; return its claims."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["token"] == body["access_token"]
    assert answer.headers["Cache-Control"] == "no-store"
    head = body["token"].partition(".")[0]
    header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    (encoded,) = header["x5c"]
    certificate = x509.load_der_x509_certificate(base64.b64decode(encoded))
    assert certificate in certificates(gatebell)
    key = ECKey.import_key(cast("EllipticCurvePublicKey", certificate.public_key()))
    claims = jwt.decode(body["token"], key, registry=_LongHeaders(algorithms=["ES256"])).claims
    assert (claims["iss"], claims["aud"]) == (gatebell.url, SERVICE)
    assert claims["exp"] - claims["iat"] == body["expires_in"] == 300
    return dict(claims)


def granted(gatebell: LiveGatebell, answer: requests.Response) -> dict[str, set[str]]:
    access: Iterable[Any] = claims_in(gatebell, answer)["access"]
    return {each["name"]: set(each["actions"]) for each in access}


@cache
def project_of(gatebell: LiveGatebell, visibility: str) -> str:
    return make_project(gatebell, alice(gatebell), visibility=visibility)


@cache
def token_of(gatebell: LiveGatebell, person: Person, scopes: str) -> str:
    return make_token(gatebell, person, scopes=scopes).clear


def actions_of(gatebell: LiveGatebell, who: Role | str, visibility: str, scopes: str) -> set[str]:
    """Return the actions that a user with this role gets in a project."""
    project = project_of(gatebell, visibility)
    scope = f"repository:{project}:{ALL}"
    if who == NOBODY:
        answer = ask(gatebell, scope)
        return granted(gatebell, answer).get(project, set()) if answer.ok else set()
    person = person_for(gatebell, who if isinstance(who, Role) else None)
    if isinstance(who, Role):
        give_role(gatebell, project, person, who)
    token = token_of(gatebell, person, scopes)
    return granted(gatebell, ask(gatebell, scope, token=token)).get(project, set())


def expected_actions(who: Role | str, visibility: str, scopes: str) -> set[str]:
    role = who if isinstance(who, Role) else 0
    sees = visibility == PUBLIC or (visibility == INTERNAL and who != NOBODY)
    pulls = {"pull"} if sees or role >= Role.REPORTER else set()
    if scopes == "read_registry" or role < Role.DEVELOPER:
        return pulls
    return {"pull", "push", "delete", "*"} if role >= Role.MAINTAINER else {"pull", "push"}


@pytest.mark.long
@pytest.mark.spec("G4")
@pytest.mark.parametrize("visibility", VISIBILITIES)
def test_role_visibility_and_scope_determine_the_actions_of_a_token(
    gatebell: LiveGatebell, visibility: str
) -> None:
    everybody: tuple[Role | str, ...] = (*MEMBERS, STRANGER, NOBODY)
    for who in everybody:
        for scopes in ("read_registry", "write_registry", "api"):
            actions = actions_of(gatebell, who, visibility, scopes)
            assert actions == expected_actions(who, visibility, scopes), (who, scopes)


@pytest.mark.both_databases
@pytest.mark.spec("G3")
def test_an_oauth_token_is_rejected_with_an_alternative(gatebell: LiveGatebell) -> None:
    pair = new_pair(gatebell, server_application(gatebell))
    answer = ask(gatebell, f"repository:{project_of(gatebell, PUBLIC)}:pull", token=pair.access)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    (error,) = answer.json()["errors"]
    assert error["code"] == "UNAUTHORIZED"
    assert error["message"].startswith("OAuth access tokens cannot sign in")
    assert "read_registry or write_registry" in error["message"]


@pytest.mark.both_databases
def test_invalid_credentials_are_rejected_even_for_public_projects(
    gatebell: LiveGatebell,
) -> None:
    owner, scope = make_user(gatebell), f"repository:{project_of(gatebell, PUBLIC)}:pull"
    revoked = make_token(gatebell, owner, scopes="read_registry", revoked_at=now())
    expired = make_token(
        gatebell, owner, scopes="read_registry", expires_at=now() - timedelta(minutes=1)
    )
    for token, words in (
        (revoked.clear, "was revoked"),
        (expired.clear, "expired"),
        (owner.password, "is invalid"),
        ("", "Sign in"),
    ):
        answer = ask(gatebell, scope, token=token)
        assert answer.status_code == 401
        assert words in answer.json()["errors"][0]["message"]
    bearer = ask(gatebell, scope, headers={"Authorization": f"Bearer {revoked.clear}"})
    assert bearer.status_code == 401
    narrow = ask(gatebell, scope, token=make_token(gatebell, owner, scopes="read_user").clear)
    assert narrow.status_code == 403
    assert "read_registry" in narrow.json()["errors"][0]["message"]
    assert granted(gatebell, ask(gatebell, scope))


def test_blocked_users_and_lost_roles_get_no_actions(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    person, scope = make_user(gatebell), f"repository:{project}:pull,push"
    token = make_token(gatebell, person, scopes="write_registry").clear
    give_role(gatebell, project, person, Role.DEVELOPER)
    assert granted(gatebell, ask(gatebell, scope, token=token)) == {project: {"pull", "push"}}
    give_role(gatebell, project, person, Role.GUEST)
    assert granted(gatebell, ask(gatebell, scope, token=token)) == {}
    set_state(gatebell, person, "blocked")
    assert ask(gatebell, scope, token=token).status_code == 401


def test_archived_projects_are_read_only_and_deleted_ones_are_hidden(
    gatebell: LiveGatebell,
) -> None:
    project = make_project(gatebell, alice(gatebell))
    scope, token = f"repository:{project}:{ALL}", token_of(gatebell, alice(gatebell), "api")
    for column, expected in (("archived_at", {project: {"pull"}}), ("deleted_at", {})):
        with database_of(gatebell) as session:
            statement = update(Project).where(Project.path == project)
            session.execute(statement.values({column: now()}))
        assert granted(gatebell, ask(gatebell, scope, token=token)) == expected


def test_several_scopes_are_granted_separately(gatebell: LiveGatebell) -> None:
    mine, other = project_of(gatebell, PRIVATE), make_project(gatebell, make_user(gatebell))
    token = token_of(gatebell, alice(gatebell), "write_registry")
    answer = ask(
        gatebell,
        f"repository:{mine}:pull repository:{mine}/deep/er:push",
        f"repository:{other}:pull",
        "repository:nothing/here:pull",
        "registry:catalog:*",
        "plugin:x:install",
        token=token,
    )
    assert granted(gatebell, answer) == {mine: {"pull"}, f"{mine}/deep/er": {"push"}}
    # `docker login` requests no scope.
    assert granted(gatebell, ask(gatebell, token=token, params={"offline_token": "true"})) == {}
    assert ask(gatebell).status_code == 401


def test_only_administrators_can_list_the_whole_registry(gatebell: LiveGatebell) -> None:
    admin = make_user(gatebell, name="admin", admin=True)
    scope = "registry:catalog:*"
    for scopes, expected in (("api", {"catalog": {"*"}}), ("read_registry", {})):
        token = token_of(gatebell, admin, scopes)
        assert granted(gatebell, ask(gatebell, scope, token=token)) == expected


def test_clients_that_post_a_form_get_the_same_token(gatebell: LiveGatebell) -> None:
    project = project_of(gatebell, PRIVATE)
    form = {
        "grant_type": "password",
        "service": SERVICE,
        "client_id": "containerd",
        "username": "anybody",
        "password": token_of(gatebell, alice(gatebell), "write_registry"),
        "scope": f"repository:{project}:pull,push repository:{project}/a:pull",
    }
    url = f"{gatebell.url}/jwt/auth"
    answer = machine(gatebell).post(url, data=form)
    assert granted(gatebell, answer) == {project: {"pull", "push"}, f"{project}/a": {"pull"}}
    assert "refresh_token" not in answer.json()
    wrong = machine(gatebell).post(url, data={**form, "password": "wrong"})
    assert wrong.status_code == 401
    refresh = machine(gatebell).post(url, data={**form, "grant_type": "refresh_token"})
    assert refresh.status_code == 400
    assert "grant_type" in refresh.json()["errors"][0]["message"]


NO_SCOPES = (
    *("repository", "repository:", "repository:a", "repository::pull", ":a:pull"),
    f"repository:{'a' * 2000}:pull",
    " ".join(["repository:a/b:pull"] * 51),
)


def test_malformed_scopes_are_rejected(gatebell: LiveGatebell) -> None:
    for scope in NO_SCOPES:
        answer = ask(gatebell, scope, token=token_of(gatebell, alice(gatebell), "api"))
        assert answer.status_code == 400, scope
        assert "scope" in answer.json()["errors"][0]["message"]


def test_another_service_gets_a_configuration_hint(gatebell: LiveGatebell) -> None:
    for service in ("", "registry.docker.io"):
        answer = ask(gatebell, params={"service": service})
        assert answer.status_code == 400
        assert SERVICE in answer.json()["errors"][0]["message"]


def test_misspelled_names_of_a_repository_get_no_access(gatebell: LiveGatebell) -> None:
    project, token = project_of(gatebell, PRIVATE), token_of(gatebell, alice(gatebell), "api")
    for name in (
        project.upper(),
        f"{project}/",
        f"{project}//x",
        f"../{project}",
        f"{project}\x00",
    ):
        assert granted(gatebell, ask(gatebell, f"repository:{name}:pull", token=token)) == {}


@pytest.mark.long
@pytest.mark.both_databases
def test_only_wrong_tokens_of_an_address_are_limited(
    gatebell: LiveGatebell,
) -> None:
    token = token_of(gatebell, alice(gatebell), "read_registry")
    with changed_settings(gatebell, sign_in_attempts_per_address="3"):
        with database_of(gatebell) as session:
            session.execute(delete(AttemptCount))
        statuses = [ask(gatebell, token="wrong").status_code for _ in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        limited = ask(gatebell, token="wrong")
        assert int(limited.headers["Retry-After"]) > 0
        assert limited.json()["errors"][0]["code"] == "TOOMANYREQUESTS"
        assert ask(gatebell, token=token).status_code == 200
