"""Changes groups and projects: their names, who sees them, and whether they take changes."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.accounts.names import check_display_name
from domain.accounts.users import BOT
from domain.errors import ForbiddenError, InvalidError, NotFoundError
from domain.projects.access import role_in_namespace
from domain.projects.grants import VISIBILITIES
from domain.projects.views import Viewer
from models import Group, Project, User

Row = TypeVar("Row", Group, Project)
#: In characters.
LONGEST_DESCRIPTION = 2000
#: What was changed, by name: the old and the new value.
Changes = Mapping[str, tuple[str, str]]


#: The new values of columns; None leaves one as it is.
Values = Mapping[str, str | bool | None]


def checked_name(name: str) -> str:
    """Return a name without spaces around it, or raise InvalidError."""
    clean = name.strip()
    try:
        check_display_name(clean)
    except ValueError as error:
        raise InvalidError(str(error), field="name") from error
    if not clean:
        message = "A name has at least one character."
        raise InvalidError(message, field="name")
    return clean


def checked_description(description: str) -> str:
    """Return a description, or raise InvalidError if it is too long."""
    if len(description) > LONGEST_DESCRIPTION:
        message = f"A description may have at most {LONGEST_DESCRIPTION:,} characters."
        raise InvalidError(message, field="description")
    return description


def checked_visibility(visibility: str) -> str:
    """Return a visibility, or raise InvalidError."""
    if visibility not in VISIBILITIES:
        message = f"Visibility is one of {', '.join(VISIBILITIES)}."
        raise InvalidError(message, field="visibility")
    return visibility


def edit_group(group_id: int, values: Values, *, session: Session) -> Changes:
    """Change a group and return what is different now; raises InvalidError."""
    return _apply(_locked(Group, group_id, session=session), values)


def edit_project(project_id: int, values: Values, *, by: Viewer, session: Session) -> Changes:
    """Change a project and return what is different now.

    Raises InvalidError, or ForbiddenError for a new visibility that the viewer may not choose.
    """
    project = _locked(Project, project_id, session=session)
    if values.get("visibility") not in {None, project.visibility}:
        _check_may_publish(project, by, session=session)
    return _apply(project, values)


def _check_may_publish(project: Project, viewer: Viewer, *, session: Session) -> None:
    """Raise ForbiddenError unless an owner, who is a person, asks for another visibility.

    The role is read under the project's lock: it may have been taken away meanwhile.
    """
    role = role_in_namespace(project.path, project.id, viewer, session=session)
    if role is not Role.OWNER:
        message = f"You need the Owner role in {project.path} to change its visibility."
        raise ForbiddenError(message)
    if session.scalar(select(User.kind).where(User.id == viewer.user_id)) == BOT:
        message = "A bot cannot change the visibility of a project."
        raise ForbiddenError(message)


def archive(project_id: int, *, session: Session, now: datetime) -> bool:
    """Archive a project; return False if it was archived before."""
    project = _locked(Project, project_id, session=session)
    if project.archived_at is not None:
        return False
    project.archived_at = now
    return True


def unarchive(project_id: int, *, session: Session) -> bool:
    """Let an archived project take changes again; return False if it does already."""
    project = _locked(Project, project_id, session=session)
    if project.archived_at is None:
        return False
    project.archived_at = None
    return True


def _locked(table: type[Row], row_id: int, *, session: Session) -> Row:
    """Return a group or project with the present values, or raise NotFoundError if it is gone."""
    row = session.scalar(
        select(table)
        .where(table.id == row_id, table.deleted_at.is_(None))
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    if row is None:
        message = "It was deleted in the meantime."
        raise NotFoundError(message)
    return row


#: What some values have to be.
_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "name": checked_name,
    "description": checked_description,
    "visibility": checked_visibility,
}


def _apply(row: Group | Project, values: Values) -> Changes:
    changes: dict[str, tuple[str, str]] = {}
    for field, given in values.items():
        value = given if given is None else _CHECKS.get(field, lambda each: each)(given)
        before = getattr(row, field)
        if value is not None and value != before:
            setattr(row, field, value)
            changes[field] = (_word(before), _word(value))
    return changes


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
