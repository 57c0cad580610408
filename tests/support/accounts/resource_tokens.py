"""Access tokens of projects and groups, created through the API by a user's script."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import requests
from sqlalchemy import select

from domain.access.roles import Role
from models import Group, Project
from tests.support.accounts.people import Person, database_of, now
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role, person_for
from tests.support.service.live import LiveGatebell


@dataclass(frozen=True)
class Namespace:
    """A project or group with its id."""

    kind: str
    path: str
    id: int

    @property
    def by_path(self) -> str:
        """URL of its tokens below /api/v4, by its path."""
        return f"/{self.kind}/{quote(self.path, safe='')}/access_tokens"

    @property
    def by_id(self) -> str:
        """URL of its tokens below /api/v4, by its id."""
        return f"/{self.kind}/{self.id}/access_tokens"

    @property
    def page(self) -> str:
        """Path of the page of its tokens."""
        if self.kind == "groups":
            return f"/groups/{self.path}/-/access_tokens"
        return f"/{self.path}/-/settings/access_tokens"


def get_namespace(gatebell: LiveGatebell, kind: str, project_path: str) -> Namespace:
    """Return a project, or the group of the project."""
    table = Project if kind == "projects" else Group
    path = project_path if kind == "projects" else project_path.rpartition("/")[0]
    with database_of(gatebell) as session:
        number = session.scalar(select(table.id).where(table.path == path))
    assert number is not None
    return Namespace(kind=kind, path=path, id=number)


def script_of(gatebell: LiveGatebell, person: Person, **options: Any) -> Api:
    return Api(gatebell, make_token(gatebell, person, **options).clear)


def create_member_script(gatebell: LiveGatebell, namespace: Namespace, role: Role | None) -> Api:
    """Return the script of a user with a role in a namespace."""
    person = person_for(gatebell, role)
    if role is not None:
        give_role(gatebell, namespace.path, person, role)
    return script_of(gatebell, person)


@dataclass(frozen=True)
class BotToken:
    """A token of a namespace, as its creator received it."""

    id: int
    user_id: int
    clear: str = field(repr=False)


def post(script: Api, namespace: Namespace, **changes: Any) -> requests.Response:
    """Send a request that creates a token."""
    body = {"name": "deploy", "scopes": ["api"], "access_level": 30, **changes}
    return script.send_request("POST", namespace.by_id, json=body)


def make_bot_token(script: Api, namespace: Namespace, **changes: Any) -> BotToken:
    answer = post(script, namespace, **changes)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    return BotToken(id=made["id"], user_id=made["user_id"], clear=made["token"])


def day(days: int) -> str:
    return (now() + timedelta(days=days)).date().isoformat()
