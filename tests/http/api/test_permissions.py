"""Tests that each API operation is open only to the callers in the table of permissions.

The tests read the same table as the service (`domain/access/permissions.py`). They send each
operation with the roles on both sides of its border, for each visibility, with a token for each
scope that opens it, and with a token of all other scopes. The app runs in this process, because
roles and scopes of thousands of requests are the same over a connection.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.routing import Rule

from domain.access.permissions import PERMISSIONS, Permission, PermissionTarget
from domain.access.roles import Role
from domain.access.scopes import SCOPES_BY_NAME
from models import PersonalAccessToken
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import Person, alice, database_of, make_project
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role, person_for
from tests.support.service.live import SECRET_KEY, LiveGatebell, NewService

pytestmark = pytest.mark.one_database("sqlite")

#: Number of parts of the operations: `make test` runs one, and `make test-long` all.
PARTS = 3
in_parts = pytest.mark.parametrize(
    "part", [0, *(pytest.param(each, marks=pytest.mark.long) for each in range(1, PARTS))]
)

VISIBILITIES = ("private", "internal", "public")
ADMINISTRATOR = "administrator"
#: Callers of operations. `None` is a signed-in user without a role.
CALLERS: tuple[Role | str | None, ...] = (None, *Role, ADMINISTRATOR)
ADMITTED = "admitted"
#: Id that no row has.
MISSING_ID = 2**31 - 1
VALUES = {
    "int": str(MISSING_ID),
    "string": "nobody@example.org",
    "path": "nothing",
    "names": "nothing",
    "sha": "0" * 40,
}
#: Variable of a rule, with the first word of `any(…)`.
VARIABLE = re.compile(r"<(?P<converter>\w+)(?:\((?P<first>\w+)[^)]*\))?:(?P<name>\w+)>")
#: Reasons of rejections by a part of the message. Other rejections happen after the permission
#: check.
REFUSALS = (
    ("401", "401"),
    ("insufficient_scope", "scope"),
    (" role in ", "role"),
    ("Only administrators of the instance", "administrators"),
    ("Project not found", "unseen"),
    ("Group not found", "unseen"),
)
NO_LIMITS = {
    f"{family}_RATE_LIMIT": "off"
    for family in (
        *("API", "USERS_API", "USER_API", "PROJECTS_API", "ANONYMOUS_PROJECTS_API", "PROJECT_API"),
        *("GROUPS_API", "GROUP_API", "GROUP_PROJECTS_API", "MEMBERS_API"),
    )
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request for an operation at one URL."""

    name: str
    permission: Permission
    rule: Rule
    method: str
    #: Either `projects` or `groups`, for a rule that accepts both.
    kind: str = ""

    @property
    def least(self) -> Role | None:
        """Return the lowest role that may call the operation."""
        return self.permission.get_minimum_role(is_group=self.kind == "groups")

    @property
    def is_of_project(self) -> bool:
        """Return whether the URL names a project."""
        return self.permission.target is PermissionTarget.PROJECT or self.kind == "projects"

    @property
    def is_of_instance(self) -> bool:
        """Return whether the URL names neither a project nor a group."""
        return self.permission.target is PermissionTarget.INSTANCE

    @property
    def may_change_something(self) -> bool:
        """Return whether an admitted request can do more than not find a row."""
        variables = self.rule.arguments - {"reference", "kind"}
        return self.method != "GET" and not variables

    def path(self, project: str) -> str:
        """Return the path for a project or its group, with ids of rows that do not exist."""
        reference = project if self.is_of_project else project.partition("/")[0]
        own = {"reference": quote(reference, safe=""), "kind": self.kind}

        def value(found: re.Match[str]) -> str:
            return own.get(found["name"]) or VALUES.get(found["converter"]) or found["first"]

        return VARIABLE.sub(value, self.rule.rule)


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """A service with a project of each visibility, and a user for each role in all of them."""

    service: LiveGatebell
    client: FlaskClient
    projects: dict[str, str] = field(default_factory=dict)

    def person(self, caller: Role | str | None) -> Person:
        """Return the user with a role."""
        if caller == ADMINISTRATOR:
            return get_shared_administrator(self.service)
        return person_for(self.service, caller if isinstance(caller, Role) else None)

    def new_project(self, visibility: str, roles: Iterable[Role] = ()) -> str:
        """Create a project in its own group, with a member for each of these roles."""
        made = make_project(self.service, alice(self.service), visibility=visibility)
        for role in roles:
            give_role(self.service, made.partition("/")[0], self.person(role), role)
        return made


@pytest.fixture(scope="module")
def world(new_service: NewService) -> Iterator[World]:
    """A service without rate limits that only this file uses."""
    service = new_service("sqlite", SECRET_KEY=SECRET_KEY, **NO_LIMITS)
    client = service.app().test_client(use_cookies=False)
    made = World(service=service, client=client)
    made.projects.update({each: made.new_project(each, Role) for each in VISIBILITIES})
    yield made
    service.close()


@pytest.fixture(scope="module")
def calls(world: World) -> list[Call]:
    """Return every operation of the table, at each of its URLs."""
    found = []
    for rule in world.service.app().url_map.iter_rules():
        name = rule.endpoint.removeprefix("api_v4.")
        if name not in PERMISSIONS or name == rule.endpoint:
            continue
        kinds = (
            ("projects", "groups")
            if PERMISSIONS[name].target is PermissionTarget.NAMESPACE
            else ("",)
        )
        methods = sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
        found += [
            Call(name=name, permission=PERMISSIONS[name], rule=rule, method=method, kind=kind)
            for method, kind in product(methods, kinds)
        ]
    assert {call.name for call in found} == set(PERMISSIONS)
    return found


@cache
def token_of(service: LiveGatebell, person: Person, scopes: str) -> str:
    return make_token(service, person, scopes=scopes).clear


def answered(world: World, call: Call, project: str, token: str | None) -> str:
    """Send a request and return `ADMITTED`, or the reason of its rejection."""
    headers = {"PRIVATE-TOKEN": token} if token else {}
    answer = world.client.open(
        call.path(project), method=call.method, headers=headers, base_url=world.service.url
    )
    is_answered = answer.status_code < 500 and answer.status_code != 429
    assert is_answered, (call.name, answer.status_code, answer.text)
    if answer.status_code not in {401, 403, 404}:
        return ADMITTED
    body = answer.get_json()
    said = f"{answer.status_code} {body.get('error', '')} {body.get('message', '')}"
    return next((word for beginning, word in REFUSALS if beginning in said), ADMITTED)


def expected(call: Call, caller: Role | str | None, visibility: str) -> str:
    """Return the result that the table demands for a caller with a token of full scope."""
    if caller == ADMINISTRATOR:
        return ADMITTED
    if call.permission.is_for_administrators:
        return "administrators"
    return ADMITTED if call.is_of_instance else _expected_there(call, caller, visibility)


def _expected_there(call: Call, caller: Role | str | None, visibility: str) -> str:
    role = caller if isinstance(caller, Role) else None
    if role is None and visibility == "private":
        return "unseen"
    least = call.least or (call.permission.in_private if visibility == "private" else None)
    is_enough = least is None or (role is not None and role >= least)
    return ADMITTED if is_enough else "role"


def cases(call: Call, *, is_first: bool) -> Sequence[tuple[Role | str | None, str]]:
    """Return callers and visibilities: both sides of the border, and a user without a role.

    The first operation with a border is called with every role, since a higher role may do
    everything that a lower role may do.
    """
    least = call.least or call.permission.in_private
    below = [role for role in Role if least is not None and role < least]
    near = (None, *([max(below)] if below else []), *([least] if least else []))
    everywhere = CALLERS if is_first else dict.fromkeys((*near, Role.OWNER, ADMINISTRATOR))
    private = [(caller, "private") for caller in everywhere]
    if call.is_of_instance:
        return private
    # The visibility of a project matters only to callers without a role; the others test its
    # border.
    return [*private, (None, "internal"), *product(near, ("public",))]


def all_cases(calls: Iterable[Call]) -> Iterator[tuple[Call, Role | str | None, str]]:
    """Yield each call with each of its cases."""
    borders: set[tuple[PermissionTarget, str, Role | None, bool]] = set()
    for call in calls:
        row = call.permission
        border = (row.target, call.kind, call.least, row.is_for_administrators)
        for caller, visibility in cases(call, is_first=border not in borders):
            yield call, caller, visibility
        borders.add(border)


@pytest.mark.long
@pytest.mark.spec("G5")
@in_parts
def test_each_role_can_call_exactly_its_operations(
    world: World, calls: list[Call], part: int
) -> None:
    wrong = []
    for call, caller, visibility in all_cases(calls[part::PARTS]):
        hoped = expected(call, caller, visibility)
        project, person = world.projects[visibility], world.person(caller)
        token = token_of(world.service, person, "api")
        if hoped == ADMITTED and call.may_change_something:
            if caller not in {call.least, Role.OWNER, ADMINISTRATOR}:
                continue
            roles = [caller] if isinstance(caller, Role) else []
            project = world.new_project(visibility, roles)
            token = make_token(world.service, person).clear
        found = answered(world, call, project, token)
        if found != hoped:
            wrong.append((call.name, call.kind, str(caller), visibility, hoped, found))
    assert wrong == []


@cache
def token_with(world: World, scopes: str) -> str:
    """Return an administrator's token with these scopes, including scopes for applications.

    The token also has the scope `admin_mode`, which opens nothing by itself.
    """
    made = make_token(world.service, get_shared_administrator(world.service))
    with database_of(world.service) as session:
        token = PersonalAccessToken.id == made.id
        session.execute(
            update(PersonalAccessToken).where(token).values(scopes=f"{scopes} admin_mode")
        )
        session.commit()
    return made.clear


@pytest.mark.long
@pytest.mark.spec("G5")
@in_parts
def test_each_scope_opens_exactly_its_operations(
    world: World, calls: list[Call], part: int
) -> None:
    wrong = []
    for call in calls[part::PARTS]:
        opening = [scope for scope in SCOPES_BY_NAME if scope in call.permission.scopes]
        # One token with all other scopes is enough: if any of them opened the operation, it would
        # succeed.
        closed = " ".join(scope for scope in SCOPES_BY_NAME if scope not in opening)
        for scopes in filter(None, (*opening, closed)):
            opens = scopes != closed
            if opens and call.may_change_something:
                continue  # The test of roles has sent this request.
            found = answered(world, call, world.projects["private"], token_with(world, scopes))
            if (found == "scope") is opens:
                wrong.append((call.name, scopes, found))
    assert wrong == []


def test_operations_of_administrators_need_admin_mode(world: World, calls: list[Call]) -> None:
    made = make_token(
        world.service, get_shared_administrator(world.service), scopes="api", administers=False
    )
    administrations = [call for call in calls if call.permission.is_for_administrators]
    assert len(administrations) > 30
    found = {
        (call.name, answered(world, call, world.projects["private"], made.clear))
        for call in administrations
    }
    assert found == {(call.name, "scope") for call in administrations}


@pytest.mark.long
@pytest.mark.spec("G1")
def test_only_public_data_is_shown_without_a_token(world: World, calls: list[Call]) -> None:
    wrong = []
    for call, visibility in product(calls, VISIBILITIES):
        found = answered(world, call, world.projects[visibility], None)
        hoped = "401"
        if call.permission.is_open:
            is_shown = call.is_of_instance or visibility == "public"
            hoped = ADMITTED if is_shown else "unseen"
        if found != hoped:
            wrong.append((call.name, call.kind, visibility, hoped, found))
    assert wrong == []
