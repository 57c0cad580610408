"""Actions that list, show, add, change and remove members of groups and projects."""

from datetime import date

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.accounts.profiles import build_avatar_path, build_profile_path
from domain.audit.events import EventKind
from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.pagination import ListPage
from domain.projects import members
from domain.projects.member_lists import MemberFilter, find_effective_member, list_members
from domain.projects.member_roles import get_usable_member_role
from domain.projects.member_types import (
    AddedMembers,
    Member,
    MemberChange,
    MemberQuery,
    MemberRole,
    MemberRoleAssignment,
    MemberRoleReference,
    NewMembers,
)
from domain.projects.members import record_member_added, record_member_event
from domain.projects.views import AssignedMemberRole, MemberView, ProjectOrGroup, get_viewer


@read_action("members.index", command="list-direct")
def list_direct_members(
    work: UnitOfWork, holder: ProjectOrGroup, query: MemberQuery
) -> ListPage[Member]:
    """List the direct members of a group or project."""
    return _list_members(work, holder, query, is_direct=True)


@read_action("members.index_all", command="list")
def list_all_members(
    work: UnitOfWork, holder: ProjectOrGroup, query: MemberQuery
) -> ListPage[Member]:
    """List all members, including inherited members, with their highest role."""
    return _list_members(work, holder, query, is_direct=False)


@read_action("members.show", command="show-direct")
def show_direct_member(work: UnitOfWork, holder: ProjectOrGroup, user_id: int) -> Member:
    """Show a direct member of a group or project, with the member's direct role."""
    return _build_direct_member(work, _get_direct_member(work, holder, user_id))


@read_action("members.show_of_all", command="show")
def show_member(work: UnitOfWork, holder: ProjectOrGroup, user_id: int) -> Member:
    """Show a direct or inherited member, with the member's highest role."""
    return _build_effective_member(work, _get_member(work, holder, user_id))


@action("members.create", command="add")
def add_members(work: UnitOfWork, holder: ProjectOrGroup, new: NewMembers) -> Member | AddedMembers:
    """Add one or more members.

    If a single member is added, the response contains the member.

    Raise NotFoundError for an unknown user. Raise ForbiddenError if the caller does not have the
    required role, and InvalidError for an invalid value. Raise ConflictError if a user is already a
    member.
    """
    ids = (members.get_username(each, session=work.session) for each in new.user_id)
    logins = [*new.username, *ids]
    if not logins:
        raise InvalidError("`user_id` or `username` is missing.", field="user_id")
    members.check_expiry_date(new.expires_at, work.now.date())
    added = [_add_member(work, holder, login, new) for login in logins]
    return AddedMembers() if len(added) > 1 else show_direct_member(work, holder, added[0])


@action("members.change")
def change_member(
    work: UnitOfWork, holder: ProjectOrGroup, user_id: int, change: MemberChange
) -> Member:
    """Change the role or the expiry date of a member.

    Raise NotFoundError if the user is not a direct member. Raise ForbiddenError if the caller lacks
    the required role, and InvalidError for an invalid value.
    """
    member, role = _get_direct_member(work, holder, user_id), change.access_level
    if role is not None and role != member.own_role:
        before = members.change_role(
            holder.namespace, member.id or 0, role, viewer=get_viewer(work), session=work.session
        )
        _record_change(work, holder, member, role=role.label, before=before.label)
    if "expires_at" in change.given_values and change.expires_at != member.own_expires_at:
        namespace, day = holder.namespace, change.expires_at
        members.change_expiry_date(work, namespace, member.id or 0, day)
        _record_change(work, holder, member, expires_at=day and day.isoformat())
    if "member_role_id" in change.given_values:
        # The next query must read that a new role has removed the custom role.
        work.session.flush()
        _set_custom_role(
            work, holder, _get_direct_member(work, holder, user_id), change.member_role_id
        )
    work.session.flush()  # The following query reads the new values.
    return show_direct_member(work, holder, user_id)


@action("members.change", command="give-member-role")
def assign_custom_role(
    work: UnitOfWork, holder: ProjectOrGroup, user_id: int, gift: MemberRoleAssignment
) -> Member:
    """Assign a custom role to a member, or remove the custom role if the ID is 0."""
    change = MemberChange(member_role_id=gift.member_role_id or None)
    return change_member(work, holder, user_id, change)


@action("members.delete", command="remove")
def remove_member(work: UnitOfWork, holder: ProjectOrGroup, user_id: int) -> Member:
    """Remove a member, or leave a group or project.

    Inherited roles remain. Removing other members requires the Maintainer role.
    """
    member = _get_direct_member(work, holder, user_id)
    removed, namespace, by = _build_direct_member(work, member), holder.namespace, get_viewer(work)
    if user_id == work.actor.id:
        members.leave_namespace(namespace, viewer=by, session=work.session)
    else:
        members.remove_member(namespace, member.id or 0, viewer=by, session=work.session)
    user = (member.user_id, member.username)
    record_member_event(work, EventKind.MEMBER_REMOVED, namespace, user)
    return removed


def _list_members(
    work: UnitOfWork, holder: ProjectOrGroup, query: MemberQuery, *, is_direct: bool
) -> ListPage[Member]:
    wanted = MemberFilter(
        search=query.query,
        user_ids=query.user_ids,
        without=query.skip_users,
        is_direct=is_direct,
    )
    found = list_members(
        holder.namespace,
        wanted,
        query.requested_range,
        viewer_id=None,
        session=work.session,
        today=work.now.date(),
    )
    return ListPage.from_page_result(
        found,
        lambda each: (_build_direct_member if is_direct else _build_effective_member)(work, each),
    )


def _add_member(
    work: UnitOfWork, holder: ProjectOrGroup, login: str, new_members: NewMembers
) -> int:
    role, namespace = new_members.access_level, holder.namespace
    user = members.add_member(
        namespace, login, role, viewer=get_viewer(work), session=work.session, now=work.now
    )
    if new_members.expires_at is not None:
        member = _get_direct_member(work, holder, user.id)
        members.change_expiry_date(work, namespace, member.id or 0, new_members.expires_at)
    record_member_added(work, namespace, user, role, new_members.expires_at)
    if new_members.member_role_id is not None:
        _set_custom_role(
            work, holder, _get_direct_member(work, holder, user.id), new_members.member_role_id
        )
    return user.id


def _set_custom_role(
    work: UnitOfWork, holder: ProjectOrGroup, member: MemberView, role_id: int | None
) -> None:
    """Set or remove a member's custom role.

    Do nothing if the member already has this custom role.
    """
    if role_id == (member.own_custom_role.id if member.own_custom_role else None):
        return
    custom = None if role_id is None else _get_requested_role(work, holder, role_id)
    members.set_member_role(work, holder.namespace, member.id or 0, custom)
    _record_change(work, holder, member, member_role=custom.name if custom else "none")


def _record_change(
    work: UnitOfWork, holder: ProjectOrGroup, member: MemberView, **details: object
) -> None:
    user = (member.user_id, member.username)
    record_member_event(work, EventKind.MEMBER_CHANGED, holder.namespace, user, **details)


def _get_requested_role(work: UnitOfWork, holder: ProjectOrGroup, role_id: int) -> MemberRole:
    try:
        return get_usable_member_role(role_id, holder.namespace, session=work.session)
    except NotFoundError as error:
        raise InvalidError(str(error), field="member_role_id") from error


def _get_member(work: UnitOfWork, holder: ProjectOrGroup, user_id: int) -> MemberView:
    found = find_effective_member(
        holder.namespace, user_id, session=work.session, today=work.now.date()
    )
    if found is None:
        raise NotFoundError("Member not found.")
    return found


def _get_direct_member(work: UnitOfWork, holder: ProjectOrGroup, user_id: int) -> MemberView:
    found = _get_member(work, holder, user_id)
    if found.own_role is None:
        raise NotFoundError(f"This user is not a direct member of {holder.path}.")
    return found


def _build_direct_member(work: UnitOfWork, view: MemberView) -> Member:
    """Return a member with their direct role."""
    role = view.own_role or view.role
    return _build_member(work, view, role, view.own_expires_at, view.own_custom_role)


def _build_effective_member(work: UnitOfWork, view: MemberView) -> Member:
    """Return a member with their highest role, which can be direct or inherited."""
    return _build_member(work, view, view.role, view.expires_at, view.custom_role)


def _build_member(
    work: UnitOfWork,
    view: MemberView,
    role: Role,
    expires_at: date | None,
    custom: AssignedMemberRole | None,
) -> Member:
    base_url = work.settings.base_url
    return Member(
        id=view.user_id,
        username=view.username,
        name=view.name,
        state=view.state,
        avatar_url=f"{base_url}{build_avatar_path(view.name or view.username, view.user_id)}",
        web_url=f"{base_url}{build_profile_path(view.username)}",
        access_level=int(role),
        created_at=view.created_at,
        expires_at=expires_at,
        member_role=MemberRoleReference.model_validate(custom) if custom else None,
    )
