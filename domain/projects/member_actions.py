"""Actions on the members of groups and projects."""

from datetime import date

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.access.roles import Role
from domain.accounts.profiles import avatar_path, profile_path
from domain.audit.events import EventKind
from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.base import Found
from domain.projects import members
from domain.projects.member_lists import MemberFilter, find_member_of_all, list_members
from domain.projects.member_roles import get_usable_member_role
from domain.projects.member_types import (
    AddedMembers,
    Member,
    MemberChange,
    MemberQuery,
    MemberRole,
    MemberRoleGift,
    MemberRoleReference,
    NewMembers,
)
from domain.projects.members import record_joined, record_member
from domain.projects.views import GivenMemberRole, Holder, MemberView, viewer_of


@question("members.index", command="list-direct")
def list_direct_members(work: Work, holder: Holder, query: MemberQuery) -> Found[Member]:
    """List the direct members of a group or project."""
    return _list(work, holder, query, is_direct=True)


@question("members.index_all", command="list")
def list_all_members(work: Work, holder: Holder, query: MemberQuery) -> Found[Member]:
    """List all members, including inherited members, with their highest role."""
    return _list(work, holder, query, is_direct=False)


@question("members.show", command="show-direct")
def show_direct_member(work: Work, holder: Holder, user_id: int) -> Member:
    """Show a direct member."""
    return _direct(work, _get_direct(work, holder, user_id))


@question("members.show_of_all", command="show")
def show_member(work: Work, holder: Holder, user_id: int) -> Member:
    """Show a direct or inherited member, with the member's highest role."""
    return _effective(work, _get(work, holder, user_id))


@action("members.create", command="add")
def add_members(work: Work, holder: Holder, new: NewMembers) -> Member | AddedMembers:
    """Add one or more members.

    A single new member is returned.

    Raise NotFoundError for an unknown user. Raise ForbiddenError without the required role, and
    InvalidError for an invalid value. Raise ConflictError if a user is already a member.
    """
    ids = (members.login_of(each, session=work.session) for each in new.user_id)
    logins = [*new.username, *ids]
    if not logins:
        raise InvalidError("`user_id` or `username` is missing.", field="user_id")
    members.check_day(new.expires_at, work.now.date())
    added = [_add(work, holder, login, new) for login in logins]
    return AddedMembers() if len(added) > 1 else show_direct_member(work, holder, added[0])


@action("members.change")
def change_member(work: Work, holder: Holder, user_id: int, change: MemberChange) -> Member:
    """Change the role or the expiry date of a member.

    Raise NotFoundError if the user is not a direct member. Raise ForbiddenError without the
    required role, and InvalidError for an invalid value.
    """
    member, role = _get_direct(work, holder, user_id), change.access_level
    if role is not None and role != member.own_role:
        before = members.change_role(
            holder.namespace, member.id or 0, role, by=viewer_of(work), session=work.session
        )
        _record(work, holder, member, role=role.label, before=before.label)
    if "expires_at" in change.given and change.expires_at != member.own_expires_at:
        _change_end(work, holder, member, change.expires_at)
        day = change.expires_at
        _record(work, holder, member, expires_at=day and day.isoformat())
    if "member_role_id" in change.given:
        work.session.flush()  # A changed role ends the custom role.
        _give(work, holder, _get_direct(work, holder, user_id), change.member_role_id)
    work.session.flush()  # The new values are read below.
    return show_direct_member(work, holder, user_id)


@action("members.change", command="give-member-role")
def give_member_role(work: Work, holder: Holder, user_id: int, gift: MemberRoleGift) -> Member:
    """Assign a custom role to a member by its id, or remove it with 0."""
    change = MemberChange(member_role_id=gift.member_role_id or None)
    return change_member(work, holder, user_id, change)


@action("members.delete", command="remove")
def remove_member(work: Work, holder: Holder, user_id: int) -> Member:
    """Remove a member, or leave a group or project.

    Inherited roles are kept. Removing others requires the Maintainer role.
    """
    member = _get_direct(work, holder, user_id)
    removed, namespace, by = _direct(work, member), holder.namespace, viewer_of(work)
    if user_id == work.actor.id:
        members.leave(namespace, by=by, session=work.session)
    else:
        members.remove_member(namespace, member.id or 0, by=by, session=work.session)
    user = (member.user_id, member.username)
    record_member(work, EventKind.MEMBER_REMOVED, namespace, user)
    return removed


def _list(work: Work, holder: Holder, query: MemberQuery, *, is_direct: bool) -> Found[Member]:
    wanted = MemberFilter(
        search=query.query,
        user_ids=query.user_ids,
        without=query.skip_users,
        is_direct=is_direct,
    )
    found = list_members(
        holder.namespace,
        wanted,
        query.part,
        viewer_id=None,
        session=work.session,
        today=work.now.date(),
    )
    return Found.of(found, lambda each: (_direct if is_direct else _effective)(work, each))


def _add(work: Work, holder: Holder, login: str, new: NewMembers) -> int:
    role, namespace = new.access_level, holder.namespace
    user = members.add_member(
        namespace, login, role, by=viewer_of(work), session=work.session, now=work.now
    )
    if new.expires_at is not None:
        _change_end(work, holder, _get_direct(work, holder, user.id), new.expires_at)
    record_joined(work, namespace, user, role, new.expires_at)
    if new.member_role_id is not None:
        _give(work, holder, _get_direct(work, holder, user.id), new.member_role_id)
    return user.id


def _change_end(work: Work, holder: Holder, member: MemberView, day: date | None) -> None:
    members.change_end(
        holder.namespace, member.id or 0, day, by=viewer_of(work), session=work.session
    )


def _give(work: Work, holder: Holder, member: MemberView, role_id: int | None) -> None:
    """Set or remove a member's custom role; do nothing if it does not change."""
    if role_id == (member.own_custom_role.id if member.own_custom_role else None):
        return
    custom = None if role_id is None else _wanted_member_role(work, holder, role_id)
    members.give_member_role(
        holder.namespace, member.id or 0, custom, by=viewer_of(work), session=work.session
    )
    _record(work, holder, member, member_role=custom.name if custom else "none")


def _record(work: Work, holder: Holder, member: MemberView, **details: object) -> None:
    user = (member.user_id, member.username)
    record_member(work, EventKind.MEMBER_CHANGED, holder.namespace, user, **details)


def _wanted_member_role(work: Work, holder: Holder, role_id: int) -> MemberRole:
    try:
        return get_usable_member_role(role_id, holder.namespace, session=work.session)
    except NotFoundError as error:
        raise InvalidError(str(error), field="member_role_id") from error


def _get(work: Work, holder: Holder, user_id: int) -> MemberView:
    found = find_member_of_all(
        holder.namespace, user_id, session=work.session, today=work.now.date()
    )
    if found is None:
        raise NotFoundError("Member not found.")
    return found


def _get_direct(work: Work, holder: Holder, user_id: int) -> MemberView:
    found = _get(work, holder, user_id)
    if found.own_role is None:
        raise NotFoundError(f"This user is not a direct member of {holder.path}.")
    return found


def _direct(work: Work, view: MemberView) -> Member:
    """Return a membership with its direct role."""
    role = view.own_role or view.role
    return _member(work, view, role, view.own_expires_at, view.own_custom_role)


def _effective(work: Work, view: MemberView) -> Member:
    """Return a membership with the highest role, which may be inherited."""
    return _member(work, view, view.role, view.expires_at, view.custom_role)


def _member(
    work: Work,
    view: MemberView,
    role: Role,
    expires_at: date | None,
    custom: GivenMemberRole | None,
) -> Member:
    base_url = work.settings.base_url
    return Member(
        id=view.user_id,
        username=view.username,
        name=view.name,
        state=view.state,
        avatar_url=f"{base_url}{avatar_path(view.name or view.username, view.user_id)}",
        web_url=f"{base_url}{profile_path(view.username)}",
        access_level=int(role),
        created_at=view.created_at,
        expires_at=expires_at,
        member_role=MemberRoleReference.model_validate(custom) if custom else None,
    )
