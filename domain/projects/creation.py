"""Creates groups and projects."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.accounts.names import check_path
from domain.accounts.roles import Role
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.projects.access import VISIBILITIES
from domain.projects.paths import parent
from domain.projects.views import Namespace
from models import AlertCounter, Group, Member, Project
from models.folding import fold


def _check_free(path: str, *, reserved: frozenset[str], session: Session) -> None:
    try:
        check_path(path, reserved=reserved)
    except ValueError as error:
        raise InvalidError(str(error), field="path") from error
    for table in (Group, Project):
        taken = select(table.id).where(table.path_key == fold(path))
        if session.scalar(taken) is not None:
            message = f"“{path}” already exists."
            raise ConflictError(message, field="path")


def _get_group(path: str, *, session: Session) -> Group:
    """Return the group of a full path, or raise NotFoundError."""
    group = session.scalar(select(Group).where(Group.path_key == fold(path)))
    if group is None:
        message = f"There is no group “{path}”."
        raise NotFoundError(message)
    return group


def create_group(
    path: str, *, reserved: frozenset[str], session: Session, now: datetime
) -> Namespace:
    """Store a group; the groups above it must exist."""
    clean = path.strip("/")
    _check_free(clean, reserved=reserved, session=session)
    above = parent(clean)
    holder = _get_group(above, session=session) if above else None
    group = Group(
        parent_id=holder.id if holder else None,
        name=clean.rpartition("/")[2],
        # With the stored spelling of the parent's path.
        path=f"{holder.path}/{clean.rpartition('/')[2]}" if holder else clean,
        created_at=now,
    )
    _store(group, session=session)
    return Namespace(group_id=group.id, path=group.path)


def create_project(
    path: str,
    *,
    visibility: str,
    reserved: frozenset[str],
    session: Session,
    now: datetime,
) -> Namespace:
    """Store a project `GROUP/NAME`, with the counter that numbers its alerts."""
    clean = path.strip("/")
    above = parent(clean)
    if above is None:
        message = "A project lives in a group: write GROUP/NAME."
        raise InvalidError(message, field="path")
    if visibility not in VISIBILITIES:
        message = f"Visibility is one of {', '.join(VISIBILITIES)}."
        raise InvalidError(message, field="visibility")
    _check_free(clean, reserved=reserved, session=session)
    group = _get_group(above, session=session)
    name = clean.rpartition("/")[2]
    project = Project(
        group_id=group.id,
        name=name,
        path=f"{group.path}/{name}",
        visibility=visibility,
        created_at=now,
    )
    _store(project, session=session)
    session.add(AlertCounter(project_id=project.id, last_iid=0))
    return Namespace(project_id=project.id, path=project.path)


def make_owner(namespace: Namespace, user_id: int, *, session: Session, now: datetime) -> None:
    """Make a user the owner of a new group or project."""
    session.add(
        Member(
            user_id=user_id,
            group_id=namespace.group_id,
            project_id=namespace.project_id,
            role=int(Role.OWNER),
            created_at=now,
        )
    )


def change_visibility(project_id: int, visibility: str, *, session: Session) -> None:
    """Change the visibility of the project."""
    if visibility not in VISIBILITIES:
        message = f"Visibility is one of {', '.join(VISIBILITIES)}."
        raise InvalidError(message, field="visibility")
    session.get_one(Project, project_id).visibility = visibility


def reserved_names(rules: Iterable[str]) -> frozenset[str]:
    """Return the first parts of URL rules, in lower case: no path may begin with one."""
    firsts = (rule.strip("/").split("/")[0].lower() for rule in rules)
    return frozenset(first for first in firsts if first and not first.startswith("<"))


def _store(row: Group | Project, *, session: Session) -> None:
    """Store a group or project to get its id; raise ConflictError if the path was taken."""
    try:
        with session.begin_nested():  # the error page still queries the database
            session.add(row)
    except IntegrityError as error:
        message = f"“{row.path}” already exists."
        raise ConflictError(message, field="path") from error
