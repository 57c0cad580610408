"""Units of work for tests that call actions without a running service or next to one."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from domain.access.actor import OPERATOR, AccessMethod, Actor, UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.core.keyring import Keyring
from domain.projects.access import get_project
from domain.projects.views import ProjectView, Viewer
from models import Project
from tests.support.accounts.people import now as present
from tests.support.accounts.people import settings_of
from tests.support.service.live import LiveGatebell
from web.settings.environment import Settings

Policy = TypeVar("Policy")

_POLICIES: dict[type, Any] = {
    ParserSettings: ParserSettings(nesting_limit=100, automatic_fingerprint=True)
}


_NOWHERE = Path("/nowhere")
#: Default settings, with values for settings whose defaults are computed.
_USUAL = Settings(
    base_url="http://gatebell.example",
    instance_path=_NOWHERE,
    database_url="",
    repositories_path=_NOWHERE,
    secret_key="",
)


def work_in(
    session: Session,
    *,
    actor: Actor = OPERATOR,
    now: datetime | None = None,
    policies: Collection[object] = (),
    service: LiveGatebell | None = None,
) -> UnitOfWork:
    """Return a unit of work of an actor, by default of the operator.

    With a service, it has the service's URL and key.
    """
    own = [Keyring(settings_of(service).secret_key)] if service else []
    known = {**_POLICIES, **{type(each): each for each in (*own, *policies)}}

    def policy(kind: type[Policy]) -> Policy:
        found: Policy = known[kind]
        return found

    return UnitOfWork(
        actor=actor,
        session=session,
        now=now or present(),
        settings=replace(_USUAL, base_url=service.url) if service else _USUAL,
        policy=policy,
    )


def user_actor(user_id: int, name: str) -> Actor:
    """Return a user who is signed in on a page."""
    return Actor(means=AccessMethod.PAGE, id=user_id, name=name)


def project_in(session: Session, project_id: int) -> ProjectView:
    """Return a project as the operator sees it."""
    path = session.get_one(Project, project_id).path
    return get_project(path, Viewer(user_id=None, is_admin=True), session=session)
