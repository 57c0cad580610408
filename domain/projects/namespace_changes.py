"""Creates and edits groups and projects."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.accounts.names import check_display_name, check_path
from domain.accounts.users import MACHINE_KINDS
from domain.core.errors import ForbiddenError, InvalidError, NotFoundError, TakenError
from domain.projects.access import find_role_in_namespace
from domain.projects.escalation_followers import update_escalation_followers
from domain.projects.paths import get_parent_path, list_ancestor_paths
from domain.projects.views import Namespace, Viewer, get_viewer
from domain.projects.visibility_sql import VISIBILITIES
from models import AlertCounter, FormerPath, Group, Member, Project, User
from models.case_folding import fold_text

Row = TypeVar("Row", Group, Project)
#: Maximum length of a description in characters.
MAX_DESCRIPTION_LENGTH = 2000
#: Changed columns by name, each with its old and new value.
ColumnChanges = Mapping[str, tuple[str, str]]


#: New values of columns. None leaves a column unchanged.
ColumnValues = Mapping[str, str | bool | int | None]
#: Query that locks a path until the transaction ends. The key has a prefix that other locks do not
#: have.
_PATH_LOCK_QUERY = text("SELECT pg_advisory_xact_lock(hashtext(:key))")


def validate_name(name: str) -> str:
    """Return a name without surrounding spaces.

    Raise InvalidError if the name is empty or not allowed.
    """
    clean = name.strip()
    try:
        check_display_name(clean)
    except ValueError as error:
        raise InvalidError(str(error), field="name") from error
    if not clean:
        raise InvalidError("The name must not be empty.", field="name")
    return clean


def validate_description(description: str) -> str:
    """Return a valid description unchanged.

    Raise InvalidError if it is too long.
    """
    if len(description) > MAX_DESCRIPTION_LENGTH:
        message = f"The description can have at most {MAX_DESCRIPTION_LENGTH:,} characters."
        raise InvalidError(message, field="description")
    return description


def validate_visibility(visibility: str) -> str:
    """Return a valid visibility unchanged.

    Raise InvalidError if the visibility is invalid.
    """
    if visibility not in VISIBILITIES:
        choices = f"{', '.join(VISIBILITIES[:-1])} or {VISIBILITIES[-1]}"
        raise InvalidError(f"The visibility must be {choices}.", field="visibility")
    return visibility


def edit_group(group_id: int, values: ColumnValues, *, session: Session) -> ColumnChanges:
    """Change a group and return the changed values.

    Raise InvalidError for a value that is not allowed.
    """
    return _apply_values(_lock_row(Group, group_id, session=session), values)


def set_two_factor_requirement(
    group_id: int, *, wanted: bool | None, session: Session, now: datetime
) -> ColumnChanges:
    """Set whether members of a group need a second factor.

    Do nothing if `wanted` is None.
    """
    group = _lock_row(Group, group_id, session=session)
    before = group.two_factor_required_at is not None
    if wanted in {None, before}:
        return {}
    group.two_factor_required_at = now if wanted else None
    return {"require_two_factor_authentication": (_format_value(before), _format_value(wanted))}


def edit_project(work: UnitOfWork, project_id: int, values: ColumnValues) -> ColumnChanges:
    """Change a project and return the changed values.

    Raise InvalidError for a value that is not allowed, and ForbiddenError if the viewer is not
    allowed to change the visibility.
    """
    project = _lock_row(Project, project_id, session=work.session)
    if values.get("visibility") not in {None, project.visibility}:
        _check_can_change_visibility(project, get_viewer(work), session=work.session)
    return _apply_values(project, values)


def _check_can_change_visibility(project: Project, viewer: Viewer, *, session: Session) -> None:
    """Check that the viewer is a person who owns the project.

    The role is read while the project is locked, since the role may have been revoked in the
    meantime. Raise ForbiddenError if the viewer is not the owner.
    """
    role = find_role_in_namespace(project.path, project.id, viewer, session=session)
    if role is not Role.OWNER:
        raise ForbiddenError(f"You need the Owner role in {project.path} to change its visibility.")
    if session.scalar(select(User.kind).where(User.id == viewer.user_id)) in MACHINE_KINDS:
        raise ForbiddenError("A bot cannot change the visibility of a project.")


def archive_project_row(project_id: int, *, session: Session, now: datetime) -> bool:
    """Archive a project.

    Return False if the project was already archived.
    """
    project = _lock_row(Project, project_id, session=session)
    if project.archived_at is not None:
        return False
    project.archived_at = now
    return True


def unarchive_project(project_id: int, *, session: Session) -> bool:
    """Unarchive a project.

    Return False if the project was not archived.
    """
    project = _lock_row(Project, project_id, session=session)
    if project.archived_at is None:
        return False
    project.archived_at = None
    return True


def _lock_row(table: type[Row], row_id: int, *, session: Session) -> Row:
    """Lock a group or project and return it with its current values.

    Raise NotFoundError if the group or project was deleted in the meantime.
    """
    row = session.scalar(
        select(table)
        .where(table.id == row_id, table.deleted_at.is_(None))
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise NotFoundError("The group or project was deleted in the meantime.")
    return row


#: Functions that check and normalize the values of columns, by column.
_VALIDATORS: Mapping[str, Callable[[Any], Any]] = {
    "name": validate_name,
    "description": validate_description,
    "visibility": validate_visibility,
}


def _apply_values(row: Group | Project, values: ColumnValues) -> ColumnChanges:
    changes: dict[str, tuple[str, str]] = {}
    for field, given in values.items():
        value = given if given is None else _VALIDATORS.get(field, lambda each: each)(given)
        before = getattr(row, field)
        if value is not None and value != before:
            setattr(row, field, value)
            changes[field] = (_format_value(before), _format_value(value))
    return changes


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class ReservedNames:
    """The lowercase names that top-level groups cannot use."""

    names: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class NamespaceDetails:
    """The name and description of a new group or project."""

    #: Display name. If it is empty, the last part of the path is used.
    name: str = ""
    description: str = ""


def check_path_valid(path: str, *, reserved: frozenset[str]) -> None:
    """Check that a path is valid for a group or project.

    Raise InvalidError otherwise.
    """
    try:
        check_path(path, reserved=reserved)
    except ValueError as error:
        raise InvalidError(str(error), field="path") from error


def check_path_available(
    path: str,
    *,
    session: Session,
    own_namespace: Namespace | None = None,
    owner_id: int | None = None,
) -> None:
    """Check that a path is neither used nor reserved as a former path.

    Raise TakenError otherwise. The username of `owner_id` is available for the personal namespace
    of that user. A former path of `own_namespace` is available for `own_namespace`.
    """
    if session.get_bind().dialect.name == "postgresql":
        # Each table has its own unique index, so only the lock prevents a group and a project from
        # taking the same path. SQLite needs no lock, since it has only one writer.
        session.execute(_PATH_LOCK_QUERY, {"key": f"path {fold_text(path)}"})
    for table in (Group, Project):
        taken = select(table.id).where(table.path_key == fold_text(path))
        if session.scalar(taken) is not None:
            raise TakenError(f'"{path}" already exists.', field="path")
    user = select(User.id).where(User.username_key == fold_text(path), User.id != (owner_id or 0))
    if session.scalar(user) is not None:
        raise TakenError(f'"{path}" is already taken by a user.', field="path")
    former = session.scalar(select(FormerPath).where(FormerPath.path_key == fold_text(path)))
    if former is not None and not is_own_former_path(former, own_namespace):
        raise build_former_path_error(path)


def is_own_former_path(former_path: FormerPath, own_namespace: Namespace | None) -> bool:
    """Return whether a former path belongs to the given group or project."""
    return own_namespace is not None and (former_path.group_id, former_path.project_id) == (
        own_namespace.group_id,
        own_namespace.project_id,
    )


def build_former_path_error(path: str) -> TakenError:
    """Return the error for a path that is a former path of another group or project."""
    message = (
        f'"{path}" is a former path of another group or project, and still redirects to it. An '
        "owner can release the path."
    )
    return TakenError(message, field="path")


def lock_parent_group(path: str, *, session: Session) -> Group:
    """Lock and return the group at the given full path.

    Neither the group nor an ancestor group can be deleted before the caller commits. Raise
    NotFoundError if there is no group at this path.
    """
    keys = [fold_text(each) for each in (*list_ancestor_paths(path), path)]
    locked = session.scalars(
        select(Group)
        .where(Group.path_key.in_(keys), Group.deleted_at.is_(None))
        .order_by(Group.id)
        .with_for_update(read=True, key_share=True)
        .execution_options(populate_existing=True)
    )
    group = next((each for each in locked if each.path_key == keys[-1]), None)
    if group is None:
        raise NotFoundError(f'Group "{path}" not found.')
    return group


def create_group(
    path: str,
    *,
    reserved: frozenset[str],
    session: Session,
    now: datetime,
    namespace_details: NamespaceDetails | None = None,
    owner_id: int | None = None,
) -> Namespace:
    """Create a top-level group, a subgroup, or the personal namespace of a user.

    Raise InvalidError for an invalid path or name, NotFoundError if the parent group does not
    exist, and TakenError for a path in use.
    """
    clean, namespace_details = path.strip("/"), namespace_details or NamespaceDetails()
    above, last = get_parent_path(clean), clean.rpartition("/")[2]
    check_path_valid(clean, reserved=reserved)
    holder = lock_parent_group(above, session=session) if above else None
    check_path_available(clean, session=session, owner_id=owner_id)
    group = Group(
        parent_id=holder.id if holder else None,
        owner_id=owner_id,
        name=validate_name(namespace_details.name or last),
        # The parent's path keeps its stored spelling.
        path=f"{holder.path}/{last}" if holder else clean,
        description=namespace_details.description,
        created_at=now,
    )
    _insert_namespace(group, session=session)
    return Namespace(group_id=group.id, path=group.path)


def create_project(
    path: str,
    *,
    visibility: str,
    reserved: frozenset[str],
    session: Session,
    now: datetime,
    namespace_details: NamespaceDetails | None = None,
) -> Namespace:
    """Create a project at a path such as `GROUP/NAME`, with its counter for alert numbers.

    Raise InvalidError for an invalid value, NotFoundError if the group does not exist, and
    TakenError for a path in use.
    """
    clean, namespace_details = path.strip("/"), namespace_details or NamespaceDetails()
    above = get_parent_path(clean)
    if above is None:
        message = "A project must belong to a group. Enter the path as GROUP/NAME."
        raise InvalidError(message, field="path")
    check_path_valid(clean, reserved=reserved)
    group = lock_parent_group(above, session=session)
    check_path_available(clean, session=session)
    last = clean.rpartition("/")[2]
    project = Project(
        group_id=group.id,
        name=validate_name(namespace_details.name or last),
        path=f"{group.path}/{last}",
        description=namespace_details.description,
        visibility=validate_visibility(visibility),
        created_at=now,
    )
    _insert_namespace(project, session=session)
    session.add(AlertCounter(project_id=project.id, last_iid=0))
    update_escalation_followers(select(Project.id).where(Project.id == project.id), session=session)
    return Namespace(project_id=project.id, path=project.path)


def add_owner(namespace: Namespace, user_id: int, *, session: Session, now: datetime) -> None:
    """Make a user the owner of a group or project.

    The user must not be a direct member yet.
    """
    session.add(
        Member(
            user_id=user_id,
            group_id=namespace.group_id,
            project_id=namespace.project_id,
            role=int(Role.OWNER),
            created_at=now,
        )
    )


def add_creator_as_owner(work: UnitOfWork, namespace: Namespace) -> None:
    """Make the creator the owner of a group or project.

    Bots and the command line do not become owners.
    """
    if work.actor.id is not None and not is_machine_actor(work):
        add_owner(namespace, work.actor.id, session=work.session, now=work.now)


def is_machine_actor(work: UnitOfWork) -> bool:
    """Return whether the actor's account belongs to an access token or an application."""
    return work.session.scalar(select(User.kind).where(User.id == work.actor.id)) in MACHINE_KINDS


def validate_path_segment(path: str) -> str:
    """Return a valid path segment unchanged.

    Raise InvalidError if it contains a slash.
    """
    if "/" in path:
        message = (
            "`path` must be a single name without slashes. Specify the group with its own "
            "parameter."
        )
        raise InvalidError(message, field="path")
    return path


def list_reserved_names(rules: Iterable[str]) -> frozenset[str]:
    """Return the first segments of URL rules in lower case.

    Paths must not start with these segments.
    """
    firsts = (rule.strip("/").split("/")[0].lower() for rule in rules)
    return frozenset(first for first in firsts if first and not first.startswith("<"))


def _insert_namespace(row: Group | Project, *, session: Session) -> None:
    """Insert a group or project, so that the database assigns its ID.

    Raise TakenError if another request took the path in the meantime.
    """
    try:
        # With the savepoint, the error page can still query the database.
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        raise TakenError(f'"{row.path}" already exists.', field="path") from error
