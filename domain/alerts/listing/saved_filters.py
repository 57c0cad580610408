"""Named filters for lists of alerts, which users save for themselves or share with a project."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.errors import ForbiddenError, InvalidError, NotFoundError
from domain.core.types.base import get_column_values
from domain.projects.views import ProjectView
from models import SavedAlertFilter, User

MAX_FILTER_NAME_LENGTH = 100
#: Maximum number of filters that a user can save in one list.
MAX_FILTERS_PER_LIST = 50


@dataclass(frozen=True, kw_only=True)
class SavedFilter:
    """A named combination of search, filters and sort order."""

    id: int
    name: str
    #: Query parameters of the list.
    arguments: Mapping[str, str]
    is_shared: bool
    #: Username of the owner.
    owner: str
    is_own: bool


def list_saved_filters(
    user_id: int, project_id: int | None, *, session: Session
) -> tuple[SavedFilter, ...]:
    """Return a user's filters for a list, including filters shared by others, sorted by name."""
    is_mine = SavedAlertFilter.user_id == user_id
    if project_id is None:
        is_here = SavedAlertFilter.project_id.is_(None) & is_mine
    else:
        is_seen = or_(is_mine, SavedAlertFilter.is_shared)
        is_here = (SavedAlertFilter.project_id == project_id) & is_seen
    rows = session.execute(
        select(SavedAlertFilter, User.username)
        .join(User, User.id == SavedAlertFilter.user_id)
        .where(is_here)
    ).all()
    found = (
        SavedFilter(
            **get_column_values(row, SavedFilter),
            arguments=dict(parse_qsl(row.query)),
            owner=owner,
            is_own=row.user_id == user_id,
        )
        for row, owner in rows
    )
    return tuple(sorted(found, key=lambda each: (each.name.casefold(), each.id)))


def save_filter(
    work: UnitOfWork,
    project: ProjectView | None,
    name: str,
    arguments: Mapping[str, str],
    *,
    is_shared: bool,
) -> str:
    """Save a filter for the user, replacing any filter with the same name, and return its name.

    Without a project, the filter belongs to the list of all projects, where filters cannot be
    shared. Raise ForbiddenError if the user may not share the filter. Raise InvalidError if the
    name is not valid, the filter is empty, or the user has too many filters.
    """
    if is_shared and not (project and project.has_developer_role):
        raise ForbiddenError("You need the Developer role to share a filter with the project.")
    name = _validate_name(name)
    if not arguments:
        message = "Select a search, filter or sort order before you save it."
        raise InvalidError(message, field="query")
    user_id, session, project_id = work.actor.id, work.session, project.id if project else None
    # The lock prevents concurrent requests from the user from saving the same name twice.
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
    of_user = select(SavedAlertFilter).where(
        SavedAlertFilter.user_id == user_id, SavedAlertFilter.project_id == project_id
    )
    rows = session.scalars(of_user.limit(MAX_FILTERS_PER_LIST)).all()
    row = next((each for each in rows if each.name == name), None)
    if row is None and len(rows) == MAX_FILTERS_PER_LIST:
        message = (
            f"You can save at most {MAX_FILTERS_PER_LIST} filters for a list. Delete a filter "
            "first."
        )
        raise InvalidError(message)
    if row is None:
        row = SavedAlertFilter(
            user_id=user_id, project_id=project_id, name=name, created_at=work.now
        )
        session.add(row)
    row.query, row.is_shared = urlencode(arguments), is_shared
    return name


def _validate_name(name: str) -> str:
    clean = replace_unstorable_characters(name).strip()
    if not clean or len(clean) > MAX_FILTER_NAME_LENGTH:
        raise InvalidError(
            f"Enter a name of at most {MAX_FILTER_NAME_LENGTH} characters.", field="name"
        )
    return clean


def delete_filter(work: UnitOfWork, project: ProjectView | None, filter_id: int) -> str:
    """Delete a user's own filter or another user's shared filter, and return its name.

    Raise NotFoundError if there is no such filter. Raise ForbiddenError if the user may not delete
    another user's filter.
    """
    row = work.session.scalar(
        select(SavedAlertFilter).where(
            SavedAlertFilter.id == filter_id,
            SavedAlertFilter.project_id == (project.id if project else None),
        )
    )
    is_own = row is not None and row.user_id == work.actor.id
    if row is None or not (is_own or row.is_shared):
        raise NotFoundError("Saved filter not found.")
    if not (is_own or (project and project.can_maintain)):
        message = "You need the Maintainer role to delete another user's shared filter."
        raise ForbiddenError(message)
    work.session.delete(row)
    return row.name
