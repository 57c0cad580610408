"""Full paths of groups and projects, and former paths, which redirect until they are released."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.core.database.bulk_statements import build_bulk_delete
from domain.core.database.pagination import parse_id
from domain.core.errors import NotFoundError, TakenError
from domain.projects.views import Namespace
from domain.projects.visibility_sql import select_subtree
from models import FormerPath, Group, Project, RegistryRepository
from models.case_folding import fold_text

_PathRow = TypeVar("_PathRow", Group, Project)
#: Columns of `FormerPath` that refer to the group or project with the path, by table.
_OWNER_COLUMNS: Mapping[type, InstrumentedAttribute[int | None]] = {
    Group: FormerPath.group_id,
    Project: FormerPath.project_id,
}


def find_project_path(reference: str, *, session: Session) -> str:
    """Return the full path of the project with the given ID or path.

    A path is returned even if there is no such project. Return an empty string for an unknown ID.
    """
    return _find_path(Project, reference, session=session)


def find_group_path(reference: str, *, session: Session) -> str:
    """Return the full path of the group with the given ID or path.

    A path is returned even if there is no such group. Return an empty string for an unknown ID.
    """
    return _find_path(Group, reference, session=session)


def _find_path(table: type[Group | Project], reference: str, *, session: Session) -> str:
    number = parse_id(reference)
    if number is None:
        return reference.replace("\x00", "\ufffd")
    # A number is always an ID, even if it is also the name of a group.
    found = select(table.path).where(table.id == number, table.deleted_at.is_(None))
    return session.scalar(found) or ""


def list_ancestor_paths(path: str) -> tuple[str, ...]:
    """Return the paths of all ancestor groups of a full path, outermost first.

    `list_ancestor_paths("acme/shops/eu")` returns `("acme", "acme/shops")`.
    """
    parts = path.split("/")
    return tuple("/".join(parts[:length]) for length in range(1, len(parts)))


def get_parent_path(path: str) -> str | None:
    """Return the path of the parent group of a full path, or None at the top level."""
    head, _, _ = path.rpartition("/")
    return head or None


class MovedError(NotFoundError):
    """Error for a former path of a group or project that the viewer may see."""

    def __init__(self, former_address: str, namespace: Namespace) -> None:
        """Store the requested path, and the group or project with its current path."""
        super().__init__(f"{former_address} is now {namespace.path}.")
        self.former = former_address
        self.namespace = namespace


@dataclass(frozen=True, kw_only=True)
class FormerPathView:
    """A former path of a group or project, and the time when it was replaced."""

    id: int
    path: str
    #: Time at which the path was replaced.
    created_at: datetime


def find_by_former_path(table: type[_PathRow], path: str, *, session: Session) -> _PathRow | None:
    """Return the group or project with the given former path, or None."""
    return session.scalar(
        select(table)
        .join(FormerPath, _OWNER_COLUMNS[table] == table.id)
        .where(FormerPath.path_key == fold_text(path), table.deleted_at.is_(None))
    )


def list_former_paths(
    namespace: Namespace, *, maximum: int, session: Session
) -> tuple[FormerPathView, ...]:
    """Return the most recent former paths of a group or project."""
    rows = session.scalars(
        select(FormerPath)
        .where(_belongs_to_namespace(namespace))
        .order_by(FormerPath.id.desc())
        .limit(maximum)
    )
    return tuple(
        FormerPathView(id=row.id, path=row.path, created_at=row.created_at) for row in rows
    )


def release_former_path(namespace: Namespace, former_id: int, *, session: Session) -> str:
    """Release a former path, so that it can be used again, and return the path.

    For a group, its former paths below the released path are also released. Raise NotFoundError if
    the path was already released. Raise TakenError while the container registry has images with
    that name.
    """
    former = session.scalar(
        select(FormerPath).where(FormerPath.id == former_id, _belongs_to_namespace(namespace))
    )
    if former is None:
        raise NotFoundError("This former path was already released.")
    path, released = former.path, _is_path_or_descendant(former)
    _check_no_images(former, released, session=session)
    session.execute(build_bulk_delete(FormerPath).where(released))
    return path


def _belongs_to_namespace(namespace: Namespace) -> ColumnElement[bool]:
    if namespace.group_id is not None:
        return FormerPath.group_id == namespace.group_id
    return FormerPath.project_id == namespace.project_id


def _is_path_or_descendant(former_path: FormerPath) -> ColumnElement[bool]:
    """Return an SQL condition that matches a former path.

    For a group, the condition also matches the former paths below it.
    """
    if former_path.group_id is None:
        return FormerPath.id == former_path.id
    groups = select_subtree(select(Group.id).where(Group.id == former_path.group_id))
    projects = select(Project.id).where(Project.group_id.in_(groups))
    is_inside = or_(FormerPath.group_id.in_(groups), FormerPath.project_id.in_(projects))
    return or_(
        FormerPath.id == former_path.id,
        is_inside & _is_descendant_path(FormerPath.path_key, former_path.path_key),
    )


def _is_descendant_path(column: InstrumentedAttribute[str], path: str) -> ColumnElement[bool]:
    prefix = f"{path}/"
    return func.substr(column, 1, len(prefix)) == prefix


def _check_no_images(
    former_path: FormerPath, released: ColumnElement[bool], *, session: Session
) -> None:
    projects = select(FormerPath.project_id).where(released, FormerPath.project_id.is_not(None))
    name = RegistryRepository.name
    images = select(name).where(
        RegistryRepository.project_id.in_(projects),
        or_(name == former_path.path_key, _is_descendant_path(name, former_path.path_key)),
        or_(
            RegistryRepository.removed_at.is_(None),
            RegistryRepository.pushed_at > RegistryRepository.removed_at,
        ),
    )
    found = session.scalar(images.limit(1))
    if found is not None:
        message = (
            f"The container registry has images named {found}. Push the images under the new "
            "path and delete the old images first."
        )
        raise TakenError(message, field="path")
