"""Actions on projects, and audit events about projects and groups."""

from dataclasses import replace

from sqlalchemy import select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.checks import check_role
from domain.access.roles import Role
from domain.accounts.names import slugify_name
from domain.accounts.users import HUMAN
from domain.audit.events import EventKind
from domain.core.errors import InvalidError
from domain.core.types.base import Body
from domain.core.types.pagination import ListPage
from domain.paging.escalations.transfer_checks import prepare_transfer
from domain.projects import deletion, namespace_changes, transfers, types
from domain.projects.access import get_group, get_project
from domain.projects.namespace_changes import (
    ColumnChanges,
    ReservedNames,
    add_creator_as_owner,
    edit_project,
    validate_path_segment,
)
from domain.projects.paths import (
    FormerPathView,
    find_group_path,
    get_parent_path,
    list_former_paths,
    release_former_path,
)
from domain.projects.types import (
    Accepted,
    Group,
    NewProject,
    Project,
    ProjectChange,
    ProjectQuery,
    ProjectTransfer,
    TransferQuery,
    find_groups,
    find_projects,
)
from domain.projects.views import (
    GroupView,
    JobTokenScope,
    Namespace,
    ProjectOrGroup,
    ProjectView,
    get_viewer,
)
from models import Group as GroupRow
from models import User
from models.case_folding import fold_text

_EVENT_KINDS = {
    "group": (EventKind.GROUP_CREATED, EventKind.GROUP_CHANGED, EventKind.GROUP_DELETED),
    "project": (EventKind.PROJECT_CREATED, EventKind.PROJECT_CHANGED, EventKind.PROJECT_DELETED),
}
#: Maximum number of former paths in the list of a group or project.
_MAX_FORMER_PATHS = 1_000


def record_namespace_created(work: UnitOfWork, namespace: Namespace) -> None:
    """Record a new group or project in the audit log."""
    work.record_audit_event(
        _EVENT_KINDS[namespace.resource_type][0], subject=namespace.path, event_namespace=namespace
    )


def record_namespace_changes(work: UnitOfWork, namespace: Namespace, changes: ColumnChanges) -> str:
    """Record the changes to a group or project, if any, and return its current path.

    The text of the description is not recorded, since it may be long.
    """
    path = changes["path"][1] if "path" in changes else namespace.path
    details: dict[str, object] = {"changed": " ".join(changes)}
    for name, (before, after) in changes.items():
        if name != "description":
            details |= {name: after, f"{name}_before": before}
    if changes:
        place = replace(namespace, path=path)
        kind = _EVENT_KINDS[namespace.resource_type][1]
        work.record_audit_event(kind, subject=path, event_namespace=place, details=details)
    return path


def record_path_released(work: UnitOfWork, namespace: Namespace, path: str) -> None:
    """Record the release of a former path in the audit log."""
    details = {"changed": "former paths", "released": path}
    kind = _EVENT_KINDS[namespace.resource_type][1]
    work.record_audit_event(
        kind, subject=namespace.path, event_namespace=namespace, details=details
    )


def record_namespace_deleted(
    work: UnitOfWork, namespace: Namespace, *, projects: int | None = None
) -> None:
    """Record the deletion of a project, or of a group with the number of its projects."""
    details = {} if projects is None else {"projects": projects}
    kind = _EVENT_KINDS[namespace.resource_type][2]
    work.record_audit_event(
        kind, subject=namespace.path, event_namespace=namespace, details=details
    )


@read_action("projects.index")
def list_projects(work: UnitOfWork, query: ProjectQuery) -> ListPage[Project]:
    """List the projects that the caller can see."""
    return find_projects(work, query)


@read_action("projects.show")
def show_project(work: UnitOfWork, project: ProjectView) -> Project:
    """Show a project.

    The response contains all fields, as in lists without `simple=true`.
    """
    return types.build_project_resource(work, project)


@read_action("projects.transfer_locations")
def list_transfer_locations(
    work: UnitOfWork, project: ProjectView, query: TransferQuery
) -> ListPage[Group]:
    """List the groups to which the caller can transfer a project."""
    return find_groups(work, query, query.build_filter(without=(project.group_id,)))


@action("projects.create")
def create_project(work: UnitOfWork, new: NewProject) -> Project:
    """Create a project in a group or in the caller's personal namespace.

    Raise InvalidError for an invalid value, TakenError for a path in use, and NotFoundError for an
    unknown group. Raise ForbiddenError if the caller does not have the required role.
    """
    holder = _get_target_group_path(work, new.namespace_id)
    segment = validate_path_segment(new.path) if new.path else _derive_path_segment(new.name)
    made = namespace_changes.create_project(
        f"{holder}/{segment}",
        visibility=new.visibility,
        reserved=work.policy(ReservedNames).names,
        session=work.session,
        now=work.now,
        namespace_details=namespace_changes.NamespaceDetails(
            name=new.name, description=new.description
        ),
    )
    number = made.project_id or 0
    namespace_changes.edit_project(work, number, new.access_settings)
    add_creator_as_owner(work, made)
    record_namespace_created(work, made)
    return _reload_project(work, made.path)


@action("projects.change")
def change_project(work: UnitOfWork, project: ProjectView, change: ProjectChange) -> Project:
    """Change the settings or the path of a project.

    Only the last part of the path can change.

    Raise InvalidError for an invalid value, and TakenError for a path in use. Raise ForbiddenError
    if the caller is not allowed to change the visibility.
    """
    moved: namespace_changes.ColumnChanges = {}
    if change.path is not None:
        moved = transfers.rename_project(work, project.id, change.path)
    edits = namespace_changes.edit_project(work, project.id, change.changed_settings)
    return _reload_project(
        work, record_namespace_changes(work, project.namespace, {**moved, **edits})
    )


@action("projects.transfer")
def transfer_project(work: UnitOfWork, project: ProjectView, transfer: ProjectTransfer) -> Project:
    """Transfer a project to another group or to the caller's personal namespace.

    The caller must be a maintainer of the other group.

    Raise InvalidError for an invalid value, TakenError for a path in use, and NotFoundError for an
    unknown group. Raise ForbiddenError if the caller does not have the required role. Raise
    ConflictError if a policy or route depends on a group that the project leaves.
    """
    holder = _get_target_group_path(work, transfer.namespace)
    prepare_transfer(work, project, holder)
    moved = transfers.transfer_project(project.id, holder, session=work.session, now=work.now)
    return _reload_project(work, record_namespace_changes(work, project.namespace, moved))


@action("projects.delete")
def delete_project(work: UnitOfWork, project: ProjectView) -> Accepted:
    """Delete a project.

    The project disappears immediately. Its data is removed in the background.
    """
    deletion.delete_project(project.namespace, session=work.session, now=work.now)
    record_namespace_deleted(work, project.namespace)
    return Accepted()


@action("projects.archive")
def archive_project(work: UnitOfWork, project: ProjectView) -> Project:
    """Archive a project, so that it accepts no changes, pushes or alerts."""
    if namespace_changes.archive_project_row(project.id, session=work.session, now=work.now):
        work.record_audit_event(
            EventKind.PROJECT_ARCHIVED, subject=project.path, event_namespace=project.namespace
        )
    return _reload_project(work, project.path)


@action("projects.unarchive")
def unarchive_project(work: UnitOfWork, project: ProjectView) -> Project:
    """Unarchive a project, so that it accepts changes, pushes and alerts again."""
    if namespace_changes.unarchive_project(project.id, session=work.session):
        work.record_audit_event(
            EventKind.PROJECT_UNARCHIVED, subject=project.path, event_namespace=project.namespace
        )
    return _reload_project(work, project.path)


@read_action("former_paths.index")
def list_namespace_former_paths(
    work: UnitOfWork, holder: ProjectOrGroup
) -> tuple[FormerPathView, ...]:
    """List the former paths of a group or project, newest first."""
    return list_former_paths(holder.namespace, maximum=_MAX_FORMER_PATHS, session=work.session)


@action("former_paths.release")
def release_path(work: UnitOfWork, holder: ProjectOrGroup, former_id: int) -> str:
    """Release a former path, so that it can be used again.

    Return the path. Raise NotFoundError if the path was already released, and TakenError while the
    container registry has images with that name.
    """
    path = release_former_path(holder.namespace, former_id, session=work.session)
    record_path_released(work, holder.namespace, path)
    return path


def _get_or_create_own_namespace(work: UnitOfWork) -> str:
    """Return the path of the actor's personal namespace, creating it for the first project.

    Raise InvalidError if the actor is not a person, and TakenError if a group has the username.
    """
    # With the lock, a concurrent request for a first project finds the new namespace.
    user = work.session.get(User, work.actor.id, with_for_update={"key_share": True})
    if user is None or user.kind != HUMAN:
        raise InvalidError("`namespace_id` is missing.", field="namespace_id")
    found = work.session.scalar(select(GroupRow.path).where(GroupRow.owner_id == user.id))
    if found is not None:
        return found
    made = namespace_changes.create_group(
        user.username,
        reserved=work.policy(ReservedNames).names,
        session=work.session,
        now=work.now,
        owner_id=user.id,
    )
    namespace_changes.add_owner(made, user.id, session=work.session, now=work.now)
    return made.path


def _get_target_group_path(work: UnitOfWork, reference: int | str | None) -> str:
    """Return the path of the group that will contain a project.

    The actor must be a maintainer of the group. Without a reference, or with the actor's own
    username, the group is the actor's personal namespace. Raise NotFoundError for an unknown group,
    and ForbiddenError if the actor does not have the required role. Raise InvalidError if the actor
    would need a personal namespace, but is not a person.
    """
    if reference is None:
        return _get_or_create_own_namespace(work)
    path = find_group_path(str(reference), session=work.session)
    named = select(User.id).where(User.username_key == fold_text(path), User.id == work.actor.id)
    if work.session.scalar(named) is not None:
        return _get_or_create_own_namespace(work)
    return get_maintained_group(work, path).path


def get_maintained_group(work: UnitOfWork, reference: int | str) -> GroupView:
    """Return a group of which the actor is a maintainer, by its ID or path.

    Raise NotFoundError for an unknown group, and ForbiddenError if the actor does not have the
    required role.
    """
    return _get_maintained_group_by_path(
        work, find_group_path(str(reference), session=work.session)
    )


def _get_maintained_group_by_path(work: UnitOfWork, path: str) -> GroupView:
    group = get_group(path, get_viewer(work), session=work.session)
    check_role(group, Role.MAINTAINER)
    return group


def find_transfer_destination(work: UnitOfWork, holder: ProjectOrGroup, path: str) -> str | None:
    """Return the path of the group to which a project or group is transferred.

    Return None if a group is transferred to the top level. The actor must be a maintainer of the
    destination. A project can also be transferred to the actor's personal namespace. Raise
    NotFoundError for an unknown group, and ForbiddenError if the actor does not have the required
    role. Raise InvalidError for an empty path if a project is transferred, or for the current
    group.
    """
    namespace = holder.namespace
    if not path and holder.is_group:
        return None
    if not path:
        raise InvalidError("Enter the full path of a group.", field="to")
    if holder.is_group or path != work.actor.name:
        path = _get_maintained_group_by_path(work, path).path
    if path == get_parent_path(namespace.path):
        raise InvalidError(f"The {namespace.resource_type} is already in {path}.", field="to")
    return path


def _derive_path_segment(name: str) -> str:
    path = slugify_name(name)
    if not path:
        message = "`path` is missing and cannot be derived from `name`."
        raise InvalidError(message, field="path")
    return path


def _reload_project(work: UnitOfWork, path: str) -> Project:
    work.session.flush()  # The following queries read the new values and roles.
    return show_project(work, get_project(path, get_viewer(work), session=work.session))


class JobTokenScopeBody(Body):
    """Limits on a project's job tokens. Omitted limits remain unchanged."""

    #: Alternative name of `inbound_enabled`, used by clients.
    enabled: bool | None = None
    inbound_enabled: bool | None = None
    outbound_enabled: bool | None = None


@read_action("job_token_scope.show")
def show_job_token_scope(_work: UnitOfWork, project: ProjectView) -> JobTokenScope:
    """Show the limits on a project's job tokens."""
    return project.job_token_scope


@action("job_token_scope.change")
def change_job_token_scope(
    work: UnitOfWork, project: ProjectView, change: JobTokenScopeBody
) -> None:
    """Change the limits on a project's job tokens."""
    inbound = change.enabled if change.inbound_enabled is None else change.inbound_enabled
    limits = {
        "limits_job_token_to_others": change.outbound_enabled,
        "limits_job_tokens_of_others": inbound,
    }
    changes = edit_project(work, project.id, limits)
    record_namespace_changes(work, project.namespace, changes)
