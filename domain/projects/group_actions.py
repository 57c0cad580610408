"""Actions that list, show, create, change, transfer and delete groups."""

from dataclasses import replace

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.core.errors import ForbiddenError
from domain.core.types.pagination import ListPage
from domain.paging.escalations.transfer_checks import prepare_transfer
from domain.projects import deletion, namespace_changes, transfers, types
from domain.projects.access import get_group
from domain.projects.namespace_changes import (
    ColumnChanges,
    ReservedNames,
    add_creator_as_owner,
    edit_group,
    is_machine_actor,
    set_two_factor_requirement,
    validate_path_segment,
)
from domain.projects.project_actions import (
    get_maintained_group,
    record_namespace_changes,
    record_namespace_created,
    record_namespace_deleted,
)
from domain.projects.transfers import ensure_group_has_owner
from domain.projects.types import (
    Accepted,
    Group,
    GroupChange,
    GroupProjectQuery,
    GroupQuery,
    GroupTransfer,
    NamespaceQuery,
    NewGroup,
    Project,
    ProjectNamespace,
    TransferQuery,
    find_groups,
    find_projects,
)
from domain.projects.views import GroupView, get_viewer


@read_action("groups.index")
def list_groups(work: UnitOfWork, query: GroupQuery) -> ListPage[Group]:
    """List the groups that the caller can see."""
    return find_groups(work, query, query.build_filter())


@read_action("groups.show")
def show_group(work: UnitOfWork, group: GroupView) -> Group:
    """Show a group.

    The response does not contain the group's subgroups and projects.
    """
    return types.build_group_resource(work, group)


@read_action("namespaces.index")
def list_namespaces(work: UnitOfWork, query: NamespaceQuery) -> ListPage[ProjectNamespace]:
    """List the namespaces of the caller, or all namespaces for administrators."""
    return types.find_namespaces(work, query)


@read_action("namespaces.show")
def show_namespace(work: UnitOfWork, group: GroupView) -> ProjectNamespace:
    """Show a namespace: a group or the personal namespace of a user."""
    return types.build_namespace_resource(work, group)


@read_action("groups.subgroups")
def list_subgroups(work: UnitOfWork, group: GroupView, query: GroupQuery) -> ListPage[Group]:
    """List the direct subgroups of a group."""
    return find_groups(work, query, query.build_filter(parent_id=group.id))


@read_action("groups.descendant_groups")
def list_descendant_groups(
    work: UnitOfWork, group: GroupView, query: GroupQuery
) -> ListPage[Group]:
    """List the subgroups of a group at all levels."""
    return find_groups(work, query, query.build_filter(below_id=group.id))


@read_action("groups.projects")
def list_group_projects(
    work: UnitOfWork, group: GroupView, query: GroupProjectQuery
) -> ListPage[Project]:
    """List the projects of a group that the caller can see."""
    return find_projects(work, query, group_id=group.id, with_subgroups=query.include_subgroups)


@read_action("groups.transfer_locations")
def list_transfer_locations(
    work: UnitOfWork, group: GroupView, query: TransferQuery
) -> ListPage[Group]:
    """List the groups to which the caller can transfer a group."""
    return find_groups(work, query, query.build_filter(without=(group.id,)))


@action("groups.create")
def create_group(work: UnitOfWork, new: NewGroup) -> Group:
    """Create a group or a subgroup.

    The caller becomes the owner of a new group.

    Raise InvalidError for an invalid value, TakenError for a path in use, and NotFoundError for an
    unknown group. Raise ForbiddenError if the caller does not have the required role.
    """
    segment, above = validate_path_segment(new.path), _get_parent_group(work, new.parent_id)
    made = namespace_changes.create_group(
        f"{above.path}/{segment}" if above else segment,
        reserved=work.policy(ReservedNames).names,
        session=work.session,
        now=work.now,
        namespace_details=namespace_changes.NamespaceDetails(
            name=new.name, description=new.description
        ),
    )
    add_creator_as_owner(work, made)
    record_namespace_created(work, made)
    return _reload_group(work, made.path)


@action("groups.change")
def change_group(work: UnitOfWork, group: GroupView, change: GroupChange) -> Group:
    """Change the settings or the path of a group.

    Raise InvalidError for an invalid value, and TakenError for a path in use.
    """
    moved: ColumnChanges = {}
    if change.path is not None:
        moved = transfers.rename_group(work, group.id, change.path)
    fields = ("name", "description", "two_factor_grace_period")
    values = {field: getattr(change, field) for field in fields}
    edits = edit_group(group.id, values, session=work.session)
    wanted = change.require_two_factor_authentication
    rule = set_two_factor_requirement(group.id, wanted=wanted, session=work.session, now=work.now)
    return _reload_group(
        work, record_namespace_changes(work, group.namespace, {**moved, **edits, **rule})
    )


@action("groups.transfer")
def transfer_group(work: UnitOfWork, group: GroupView, transfer: GroupTransfer) -> Group:
    """Transfer a group to another group or to the top level.

    The caller must be a maintainer of the other group.

    Raise InvalidError for an invalid value, TakenError for a path in use, and NotFoundError for an
    unknown group. Raise ForbiddenError if the caller does not have the required role. Raise
    ConflictError if the group would have no owner, or if a policy or route depends on a group that
    is no longer an ancestor.
    """
    above = _get_parent_group(work, transfer.group_id)
    prepare_transfer(work, group, above.path if above else None)
    moved = transfers.transfer_group(work, group.id, above.path if above else None)
    path = record_namespace_changes(work, group.namespace, moved)
    place = replace(group.namespace, path=path)
    ensure_group_has_owner(place, work.actor.id, session=work.session, now=work.now)
    return _reload_group(work, path)


@action("groups.delete")
def delete_group(work: UnitOfWork, group: GroupView) -> Accepted:
    """Delete a group and its subgroups and projects.

    The group disappears immediately. Its data is removed in the background.
    """
    paths = deletion.delete_group(group.namespace, session=work.session, now=work.now)
    record_namespace_deleted(work, group.namespace, projects=len(paths))
    return Accepted()


def _get_parent_group(work: UnitOfWork, group_id: int | None) -> GroupView | None:
    """Return the new parent of a created or transferred group, or None for the top level.

    Raise ForbiddenError unless the actor is a maintainer of the parent group.
    """
    if group_id is not None:
        return get_maintained_group(work, group_id)
    if is_machine_actor(work):
        message = "A bot cannot create top-level groups or transfer groups to the top level."
        raise ForbiddenError(message)
    return None


def _reload_group(work: UnitOfWork, path: str) -> Group:
    work.session.flush()  # The following queries read the new values and roles.
    return show_group(work, get_group(path, get_viewer(work), session=work.session))
