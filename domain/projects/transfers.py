"""Renames groups and projects, and transfers them to other groups.

The subgroups and projects of a group are transferred with the group. A lock serializes transfers.
The former paths of groups and projects are stored (`domain/projects/paths.py`), so that old URLs
still work.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import (
    ColumnElement,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.accounts.names import MAX_PATH_LENGTH
from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.core.database.locks import AdvisoryLock
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.projects.access import select_shared_roles
from domain.projects.escalation_followers import update_escalation_followers
from domain.projects.members import has_owner, is_direct_membership
from domain.projects.namespace_changes import (
    ColumnChanges,
    ReservedNames,
    add_owner,
    build_former_path_error,
    check_path_available,
    check_path_valid,
    lock_parent_group,
)
from domain.projects.paths import get_parent_path, list_ancestor_paths
from domain.projects.views import Namespace, Viewer
from domain.projects.visibility_sql import is_membership_active, select_subtree
from models import FormerPath, Group, Member, Project, RegistryRepository, User
from models.case_folding import fold_text

Row = TypeVar("Row", Group, Project)
Table = type[Group] | type[Project]
#: Empty set of reserved names, since the path of a project starts with an existing group.
_NO_RESERVED_NAMES: frozenset[str] = frozenset()
#: Maximum number of changed roles that are shown by name.
_MAX_LISTED_ROLES = 50


def rename_project(work: UnitOfWork, project_id: int, segment: str) -> ColumnChanges:
    """Change the last segment of a project's path.

    Raise InvalidError for an invalid value, and TakenError for a path in use.
    """
    session, now = work.session, work.now
    AdvisoryLock.TRANSFERS.acquire(session)
    group_path = get_parent_path(_get_row(Project, project_id, session=session).path) or ""
    return _move_project(project_id, group_path, segment, session=session, now=now)


def transfer_project(
    project_id: int, group_path: str, *, session: Session, now: datetime
) -> ColumnChanges:
    """Transfer a project to another group.

    Raise InvalidError for an invalid destination, NotFoundError for a destination that does not
    exist, and TakenError for a path in use.
    """
    AdvisoryLock.TRANSFERS.acquire(session)
    project = _get_row(Project, project_id, session=session)
    if fold_text(get_parent_path(project.path) or "") == fold_text(group_path):
        raise InvalidError(f"The project is already in {group_path}.", field="namespace")
    segment = project.path.rpartition("/")[2]
    return _move_project(project_id, group_path, segment, session=session, now=now)


def rename_group(work: UnitOfWork, group_id: int, segment: str) -> ColumnChanges:
    """Change the last segment of a group's path.

    Raise InvalidError for an invalid value, and TakenError for a path in use.
    """
    AdvisoryLock.TRANSFERS.acquire(work.session)
    above = get_parent_path(_get_row(Group, group_id, session=work.session).path)
    return _move_group(work, group_id, above, segment)


def rename_personal_namespace(work: UnitOfWork, user_id: int, username: str) -> None:
    """Change the path of a user's personal namespace, if there is one, to a new username.

    Raise InvalidError if the name is reserved for URLs of the service, and TakenError for a path in
    use.
    """
    group_id = work.session.scalar(select(Group.id).where(Group.owner_id == user_id))
    if group_id is None:
        return
    rename_group(work, group_id, username)
    work.session.get_one(Group, group_id).name = username


def transfer_group(work: UnitOfWork, group_id: int, parent_path: str | None) -> ColumnChanges:
    """Transfer a group to another group, or to the top level if `parent_path` is None.

    Raise InvalidError for an invalid destination, NotFoundError for a destination that does not
    exist, and TakenError for a path in use.
    """
    AdvisoryLock.TRANSFERS.acquire(work.session)
    path = _get_row(Group, group_id, session=work.session).path
    if fold_text(get_parent_path(path) or "") == fold_text(parent_path or ""):
        there = f"in {parent_path}" if parent_path else "at the top level"
        raise InvalidError(f"The group is already {there}.", field="group_id")
    if parent_path and fold_text(f"{parent_path}/").startswith(fold_text(f"{path}/")):
        message = "A group cannot be moved into itself or into one of its subgroups."
        raise InvalidError(message, field="group_id")
    segment = path.rpartition("/")[2]
    return _move_group(work, group_id, parent_path, segment)


def _move_project(
    project_id: int, group_path: str, segment: str, *, session: Session, now: datetime
) -> ColumnChanges:
    _check_segment(segment)
    group = lock_parent_group(group_path, session=session)
    project = _lock_rows(Project, Project.id == project_id, session=session)[0]
    namespace = Namespace(project_id=project.id, path=project.path)
    before, path = project.path, f"{group.path}/{segment}"
    if path == before:
        return {}
    check_path_valid(path, reserved=_NO_RESERVED_NAMES)
    if fold_text(path) != fold_text(before):
        check_path_available(path, session=session, own_namespace=namespace)
        _store_former_paths(Project, Project.id == project.id, session=session, now=now)
    project.path, project.group_id = path, group.id
    session.flush()
    _release_reused_former_paths(Project, Project.id == project.id, session=session)
    update_escalation_followers(select(Project.id).where(Project.id == project.id), session=session)
    return {"path": (before, path)}


def _move_group(
    work: UnitOfWork, group_id: int, parent_path: str | None, segment: str
) -> ColumnChanges:
    session, now = work.session, work.now
    _check_segment(segment)
    groups, projects = _build_subtree_conditions(group_id)
    group = next(each for each in _lock_rows(Group, groups, session=session) if each.id == group_id)
    holder = lock_parent_group(parent_path, session=session) if parent_path else None
    before, path = group.path, f"{holder.path}/{segment}" if holder else segment
    if path == before:
        return {}
    check_path_valid(path, reserved=work.policy(ReservedNames).names)
    _check_path_lengths(before, path, groups, projects, session=session)
    if fold_text(path) != fold_text(before):
        own = Namespace(group_id=group.id, path=before)
        check_path_available(path, session=session, own_namespace=own, owner_id=group.owner_id)
        _store_former_paths(Group, groups, session=session, now=now)
        _store_former_paths(Project, projects, session=session, now=now)
    group.parent_id = holder.id if holder else None
    session.flush()
    tables: tuple[tuple[Table, ColumnElement[bool]], ...] = ((Group, groups), (Project, projects))
    for table, inside in tables:
        _replace_path_prefix(table, inside, before, path, session=session)
        _release_reused_former_paths(table, inside, session=session)
    update_escalation_followers(select(Project.id).where(projects), session=session)
    session.expire_all()  # The statements above changed the paths without updating loaded rows.
    return {"path": (before, path)}


def _build_subtree_conditions(group_id: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return SQL conditions that match a group with its subgroups, and their projects."""
    ids = select_subtree(select(Group.id).where(Group.id == group_id))
    return (
        Group.id.in_(ids) & Group.deleted_at.is_(None),
        Project.group_id.in_(ids) & Project.deleted_at.is_(None),
    )


def _store_former_paths(
    table: Table, condition: ColumnElement[bool], *, session: Session, now: datetime
) -> None:
    """Store the current paths of groups or projects as former paths."""
    rows = select(table.path, _get_path_key(table), table.id, literal(now)).where(condition)
    columns = ["path", "path_key", _get_owner_column(table), "created_at"]
    session.execute(insert(FormerPath).from_select(columns, rows))


def _replace_path_prefix(
    table: Table, condition: ColumnElement[bool], before: str, path: str, *, session: Session
) -> None:
    # Paths are ASCII (`domain/accounts/names.py`), so folding does not change their length.
    rest = len(before) + 1
    values = {
        "path": literal(path) + func.substr(table.path, rest),
        "path_key": literal(fold_text(path)) + func.substr(_get_path_key(table), rest),
    }
    session.execute(build_bulk_update(table).where(condition).values(values))


def _release_reused_former_paths(
    table: Table, condition: ColumnElement[bool], *, session: Session
) -> None:
    """Delete former paths that groups or projects use again.

    Raise TakenError if a path is a former path of another group or project.
    """
    holder = getattr(FormerPath, _get_owner_column(table))
    is_again = exists().where(condition, table.id == holder, table.path_key == FormerPath.path_key)
    session.execute(build_bulk_delete(FormerPath).where(is_again))
    taken = select(table.path).join(FormerPath, FormerPath.path_key == table.path_key)
    of_another = session.scalar(taken.where(condition).limit(1))
    if of_another is not None:
        raise build_former_path_error(of_another)


def _check_path_lengths(
    before: str,
    path: str,
    groups: ColumnElement[bool],
    projects: ColumnElement[bool],
    *,
    session: Session,
) -> None:
    longest = max(
        session.scalar(select(func.max(func.length(table.path))).where(inside)) or 0
        for table, inside in ((Group, groups), (Project, projects))
    )
    if longest - len(before) + len(path) > MAX_PATH_LENGTH:
        message = f"A path below the group would be longer than {MAX_PATH_LENGTH} characters."
        raise InvalidError(message, field="path")


def _check_segment(segment: str) -> None:
    if "/" in segment:
        message = (
            "The path must be a single name without slashes. To change the group, use a transfer."
        )
        raise InvalidError(message, field="path")


def _get_row(table: type[Row], row_id: int, *, session: Session) -> Row:
    found = session.scalar(
        select(table)
        .where(table.id == row_id, table.deleted_at.is_(None))
        .execution_options(populate_existing=True)
    )
    if found is None:
        raise _build_deleted_error()
    return found


def _lock_rows(
    table: type[Row], condition: ColumnElement[bool], *, session: Session
) -> Sequence[Row]:
    """Lock rows until the commit, so that nothing can be added to the groups and projects."""
    found = session.scalars(
        select(table)
        .where(condition, table.deleted_at.is_(None))
        .order_by(table.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    if not found:
        raise _build_deleted_error()
    return found


def _build_deleted_error() -> NotFoundError:
    return NotFoundError("The group or project was deleted in the meantime.")


def _get_path_key(table: Table) -> ColumnElement[str]:
    return func.coalesce(table.path_key, func.lower(table.path))


def _get_owner_column(table: Table) -> str:
    return "group_id" if table is Group else "project_id"


@dataclass(frozen=True, kw_only=True)
class ChangedRole:
    """A member whose highest role is changed by a transfer."""

    user_id: int
    username: str
    name: str
    #: Kind of the account: human, bot or service.
    kind: str
    before: Role | None
    after: Role | None

    @property
    def is_lowered(self) -> bool:
        """True if the transfer lowers or removes the member's role."""
        return (self.after or 0) < (self.before or 0)


@dataclass(frozen=True, kw_only=True)
class TransferEffects:
    """The effects of a transfer on the members and images of a group or project."""

    #: Changed roles that are shown: lowered roles first, then other roles, each ordered by
    #: username.
    roles: tuple[ChangedRole, ...]
    role_count: int
    #: Number of repositories in the container registry, whose names do not change.
    image_count: int

    @property
    def hidden_role_count(self) -> int:
        """Number of changed roles that are not shown."""
        return self.role_count - len(self.roles)


def find_transfer_effects(
    namespace: Namespace, new_parent: str | None, viewer: Viewer, *, session: Session
) -> TransferEffects:
    """Return the effects of transferring a group or project to a group or to the top level."""
    here = _read_roles(is_direct_membership(namespace), viewer, session=session)
    if namespace.project_id is not None:
        shared = select_shared_roles([namespace.project_id], Member.user_id, today=viewer.today)
        for role, user_id in session.execute(shared):
            here[user_id] = max(Role(role), here.get(user_id, Role.GUEST))
    before = _read_roles(
        _is_member_of_any_group(list_ancestor_paths(namespace.path)), viewer, session=session
    )
    above = (*list_ancestor_paths(new_parent), new_parent) if new_parent else ()
    after = _read_roles(_is_member_of_any_group(above), viewer, session=session)
    changed = {
        user_id: (
            _find_highest_role(here, before, user_id),
            _find_highest_role(here, after, user_id),
        )
        for user_id in {*before, *after}
    }
    changed = {key: roles for key, roles in changed.items() if roles[0] != roles[1]}
    named = _build_changed_roles(changed, session=session)
    ordered = sorted(named, key=lambda each: (not each.is_lowered, each.username.lower()))
    return TransferEffects(
        roles=tuple(ordered[:_MAX_LISTED_ROLES]),
        role_count=len(ordered),
        image_count=_count_images(namespace, session=session),
    )


def ensure_group_has_owner(
    namespace: Namespace, user_id: int | None, *, session: Session, now: datetime
) -> None:
    """Make a user the owner of a group that has no owner after a transfer.

    Raise ConflictError if the group has no owner and `user_id` is None, as on the command line.
    """
    if has_owner(namespace.path, true(), session=session):
        return
    if user_id is None:
        message = f"{namespace.path} would have no owner. Give a member the Owner role first."
        raise ConflictError(message, field="group_id")
    own = select(Member).where(Member.user_id == user_id, is_direct_membership(namespace))
    member = session.scalar(own)
    if member is None:
        add_owner(namespace, user_id, session=session, now=now)
    else:
        member.role, member.expires_at, member.member_role_id = int(Role.OWNER), None, None


def _is_member_of_any_group(paths: Iterable[str]) -> ColumnElement[bool]:
    keys = [fold_text(path) for path in paths]
    return Member.group_id.in_(select(Group.id).where(Group.path_key.in_(keys)))


def _read_roles(where: ColumnElement[bool], viewer: Viewer, *, session: Session) -> dict[int, Role]:
    rows = session.execute(
        select(Member.user_id, func.max(Member.role))
        .where(where, is_membership_active(viewer.today))
        .group_by(Member.user_id)
    )
    return {user_id: Role(role) for user_id, role in rows}


def _find_highest_role(here: dict[int, Role], above: dict[int, Role], user_id: int) -> Role | None:
    return max(
        (role for role in (here.get(user_id), above.get(user_id)) if role is not None), default=None
    )


def _build_changed_roles(
    changed: dict[int, tuple[Role | None, Role | None]], *, session: Session
) -> list[ChangedRole]:
    rows = session.execute(
        select(User.id, User.username, User.name, User.kind).where(User.id.in_(changed))
    )
    return [
        ChangedRole(
            user_id=row.id,
            username=row.username,
            name=row.name,
            kind=row.kind,
            before=changed[row.id][0],
            after=changed[row.id][1],
        )
        for row in rows
    ]


def _count_images(namespace: Namespace, *, session: Session) -> int:
    """Return the number of registry repositories in a project, or in all projects below a group."""
    projects = select(Project.id).where(Project.id == namespace.project_id)
    if namespace.group_id is not None:
        groups = select_subtree(select(Group.id).where(Group.id == namespace.group_id))
        projects = select(Project.id).where(
            Project.group_id.in_(groups), Project.deleted_at.is_(None)
        )
    table = RegistryRepository
    there = or_(table.removed_at.is_(None), table.pushed_at > table.removed_at)
    counted = select(func.count(table.id)).where(table.project_id.in_(projects), there)
    return session.scalar(counted) or 0
