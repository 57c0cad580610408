"""Tests of access tokens of projects and groups in the API."""

from datetime import date
from typing import Any

import pytest
import requests
from sqlalchemy import select, update

from domain.access.roles import Role
from models import Member, User
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import Person, database_of, make_project, make_user, sign_in
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.resource_tokens import (
    Namespace,
    create_member_script,
    day,
    get_namespace,
    make_bot_token,
    post,
    script_of,
)
from tests.support.accounts.team import give_role
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

FIELDS = {
    *("id", "name", "revoked", "created_at", "description", "scopes", "user_id", "last_used_at"),
    *("active", "expires_at", "access_level", "resource_type", "resource_id"),
}


@pytest.fixture
def script(gatebell: LiveGatebell, alice: Person) -> Api:
    """An API client of Alice."""
    return script_of(gatebell, alice)


def status(gatebell: LiveGatebell, token: str) -> int:
    return Api(gatebell, token).send_request("GET", "/user").status_code


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_a_created_token_has_the_gitlab_fields_and_is_shown_once(
    gatebell: LiveGatebell, script: Api, namespace: Namespace
) -> None:
    answer = post(script, namespace, description="the runner", expires_at=day(30), access_level=20)

    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    made = answer.json()
    assert set(made) == FIELDS | {"token"}
    assert made["token"].startswith("gbp-")
    assert (made["name"], made["description"]) == ("deploy", "the runner")
    assert (made["scopes"], made["access_level"]) == (["api"], 20)
    assert (made["active"], made["revoked"], made["last_used_at"]) == (True, False, None)
    assert made["expires_at"] == day(30)
    assert (made["resource_type"] + "s", made["resource_id"]) == (namespace.kind, namespace.id)
    shown = script.send_request("GET", f"{namespace.by_path}/{made['id']}").json()
    assert shown == {name: made[name] for name in FIELDS}
    assert script.send_request("GET", namespace.by_id).json() == [shown]
    assert status(gatebell, made["token"]) == 200
    # By default, a token has the Maintainer role and a lifetime of a year.
    form = {"name": "x", "scopes[]": "read_api"}
    usual = script.send_request("POST", namespace.by_path, data=form).json()
    assert (usual["access_level"], usual["expires_at"]) == (40, day(365))


@pytest.mark.long
@pytest.mark.spec("G4")
def test_a_token_acts_as_a_bot_member_with_its_role(
    gatebell: LiveGatebell, script: Api, namespace: Namespace, alice: Person
) -> None:
    developer = make_bot_token(script, namespace, access_level=30)
    maintainer = make_bot_token(
        script, namespace, access_level=40 if namespace.kind == "projects" else 50
    )
    bot = Api(gatebell, developer.clear)

    user = bot.send_request("GET", "/user").json()
    assert user["username"].startswith(f"{namespace.kind[:-1]}_{namespace.id}_bot_")
    assert user["email"].endswith("@noreply.invalid")
    assert (user["name"], user["id"]) == ("deploy", developer.user_id)
    # The bot can see the namespace as a member, but the request needs a higher role.
    assert bot.send_request("GET", namespace.by_id).status_code == 403
    assert Api(gatebell, maintainer.clear).send_request("GET", namespace.by_id).status_code == 200
    other = get_namespace(gatebell, namespace.kind, make_project(gatebell, alice))
    assert Api(gatebell, maintainer.clear).send_request("GET", other.by_id).status_code == 404
    # The bot cannot create tokens or sign in.
    assert post(Api(gatebell, maintainer.clear), namespace).status_code == 403
    for password in ("!", "", "password"):
        form = {"grant_type": "password", "username": user["username"], "password": password}
        answer = machine(gatebell).post(f"{gatebell.url}/oauth/token", data=form)
        assert answer.json()["error"] in {"invalid_grant", "invalid_request"}
    with pytest.raises(AssertionError):
        sign_in(gatebell, Person(username=user["username"], email="", password="!"))


def test_a_temporary_member_can_manage_tokens_until_the_membership_ends(
    gatebell: LiveGatebell, alice: Person
) -> None:
    project = get_namespace(gatebell, "projects", make_project(gatebell, alice))
    temporary = make_user(gatebell)
    give_role(gatebell, project.path, temporary, Role.MAINTAINER)
    with database_of(gatebell) as session:
        of_them = select(User.id).where(User.username == temporary.username).scalar_subquery()
        ends = update(Member).where(Member.user_id == of_them)
        session.execute(ends.values(expires_at=date.fromisoformat(day(30))))
    script = script_of(gatebell, temporary)
    made = make_bot_token(script, project)
    assert script.send_request("DELETE", f"{project.by_id}/{made.id}").status_code == 204


@pytest.mark.long
@pytest.mark.spec("G4")
def test_members_cannot_give_or_revoke_tokens_with_a_higher_role(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    project = get_namespace(gatebell, "projects", make_project(gatebell, owner))
    maintainer = create_member_script(gatebell, project, Role.MAINTAINER)
    refused = post(maintainer, project, access_level=50)
    assert (refused.status_code, "Owner" in refused.json()["error"]) == (400, True)
    bot = Api(gatebell, make_bot_token(maintainer, project, access_level=40).clear)
    owners = make_bot_token(script_of(gatebell, owner), project, access_level=50)
    lesser = make_bot_token(maintainer, project, access_level=30)

    for script in (maintainer, bot):
        refused = script.send_request("DELETE", f"{project.by_id}/{owners.id}")
        assert refused.status_code == 403
        assert "with the Owner role, because your role is Maintainer" in refused.json()["message"]
        assert script.send_request("POST", f"{project.by_id}/{owners.id}/rotate").status_code == 403
    assert status(gatebell, owners.clear) == 200
    assert bot.send_request("DELETE", f"{project.by_id}/{lesser.id}").status_code == 204
    assert script_of(gatebell, owner).send_request("DELETE", f"{project.by_id}/{owners.id}").ok


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_a_rotated_token_keeps_its_bot_and_role(
    gatebell: LiveGatebell, script: Api, namespace: Namespace
) -> None:
    made = make_bot_token(script, namespace)

    answer = script.send_request(
        "POST", f"{namespace.by_id}/{made.id}/rotate", json={"expires_at": day(9)}
    )

    assert answer.status_code == 200, answer.text
    new = answer.json()
    assert (new["user_id"], new["access_level"]) == (made.user_id, 30)
    assert new["expires_at"] == day(9)
    assert status(gatebell, made.clear) == 401
    assert status(gatebell, new["token"]) == 200
    assert [each["id"] for each in _listed(script, namespace, state="active")] == [new["id"]]
    assert {each["id"] for each in _listed(script, namespace)} == {made.id, new["id"]}


@pytest.mark.long
@pytest.mark.spec("G4")
def test_a_token_can_rotate_only_itself(
    gatebell: LiveGatebell, script: Api, namespace: Namespace, alice: Person
) -> None:
    made, other = (make_bot_token(script, namespace, access_level=40) for _ in range(2))
    bot = Api(gatebell, made.clear)
    foreign = get_namespace(
        gatebell, namespace.kind, make_project(gatebell, alice, visibility="public")
    )

    assert bot.send_request("POST", f"{namespace.by_id}/{other.id}/rotate").status_code == 403
    assert bot.send_request("POST", f"{foreign.by_id}/self/rotate").status_code in {403, 404}
    assert script.send_request("POST", f"{namespace.by_id}/self/rotate").status_code == 404
    answer = bot.send_request("POST", f"{namespace.by_path}/self/rotate")

    assert answer.status_code == 200, answer.text
    assert answer.json()["expires_at"] == day(7)
    assert status(gatebell, answer.json()["token"]) == 200
    # A reuse of the old token ends its family, and removes the bot from the namespace.
    assert bot.send_request("POST", f"{namespace.by_path}/self/rotate").status_code == 401
    assert status(gatebell, answer.json()["token"]) == 401
    assert status(gatebell, other.clear) == 200


def memberships(gatebell: LiveGatebell, user_id: int) -> tuple[int, bool]:
    """Return the number of a user's memberships, and whether the account still exists."""
    with database_of(gatebell) as session:
        members = session.scalars(select(Member.id).where(Member.user_id == user_id)).all()
        return len(members), session.get(User, user_id) is not None


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_a_bot_loses_its_membership_with_its_token_but_the_account_is_kept(
    gatebell: LiveGatebell, script: Api, namespace: Namespace
) -> None:
    own, named, theirs = made = [make_bot_token(script, namespace) for _ in range(3)]
    assert {memberships(gatebell, each.user_id) for each in made} == {(1, True)}

    for answer in (
        Api(gatebell, own.clear).send_token_request("DELETE", "/self"),
        script.send_request("DELETE", f"{namespace.by_id}/{named.id}"),
        script_of(gatebell, get_shared_administrator(gatebell)).send_token_request(
            "DELETE", f"/{theirs.id}"
        ),
    ):
        assert answer.status_code == 204

    assert {memberships(gatebell, each.user_id) for each in made} == {(0, True)}
    for seen in _listed(script, namespace):
        assert (seen["revoked"], seen["active"], seen["access_level"]) == (True, False, None)
    assert _listed(script, namespace, state="active") == []


@pytest.mark.spec("G4")
def test_tokens_of_one_namespace_are_not_found_in_another(
    gatebell: LiveGatebell, script: Api, alice: Person, namespace: Namespace
) -> None:
    made = make_bot_token(script, namespace)
    project = make_project(gatebell, alice)
    for kind in ("projects", "groups"):
        other = get_namespace(gatebell, kind, project)
        answers = [
            script.send_request("GET", f"{other.by_id}/{made.id}"),
            script.send_request("DELETE", f"{other.by_id}/{made.id}"),
            script.send_request("POST", f"{other.by_id}/{made.id}/rotate"),
        ]
        assert [answer.status_code for answer in answers] == [404] * 3
    assert script.send_request("GET", f"{namespace.by_id}/{'9' * 19}").status_code == 404
    assert status(gatebell, made.clear) == 200


NOWHERE = (
    *("0", "99999999", "9" * 19, "9" * 30, "-1", "nobody", "nobody%2Fnothing", "%00", "%F0%9F"),
    ".",
)


@pytest.mark.spec("G4")
@pytest.mark.parametrize("kind", ["projects", "groups"])
def test_an_unknown_namespace_is_not_found(script: Api, kind: str) -> None:
    for reference in NOWHERE:
        answer = script.send_request("GET", f"/{kind}/{reference}/access_tokens")

        assert answer.status_code == 404, reference
        assert answer.json()["message"].startswith("404 Not Found")


WRONG: tuple[dict[str, Any], ...] = (
    {"access_level": 35},
    {"access_level": 0},
    {"access_level": "owner"},
    {"access_level": [40]},
    {"access_level": 2**70},
    {"name": ""},
    {"name": None},
    {"name": "a\x00b"},
    {"name": "x" * 101},
    {"scopes": []},
    {"scopes": ["openid"]},
    {"scopes": "root"},
    {"expires_at": "never"},
    {"expires_at": day(0)},
    {"description": ["x"]},
)


@pytest.mark.long
@pytest.mark.spec("G4")
def test_an_invalid_token_is_rejected_and_no_bot_is_created(
    gatebell: LiveGatebell, script: Api, namespace: Namespace
) -> None:
    for changes in WRONG:
        answer = post(script, namespace, **changes)

        assert answer.status_code == 400, (changes, answer.text)
        assert set(answer.json()) == {"error", "errors"}
    assert _listed(script, namespace) == []
    with database_of(gatebell) as session:
        prefix = f"{namespace.kind[:-1]}_{namespace.id}_bot_"
        bots = session.scalars(select(User.id).where(User.username.startswith(prefix))).all()
    assert bots == []


def _listed(script: Api, namespace: Namespace, **query: str) -> list[dict[str, Any]]:
    answer: requests.Response = script.send_request("GET", namespace.by_id, params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found
