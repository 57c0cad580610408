"""Ownership of rows by projects and groups.

All projects below a group use the group's rows. Tables of owned rows have the columns of
`models.base.NamespaceOwnedMixin`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Select, and_, func, literal, or_, select
from sqlalchemy.orm import Session, aliased

from domain.projects.paths import list_ancestor_paths
from domain.projects.views import Namespace, ProjectOrGroup
from domain.projects.visibility_sql import select_subtree
from models import Group, Project
from models.case_folding import fold_text


class OwnedRow(Protocol):
    """A row, or a view of a row, that belongs to a project or a group."""

    @property
    def project_id(self) -> int | None:
        """The ID of the project that owns the row, or None if a group owns the row."""

    @property
    def group_id(self) -> int | None:
        """The ID of the group that owns the row, or None if a project owns the row."""


Row = TypeVar("Row", bound=OwnedRow)


def build_owner_columns(holder: ProjectOrGroup) -> Mapping[str, int]:
    """Return the name and value of the column that stores the owner of a new row."""
    return {"group_id" if holder.is_group else "project_id": holder.id}


def build_owner_match_condition(
    table: Any, holder: ProjectOrGroup | Namespace
) -> ColumnElement[bool]:
    """Return an SQL condition for rows that a project or group itself owns."""
    column = table.group_id if holder.is_group else table.project_id
    return and_(column == holder.id)


def is_owned_by(row: OwnedRow, holder: ProjectOrGroup) -> bool:
    """Return whether a project or group itself owns a row."""
    return holder.id == (row.group_id if holder.is_group else row.project_id)


def build_web_url(holder: ProjectOrGroup | Namespace, base_url: str) -> str:
    """Return the base URL of the web pages of a project or group."""
    return f"{base_url}/{'groups/' if holder.is_group else ''}{holder.path}/-"


def find_owner_group_paths(
    rows: Iterable[OwnedRow], *, session: Session
) -> Mapping[int | None, str]:
    """Return the paths of the groups that own the rows, by group ID."""
    ids = {row.group_id for row in rows} - {None}
    if not ids:
        return {}
    return dict(session.execute(select(Group.id, Group.path).where(Group.id.in_(ids))).all())


def select_project_ids(holder: ProjectOrGroup) -> Select[int]:
    """Select the ID of the project itself, or the IDs of all projects below a group."""
    if not holder.is_group:
        return select(literal(holder.id))
    groups = select_subtree(select(Group.id).where(Group.id == holder.id))
    return select(Project.id).where(Project.group_id.in_(groups), Project.deleted_at.is_(None))


def is_owned_in_subtree(table: Any, holder: ProjectOrGroup) -> ColumnElement[bool]:
    """Return an SQL condition for rows owned by a project, or by a group and its descendants."""
    if not holder.is_group:
        return build_owner_match_condition(table, holder)
    groups = select_subtree(select(Group.id).where(Group.id == holder.id))
    return or_(table.group_id.in_(groups), table.project_id.in_(select_project_ids(holder)))


@dataclass(frozen=True, kw_only=True)
class GroupChain:
    """The IDs of a project or group and of all its ancestor groups."""

    #: ID of the project. None for a group.
    project_id: int | None
    #: IDs of the groups, nearest first. For a group, the first ID is its own.
    group_ids: tuple[int, ...]

    def owns_row(self, row: OwnedRow) -> bool:
        """Return whether a row is owned by the project or group, or by an ancestor group."""
        if row.group_id is not None:
            return row.group_id in self.group_ids
        return row.project_id is not None and row.project_id == self.project_id

    def count_levels_to_owner(self, row: OwnedRow) -> int:
        """Return the number of levels between the project or group and the owner of a row."""
        if row.group_id is None:
            return 0
        return self.group_ids.index(row.group_id) + (self.project_id is not None)


def find_group_chain(holder: ProjectOrGroup, *, session: Session) -> GroupChain:
    """Return the IDs of a project or group and of its ancestor groups."""
    paths = list_ancestor_paths(holder.path)
    keys = [fold_text(path) for path in (*paths, *((holder.path,) if holder.is_group else ()))]
    found = session.scalars(
        select(Group.id)
        .where(Group.path_key.in_(keys), Group.deleted_at.is_(None))
        .order_by(func.length(Group.path).desc())
    )
    return GroupChain(project_id=None if holder.is_group else holder.id, group_ids=tuple(found))


def find_group_chains(
    project_ids: Collection[int], *, session: Session
) -> Mapping[int, GroupChain]:
    """Return the IDs of projects and of their ancestor groups, by project ID.

    Missing projects are omitted.
    """
    start = (
        select(Project.id.label("project_id"), Group.id.label("group_id"), Group.parent_id)
        .join(Group, Group.id == Project.group_id)
        .where(Project.id.in_(project_ids))
        .cte("above", recursive=True)
    )
    above = aliased(Group)
    chain = start.union_all(
        select(start.c.project_id, above.id, above.parent_id).join(
            above, above.id == start.c.parent_id
        )
    )
    parents: dict[int, dict[int, int | None]] = {}
    for project_id, group_id, parent_id in session.execute(select(chain)):
        parents.setdefault(project_id, {})[group_id] = parent_id
    return {
        project_id: GroupChain(project_id=project_id, group_ids=_sort_nearest_first(found))
        for project_id, found in parents.items()
    }


def _sort_nearest_first(parents: Mapping[int, int | None]) -> tuple[int, ...]:
    """Return the IDs of nested groups from the innermost to the outermost.

    `parents` maps each group to its parent.
    """
    is_above = set(parents.values())
    number: int | None = next(each for each in parents if each not in is_above)
    found: list[int] = []
    while number is not None and number in parents:
        found.append(number)
        number = parents[number]
    return tuple(found)


def build_used_by_condition(table: Any, group_chains: Iterable[GroupChain]) -> ColumnElement[bool]:
    """Return an SQL condition for rows that at least one of the projects or groups uses."""
    some = tuple(group_chains)
    projects = {each.project_id for each in some if each.project_id is not None}
    groups = {group_id for each in some for group_id in each.group_ids}
    return or_(table.project_id.in_(projects), table.group_id.in_(groups))


def is_owned_by_self_or_ancestor(
    table: Any, holder: ProjectOrGroup, *, with_groups_above: bool, session: Session
) -> ColumnElement[bool]:
    """Return an SQL condition for rows of a project or group and, optionally, its ancestors."""
    if not with_groups_above:
        return build_owner_match_condition(table, holder)
    return build_used_by_condition(table, [find_group_chain(holder, session=session)])


def is_owned_by_ancestor(
    table: Any, holder: ProjectOrGroup, *, session: Session
) -> ColumnElement[bool]:
    """Return an SQL condition for rows owned by the ancestor groups of a project or group."""
    return and_(table.group_id.in_(find_ancestor_group_ids(holder, session=session)))


def find_ancestor_group_ids(holder: ProjectOrGroup, *, session: Session) -> tuple[int, ...]:
    """Return the IDs of the ancestor groups of a project or group, nearest first."""
    ids = find_group_chain(holder, session=session).group_ids
    return ids[1:] if holder.is_group else ids


def group_rows_by_project(
    rows: Iterable[Row], group_chains: Mapping[int, GroupChain]
) -> Mapping[int, Sequence[Row]]:
    """Return the rows that each project uses, by project ID, in their original order."""
    of_project: dict[int, list[int]] = {}
    for project_id, lineage in group_chains.items():
        for group_id in lineage.group_ids:
            of_project.setdefault(group_id, []).append(project_id)
    found: dict[int, list[Row]] = {}
    for row in rows:
        if row.group_id is not None:
            users = of_project.get(row.group_id, [])
        else:
            users = [
                each for each in (row.project_id,) if each in group_chains and each is not None
            ]
        for project_id in users:
            found.setdefault(project_id, []).append(row)
    return found
