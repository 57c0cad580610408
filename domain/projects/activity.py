"""When something last happened in a project, as far as a viewer may know it.

Nothing notes a time on the way of an alert: the newest rows say it, each found by an index. Only
pushes of Git leave no row, and note theirs.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    SQLColumnExpression,
    case,
    func,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.orm import Session

from domain.access.abilities import LEAST_ROLES, Ability
from domain.database.latest import latest
from domain.projects.grants import PRIVATE, has_role_in_project
from domain.projects.views import Viewer
from models import Alert, Deployment, Project, ProjectRelease, RegistryRepository


def last_activity(viewer: Viewer) -> ColumnElement[datetime]:
    """Return the time of the newest push, release, deployment, image or alert, or of the creation.

    What asks for a role counts only where the viewer has it: a public project does not tell
    everybody when an alert came in.
    """
    reads_code = _has_role_for(Ability.READ_CODE, viewer)
    return latest(
        Project.created_at,
        _newest(select(func.max(ProjectRelease.created_at)).where(_is_in(ProjectRelease))),
        _if(or_(Project.visibility != PRIVATE, reads_code), _or_creation(Project.pushed_at)),
        _if(
            reads_code,
            _newest(
                select(func.max(RegistryRepository.pushed_at)).where(_is_in(RegistryRepository))
            ),
        ),
        _if(
            _has_role_for(Ability.READ_ENVIRONMENTS, viewer),
            _newest(select(func.max(Deployment.updated_at)).where(_is_in(Deployment))),
        ),
        _if(
            _has_role_for(Ability.READ_ALERTS, viewer),
            _newest(
                select(Alert.created_at).where(_is_in(Alert)).order_by(Alert.iid.desc()).limit(1)
            ),
        ),
    )


def note_push_to(project_id: int, *, session: Session, now: datetime) -> None:
    """Note that something was pushed to the repository of a project."""
    session.execute(update(Project).where(Project.id == project_id).values(pushed_at=now))


def _is_in(
    table: type[Alert | Deployment | ProjectRelease | RegistryRepository],
) -> ColumnElement[bool]:
    return table.project_id == Project.id


def _newest(times: Select[datetime]) -> ColumnElement[datetime]:
    return _or_creation(times.correlate(Project).scalar_subquery())


def _or_creation(time: SQLColumnExpression[Any]) -> ColumnElement[datetime]:
    return func.coalesce(time, Project.created_at)


def _if(is_known: ColumnElement[bool], time: ColumnElement[datetime]) -> ColumnElement[datetime]:
    return case((is_known, time), else_=Project.created_at)


def _has_role_for(ability: Ability, viewer: Viewer) -> ColumnElement[bool]:
    return true() if viewer.is_admin else has_role_in_project(viewer, LEAST_ROLES[ability])
