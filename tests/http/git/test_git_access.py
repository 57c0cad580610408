"""Access to repositories over Git's HTTP protocol: roles, tokens and errors."""

import base64
from collections.abc import Callable
from datetime import timedelta
from functools import cache

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from domain.projects.access import INTERNAL, PRIVATE, PUBLIC
from domain.projects.visibility_sql import VISIBILITIES
from models import PersonalAccessToken
from tests.support.accounts.people import (
    Person,
    alice,
    bob,
    database_of,
    make_project,
    make_user,
    now,
    set_state,
)
from tests.support.accounts.personal_tokens import change, make_token
from tests.support.accounts.team import give_role, person_for
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

READ, WRITE = "git-upload-pack", "git-receive-pack"
#: Roles of members, a signed-in user without a role, and an anonymous client.
MEMBERS: tuple[Role, ...] = tuple(Role)
STRANGER, NOBODY = "stranger", "nobody"
READERS: dict[str, set[Role | str]] = {
    PUBLIC: {*MEMBERS, STRANGER, NOBODY},
    INTERNAL: {*MEMBERS, STRANGER},
    PRIVATE: {Role.REPORTER, Role.DEVELOPER, Role.MAINTAINER, Role.OWNER},
}
WRITERS = {Role.DEVELOPER, Role.MAINTAINER, Role.OWNER}


@cache
def project_of(gatebell: LiveGatebell, visibility: str) -> str:
    """Return a project that all tests share."""
    return make_project(gatebell, alice(gatebell), visibility=visibility)


@cache
def token_of(gatebell: LiveGatebell, person: Person, scopes: str) -> str:
    """Return a token that all tests share."""
    return make_token(gatebell, person, scopes=scopes).clear


def refs(
    gatebell: LiveGatebell, project: str, service: str | None = READ, **options: object
) -> requests.Response:
    """Request the branches of a project."""
    query = f"?service={service}" if service else ""
    url = f"{gatebell.url}/{project}.git/info/refs{query}"
    return machine(gatebell).get(url, allow_redirects=False, **options)  # type: ignore[arg-type]


def assert_requires_credentials(answer: requests.Response) -> None:
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Basic realm="Gatebell", charset="UTF-8"'
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in answer.headers


def expected(visibility: str, who: Role | str, service: str) -> int:
    """Return the expected status of a request with a token that has all scopes."""
    if service == READ and who in READERS[visibility]:
        return 200
    if service == WRITE and who in WRITERS:
        return 200
    if who == NOBODY:
        return 401
    return 404 if who == STRANGER and visibility == PRIVATE else 403


@pytest.mark.spec("G2")
@pytest.mark.parametrize("visibility", VISIBILITIES)
def test_each_role_reads_and_pushes_only_where_it_is_allowed(
    gatebell: LiveGatebell, visibility: str
) -> None:
    project = project_of(gatebell, visibility)
    everybody: tuple[Role | str, ...] = (*MEMBERS, STRANGER, NOBODY)
    for who in everybody:
        auth = None
        if who != NOBODY:
            person = person_for(gatebell, who if isinstance(who, Role) else None)
            if isinstance(who, Role):
                give_role(gatebell, project, person, who)
            auth = ("anybody", token_of(gatebell, person, "write_repository"))
        for service in (READ, WRITE):
            answer = refs(gatebell, project, service, auth=auth)
            assert answer.status_code == expected(visibility, who, service), (who, service)
            if answer.status_code == 401:
                assert_requires_credentials(answer)


@pytest.mark.advisory("CVE-2026-28699")
@pytest.mark.spec("G2", "G5")
@pytest.mark.parametrize(
    ("scopes", "reads", "pushes"),
    [
        ("api", 200, 200),
        ("write_repository", 200, 200),
        ("read_repository", 200, 403),
        ("read_api", 403, 403),
        ("read_user read_registry write_registry write_alerts", 403, 403),
    ],
)
def test_each_scope_allows_only_its_services(
    gatebell: LiveGatebell, scopes: str, reads: int, pushes: int
) -> None:
    auth = ("anybody", token_of(gatebell, alice(gatebell), scopes))
    for visibility in VISIBILITIES:
        project = project_of(gatebell, visibility)
        assert refs(gatebell, project, READ, auth=auth).status_code == reads
        refused = refs(gatebell, project, WRITE, auth=auth)
        assert refused.status_code == pushes
        if pushes == 403:
            assert "must have one of these scopes: api, write_repository." in refused.text
    # An insufficient token gets the same answer for existing and missing projects.
    nowhere = refs(gatebell, "acme/nowhere", WRITE, auth=auth)
    assert nowhere.status_code == (403 if pushes == 403 else 404)


def a_token_with_a_wrong_checksum(gatebell: LiveGatebell) -> str:
    clear = token_of(gatebell, alice(gatebell), "api")
    return clear[:-1] + ("a" if clear[-1] != "a" else "b")


def an_expired_token(gatebell: LiveGatebell) -> str:
    made = make_token(gatebell, alice(gatebell))
    change(gatebell, made.id, expires_at=now() - timedelta(seconds=1))
    return made.clear


def a_revoked_token(gatebell: LiveGatebell) -> str:
    return make_token(gatebell, alice(gatebell), revoked_at=now()).clear


def a_token_of_a_locked_user(gatebell: LiveGatebell) -> str:
    person = make_user(gatebell)
    made = make_token(gatebell, person)
    set_state(gatebell, person, "locked")
    return made.clear


def a_key_bound_token(gatebell: LiveGatebell) -> str:
    made = make_token(gatebell, alice(gatebell))
    bound = update(PersonalAccessToken).where(PersonalAccessToken.id == made.id)
    with database_of(gatebell) as session:
        session.execute(bound.values(key_thumbprint="k" * 43))
    return made.clear


WRONG: dict[str, tuple[Callable[[LiveGatebell], str], str]] = {
    "a word": (lambda _: "secret", "is invalid"),
    "nothing": (lambda _: "", "is invalid"),
    "the account's password": (lambda gatebell: alice(gatebell).password, "is invalid"),
    "a mistyped token": (a_token_with_a_wrong_checksum, "is invalid"),
    "an expired token": (an_expired_token, "expired"),
    "a revoked token": (a_revoked_token, "was revoked"),
    "the token of somebody locked": (a_token_of_a_locked_user, "is invalid"),
    "a bound token": (a_key_bound_token, "Git does not support this. Use a personal"),
    "another kind of credential": (lambda _: f"gbr-{'a' * 50}", "is invalid"),
}


@pytest.mark.spec("G2")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_token_gets_the_same_error_everywhere(gatebell: LiveGatebell, wrong: str) -> None:
    make, why = WRONG[wrong]
    token = make(gatebell)
    public = project_of(gatebell, PUBLIC)
    for project, service in (
        *((public, READ), (public, WRITE)),
        *((project_of(gatebell, PRIVATE), READ), ("acme/nowhere", WRITE)),
    ):
        answer = refs(gatebell, project, service, auth=("alice", token))
        assert_requires_credentials(answer)
        assert why in answer.text
    url = f"{gatebell.url}/{public}.git/{READ}"
    assert_requires_credentials(machine(gatebell).post(url, auth=("alice", token)))


def test_errors_do_not_reveal_which_projects_exist(gatebell: LiveGatebell) -> None:
    hidden, nowhere = project_of(gatebell, PRIVATE), "acme/deep/er/nowhere"
    for service in (READ, WRITE, None):
        answers = [refs(gatebell, project, service) for project in (hidden, nowhere)]
        for answer in answers:
            assert_requires_credentials(answer)
        assert answers[0].text == answers[1].text
    stranger = ("x", token_of(gatebell, bob(gatebell), "api"))
    answers = [refs(gatebell, each, WRITE, auth=stranger) for each in (hidden, nowhere)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].text == answers[1].text
    assert "not found, or you do not have access" in answers[0].text


def test_bearer_tokens_and_any_user_name_are_accepted(
    gatebell: LiveGatebell,
) -> None:
    project, token = project_of(gatebell, PRIVATE), token_of(gatebell, alice(gatebell), "api")
    assert refs(gatebell, project, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    for username in ("oauth2", "", "alice", "Zoë", "x" * 300):
        encoded = base64.b64encode(f"{username}:{token}".encode()).decode()
        answer = refs(gatebell, project, headers={"Authorization": f"Basic {encoded}"})
        assert answer.status_code == 200, username
    assert refs(gatebell, project.upper(), auth=("x", token)).status_code == 200


def test_a_malformed_authorization_header_is_rejected(gatebell: LiveGatebell) -> None:
    project = project_of(gatebell, PUBLIC)
    for header in (
        *("Basic", "Basic !!!", "Basic bm9jb2xvbg==", "Digest x", "Basic /////w==", "Bearer"),
    ):
        assert_requires_credentials(refs(gatebell, project, headers={"Authorization": header}))


def test_only_the_smart_protocol_is_served(gatebell: LiveGatebell) -> None:
    project = project_of(gatebell, PUBLIC)
    dumb = refs(gatebell, project, None)
    assert (dumb.status_code, "Only the smart HTTP protocol" in dumb.text) == (403, True)
    assert refs(gatebell, project, "git-upload-archive").status_code == 403
    for file in ("HEAD", "config", "objects/info/packs", "info/refs/", "hooks/post-update"):
        for method in ("GET", "POST", "DELETE"):
            answer = machine(gatebell).request(
                method, f"{gatebell.url}/{project}.git/{file}", allow_redirects=False
            )
            assert answer.status_code in {404, 405}, file
            assert "Set-Cookie" not in answer.headers


def test_git_lfs_is_rejected_in_the_format_of_its_api(gatebell: LiveGatebell) -> None:
    project, token = project_of(gatebell, PRIVATE), token_of(gatebell, alice(gatebell), "api")
    for path in ("objects/batch", "locks", "locks/verify"):
        url = f"{gatebell.url}/{project}.git/info/lfs/{path}"
        body = {"operation": "upload", "objects": [{"oid": "0" * 64, "size": 1}]}
        refused = machine(gatebell).post(url, json=body)
        assert refused.status_code == 401
        assert refused.headers["LFS-Authenticate"] == 'Basic realm="Git LFS"'
        answer = machine(gatebell).post(url, json=body, auth=("x", token))
        assert answer.status_code == 501
        for each in (refused, answer):
            assert each.headers["Content-Type"].startswith("application/vnd.git-lfs+json")
            assert set(each.json()) == {"message"}
        assert answer.json()["message"].startswith("Git LFS is not supported")


def test_the_scopes_of_git_are_in_the_metadata(gatebell: LiveGatebell) -> None:
    for document in ("openid-configuration", "oauth-authorization-server"):
        told = machine(gatebell).get(f"{gatebell.url}/.well-known/{document}").json()
        assert {"read_repository", "write_repository"} <= set(told["scopes_supported"])
        assert not {"read_registry", "write_registry"} & set(told["scopes_supported"])
