"""Every operation of the API is open to exactly those whom the table of permissions names.

The test walks over the table that the service reads (`domain/access/permissions.py`): each
operation, for each role and each visibility, and with a token of each scope.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from urllib.parse import quote
from zlib import crc32

import pytest
import requests
from flask import Flask
from sqlalchemy import update
from werkzeug.routing import Rule

from domain.access.permissions import PERMISSIONS, Permission, Target
from domain.access.roles import Role
from domain.access.scopes import BY_NAME
from models import PersonalAccessToken
from tests.support.accounts.administration import root
from tests.support.accounts.people import Person, alice, database_of, make_project
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role, person_for
from tests.support.service.live import LiveGatebell, NewService, running

pytestmark = pytest.mark.one_database("sqlite")

VISIBILITIES = ("private", "internal", "public")
ADMINISTRATOR = "administrator"
#: None is somebody without a role, who is signed in.
CALLERS: tuple[Role | str | None, ...] = (None, *Role, ADMINISTRATOR)
ADMITTED = "admitted"
#: No row has it.
MISSING_ID = 2**31 - 1
VALUES = {
    "int": str(MISSING_ID),
    "string": "nobody@example.org",
    "path": "nothing",
    "names": "nothing",
    "sha": "0" * 40,
}
#: So many scopes that do not open an operation are tried on each.
_OTHERS = 3
#: A variable of a rule; of `any(…)` the first word.
VARIABLE = re.compile(r"<(?P<converter>\w+)(?:\((?P<first>\w+)[^)]*\))?:(?P<name>\w+)>")
#: Refusals by a part of what is said; whatever else is refused was admitted before.
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
    #: `projects` or `groups` of a rule that takes both.
    kind: str = ""

    @property
    def least(self) -> Role | None:
        """The lowest role that may call it."""
        row = self.permission
        return row.least_in_group if self.kind == "groups" else row.least

    @property
    def is_of_project(self) -> bool:
        """Whether its URL names a project."""
        return self.permission.target is Target.PROJECT or self.kind == "projects"

    @property
    def is_of_instance(self) -> bool:
        """Whether its URL names neither a project nor a group."""
        return self.permission.target is Target.INSTANCE

    @property
    def may_change_something(self) -> bool:
        """Whether a request that is admitted may do more than not find a row."""
        variables = self.rule.arguments - {"reference", "kind"}
        return self.method != "GET" and not variables

    def path(self, project: str) -> str:
        """Return its path, for a project or for its group, with rows that are not there."""
        reference = project if self.is_of_project else project.partition("/")[0]
        own = {"reference": quote(reference, safe=""), "kind": self.kind}

        def value(found: re.Match[str]) -> str:
            return own.get(found["name"]) or VALUES.get(found["converter"]) or found["first"]

        return VARIABLE.sub(value, self.rule.rule)


@dataclass(frozen=True, kw_only=True)
class World:
    """A service with a project of each visibility, and a person for each role in all of them."""

    service: LiveGatebell
    projects: dict[str, str] = field(default_factory=dict)

    def person(self, caller: Role | str | None) -> Person:
        """Return who has this role."""
        if caller == ADMINISTRATOR:
            return root(self.service)
        return person_for(self.service, caller if isinstance(caller, Role) else None)

    def new_project(self, visibility: str, roles: Iterable[Role] = Role) -> str:
        """Create a project in a group of its own, with a member of each of these roles."""
        made = make_project(self.service, alice(self.service), visibility=visibility)
        for role in roles:
            give_role(self.service, made.partition("/")[0], self.person(role), role)
        return made


@pytest.fixture(scope="module")
def world(new_service: NewService) -> Iterator[World]:
    """A service without limits, on which this file alone works."""
    with running(new_service("sqlite", only="web", **NO_LIMITS)) as service:
        made = World(service=service)
        made.projects.update({each: made.new_project(each) for each in VISIBILITIES})
        yield made


@pytest.fixture
def calls(app: Flask) -> list[Call]:
    """Every operation of the table, at each of its URLs."""
    found = []
    for rule in app.url_map.iter_rules():
        name = rule.endpoint.removeprefix("api_v4.")
        if name not in PERMISSIONS or name == rule.endpoint:
            continue
        kinds = ("projects", "groups") if PERMISSIONS[name].target is Target.NAMESPACE else ("",)
        methods = sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
        found += [
            Call(name=name, permission=PERMISSIONS[name], rule=rule, method=method, kind=kind)
            for method, kind in product(methods, kinds)
        ]
    assert {call.name for call in found} == set(PERMISSIONS)
    return found


@cache
def token_of(world_url: str, service: LiveGatebell, person: Person, scopes: str) -> str:
    del world_url
    return make_token(service, person, scopes=scopes).clear


def answered(
    world: World, call: Call, project: str, token: str | None, session: requests.Session
) -> str:
    """Return how a request is answered: admitted, or the reason why it is not."""
    url = f"{world.service.url}{call.path(project)}"
    headers = {"PRIVATE-TOKEN": token} if token else {}
    answer = session.request(call.method, url, headers=headers, timeout=30, allow_redirects=False)
    is_answered = answer.status_code < 500 and answer.status_code != 429
    assert is_answered, (call.name, answer.status_code, answer.text)
    if answer.status_code not in {401, 403, 404}:
        return ADMITTED
    body = answer.json()
    said = f"{answer.status_code} {body.get('error', '')} {body.get('message', '')}"
    return next((word for beginning, word in REFUSALS if beginning in said), ADMITTED)


def expected(call: Call, caller: Role | str | None, visibility: str) -> str:
    """Return what the table says of somebody with a token of full scope."""
    if caller == ADMINISTRATOR:
        return ADMITTED
    if call.permission.is_for_administrators:
        return "administrators"
    return ADMITTED if call.is_of_instance else _expected_there(call, caller, visibility)


def _expected_there(call: Call, caller: Role | str | None, visibility: str) -> str:
    role = caller if isinstance(caller, Role) else None
    if role is None and visibility == "private":
        return "unseen"
    is_enough = call.least is None or (role is not None and role >= call.least)
    return ADMITTED if is_enough else "role"


def cases(call: Call) -> Sequence[tuple[Role | str | None, str]]:
    """Return those on both sides of the border; roles are in order, the others lie behind."""
    below = [role for role in Role if call.least is not None and role < call.least]
    near = (None, *([max(below)] if below else []), *([call.least] if call.least else []))
    if call.is_of_instance:
        return [(caller, "private") for caller in (None, ADMINISTRATOR)]
    return [*product(near, VISIBILITIES), (Role.OWNER, "private"), (ADMINISTRATOR, "private")]


@pytest.mark.spec("G5")
def test_each_role_reaches_what_the_table_gives_it(world: World, calls: list[Call]) -> None:
    wrong = []
    with requests.Session() as session:
        for call in calls:
            for caller, visibility in cases(call):
                hoped = expected(call, caller, visibility)
                project, person = world.projects[visibility], world.person(caller)
                token = token_of(world.service.url, world.service, person, "api")
                if hoped == ADMITTED and call.may_change_something:
                    if caller not in {call.least, Role.OWNER, ADMINISTRATOR}:
                        continue
                    roles = [caller] if isinstance(caller, Role) else []
                    project = world.new_project(visibility, roles)
                    token = make_token(world.service, person).clear
                found = answered(world, call, project, token, session)
                if found != hoped:
                    wrong.append((call.name, call.kind, str(caller), visibility, hoped, found))
    assert wrong == []


def token_with(world: World, scope: str) -> str:
    """Return an administrator's token of one scope, also of those that are for applications.

    With `admin_mode`, which opens nothing alone.
    """
    made = make_token(world.service, root(world.service))
    with database_of(world.service) as session:
        token = PersonalAccessToken.id == made.id
        session.execute(
            update(PersonalAccessToken).where(token).values(scopes=f"{scope} admin_mode")
        )
        session.commit()
    return made.clear


def scopes_for(call: Call) -> Iterator[str]:
    """Yield the scopes that open an operation, and some others: not the same for each."""
    closed = [scope for scope in BY_NAME if scope not in call.permission.scopes]
    begin = crc32(call.name.encode())
    yield from call.permission.scopes
    yield from {closed[(begin + step) % len(closed)] for step in range(min(_OTHERS, len(closed)))}


@pytest.mark.spec("G5")
def test_each_scope_opens_what_the_table_says(world: World, calls: list[Call]) -> None:
    wrong, tokens = [], {scope: token_with(world, scope) for scope in BY_NAME}
    with requests.Session() as session:
        for call in calls:
            for scope in scopes_for(call):
                opens = scope in call.permission.scopes
                if opens and call.may_change_something:
                    continue  # the other test has sent it
                project = world.projects["private"]
                found = answered(world, call, project, tokens[scope], session)
                if (found == "scope") is opens:
                    wrong.append((call.name, scope, found))
    assert wrong == []


@pytest.mark.spec("G1")
def test_without_a_token_only_what_is_public_is_shown(world: World, calls: list[Call]) -> None:
    wrong = []
    with requests.Session() as session:
        for call, visibility in product(calls, VISIBILITIES):
            found = answered(world, call, world.projects[visibility], None, session)
            hoped = "401"
            if call.permission.is_open:
                is_shown = call.is_of_instance or visibility == "public"
                hoped = ADMITTED if is_shown else "unseen"
            if found != hoped:
                wrong.append((call.name, call.kind, visibility, hoped, found))
    assert wrong == []
