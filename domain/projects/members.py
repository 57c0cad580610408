"""Adds, changes and removes members.

A lock serializes changes to the members of one group or project. Permissions and the remaining
owners are read while the lock is held, so that they cannot change before the commit.
"""

from datetime import date, datetime

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.accounts.users import BOT, ERASED, IS_ACTIVE_HUMAN, UserView, get_user
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_bulk_delete, build_session_insert
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.projects.access import find_role_in_namespace
from domain.projects.member_roles import assign_member_role
from domain.projects.member_types import MemberRole
from domain.projects.paths import list_ancestor_paths
from domain.projects.views import Namespace, Viewer, get_viewer
from models import Group, Member, Project, User
from models.case_folding import fold_text

#: Viewer for the command line, which has the permissions of an owner.
OPERATOR_VIEWER = Viewer(user_id=None, is_admin=True)


def add_member(
    namespace: Namespace,
    login: str,
    role: Role,
    *,
    viewer: Viewer,
    session: Session,
    now: datetime,
) -> UserView:
    """Add a user as a direct member of a group or project.

    Raise NotFoundError for an unknown user. Raise ForbiddenError if the viewer does not have the
    required role, and InvalidError for an invalid value. Raise ConflictError for an existing
    member, since only `change_role` changes the role of a member.
    """
    giver = lock_members(namespace, viewer, session=session)
    _check_login_not_email(login, viewer)
    user = get_user(login.removeprefix("@"), session=session)
    if user.kind == BOT:
        message = "Bots cannot be added as members. Create an access token instead."
        raise InvalidError(message, field="user")
    check_can_grant_role(role, giver)
    store_member(namespace, user, role, expires_at=None, session=session, now=now)
    return user


def store_member(
    namespace: Namespace,
    user: UserView,
    role: Role,
    *,
    expires_at: date | None,
    session: Session,
    now: datetime,
) -> None:
    """Store a membership, replacing an expired membership.

    Raise ConflictError if the user is already a member.
    """
    session.execute(
        build_bulk_delete(Member).where(
            Member.user_id == user.id,
            is_direct_membership(namespace),
            Member.expires_at <= now.date(),
        )
    )
    insert = build_session_insert(Member, session=session).values(
        user_id=user.id,
        group_id=namespace.group_id,
        project_id=namespace.project_id,
        role=int(role),
        created_at=now,
        expires_at=expires_at,
    )
    added = session.execute(insert.on_conflict_do_nothing().returning(Member.id)).first()
    if added is None:
        message = f"{user.username} is already a member. Change the member's role instead."
        raise ConflictError(message, field="user")


def record_member_added(
    work: UnitOfWork,
    namespace: Namespace,
    user: UserView,
    role: Role,
    expires_at: date | None = None,
) -> None:
    """Record in the audit log that a user became a member."""
    until = {} if expires_at is None else {"expires_at": expires_at.isoformat()}
    details = {"role": role.label, **until}
    record_member_event(
        work, EventKind.MEMBER_ADDED, namespace, (user.id, user.username), **details
    )


def record_member_event(
    work: UnitOfWork,
    kind: EventKind,
    namespace: Namespace,
    user: tuple[int, str],
    **details: object,
) -> None:
    """Record an audit event about a member.

    `user` contains the member's user ID and username.
    """
    user_id, username = user
    work.record_audit_event(
        kind,
        subject=namespace.path,
        user_id=user_id,
        event_namespace=namespace,
        details={"username": username, **details},
    )


def check_expiry_date(expires_at: date | None, today: date) -> None:
    """Check that an expiry date is in the future.

    Raise InvalidError otherwise.
    """
    if expires_at is not None and expires_at <= today:
        raise InvalidError("The expiry date must be after today.", field="expires_at")


def change_expiry_date(
    work: UnitOfWork, namespace: Namespace, member_id: int, expires_at: date | None
) -> None:
    """Change or remove the expiry date of a member's role.

    If `expires_at` is None, the expiry date is removed. Raise NotFoundError if there is no such
    member, and ForbiddenError if the actor does not have the required role. Raise InvalidError for
    bots and for the last owner of a group.
    """
    session, viewer = work.session, get_viewer(work)
    giver = lock_members(namespace, viewer, session=session)
    member, _ = _get_member(namespace, member_id, giver, session=session)
    check_expiry_date(expires_at, viewer.today)
    if expires_at is not None:
        check_owner_remains(namespace, member, session=session)
    member.expires_at = expires_at


def get_username(user_id: int, *, session: Session) -> str:
    """Return the username of an account.

    Raise NotFoundError if the account does not exist or was erased.
    """
    username = session.scalar(select(User.username).where(User.id == user_id, User.kind != ERASED))
    if username is None:
        raise NotFoundError("User not found.")
    return username


def change_role(
    namespace: Namespace, member_id: int, role: Role, *, viewer: Viewer, session: Session
) -> Role:
    """Change a member's role and return the previous role.

    Neither the previous nor the new role may exceed the viewer's own role. Raise NotFoundError if
    there is no such member, and ForbiddenError if the viewer does not have the required role. Raise
    InvalidError for bots and for the last owner of a group.
    """
    giver = lock_members(namespace, viewer, session=session)
    member, _ = _get_member(namespace, member_id, giver, session=session)
    check_can_grant_role(role, giver)
    before = Role(member.role)
    if role < before:
        check_owner_remains(namespace, member, session=session)
    member.role = int(role)
    if role is not before:
        member.member_role_id = None  # The custom role was based on the previous role.
    return before


def set_member_role(
    work: UnitOfWork, namespace: Namespace, member_id: int, custom: MemberRole | None
) -> None:
    """Set or remove the custom role of a member.

    Raise NotFoundError if there is no such member, and ForbiddenError if the actor lacks the
    required role. Raise InvalidError for bots, and if the base role of the custom role is not the
    member's role.
    """
    session = work.session
    giver = lock_members(namespace, get_viewer(work), session=session)
    member, _ = _get_member(namespace, member_id, giver, session=session)
    assign_member_role(member.id, custom, session=session)


def remove_member(
    namespace: Namespace, member_id: int, *, viewer: Viewer, session: Session
) -> None:
    """Remove a member other than the last owner of a group.

    Raise NotFoundError if there is no such member, and ForbiddenError if the viewer lacks the
    required role. Raise InvalidError for bots and for the last owner of a group.
    """
    giver = lock_members(namespace, viewer, session=session)
    member, _ = _get_member(namespace, member_id, giver, session=session)
    check_owner_remains(namespace, member, session=session)
    session.execute(delete(Member).where(Member.id == member.id))


def lock_members(namespace: Namespace, viewer: Viewer, *, session: Session) -> Role:
    """Lock the members of a group or project, then return the viewer's current role.

    Raise ForbiddenError if the role is below Maintainer.
    """
    lock_namespace_members(namespace, session=session)
    role = find_role_in_namespace(namespace.path, namespace.project_id, viewer, session=session)
    if role is None or role < Role.MAINTAINER:
        raise ForbiddenError(f"You need the Maintainer role in {namespace.path}.")
    return role


def lock_namespace_members(namespace: Namespace, *, session: Session) -> None:
    """Lock the members of a group or project until the commit.

    Raise NotFoundError if the group or project was deleted.
    """
    table = Group if namespace.group_id is not None else Project
    # The lock does not block inserts of rows that refer to the group or project, such as alerts.
    # SQLite needs no lock, since it has only one writer.
    live = select(table.id).where(table.id == namespace.id, table.deleted_at.is_(None))
    if session.scalar(live.with_for_update(key_share=True)) is None:
        raise NotFoundError(f"{namespace.path} was deleted in the meantime.")


def _check_login_not_email(login: str, viewer: Viewer) -> None:
    """Reject an email address unless the viewer may see the email addresses of other users.

    Raise InvalidError if the login is rejected.
    """
    if "@" in login.removeprefix("@") and not viewer.is_admin:
        message = (
            "Use the username to add a member, not the email address. Users can see their "
            "username in their profile."
        )
        raise InvalidError(message, field="user")


def check_can_grant_role(role: Role, giver: Role) -> None:
    """Check that a role does not exceed the role of the user who assigns it.

    Raise InvalidError if the role is too high.
    """
    if role > giver:
        message = f"You cannot give the {role.label} role, because your own role is {giver.label}."
        raise InvalidError(message, field="role")


def _get_member(
    namespace: Namespace, member_id: int, giver: Role, *, session: Session
) -> tuple[Member, User]:
    """Return a member that a user with the role `giver` may change.

    Raise NotFoundError if there is no such member, ForbiddenError if the member has a higher role,
    and InvalidError for bots.
    """
    row = session.execute(
        select(Member, User)
        .join(User, User.id == Member.user_id)
        .where(Member.id == member_id, is_direct_membership(namespace))
        .execution_options(populate_existing=True)
    ).first()
    if row is None:
        raise NotFoundError("Member not found.")
    member, user = row
    if member.role > giver:
        label = Role(member.role).label
        message = f"{user.username} has the {label} role, which is higher than yours."
        raise ForbiddenError(message)
    _check_not_bot(user)
    return member, user


def _check_not_bot(user: User) -> None:
    """Check that a user is not a bot, whose membership ends with its access token.

    Raise InvalidError for a bot.
    """
    if user.kind == BOT:
        message = "This member is the bot of an access token. Revoke the access token instead."
        raise InvalidError(message, field="member")


def is_direct_membership(namespace: Namespace) -> ColumnElement[bool]:
    """Return an SQL condition that matches the direct members of a group or project."""
    if namespace.group_id is not None:
        return Member.group_id == namespace.group_id
    return Member.project_id == namespace.project_id


def check_owner_remains(namespace: Namespace, member: Member, *, session: Session) -> None:
    """Check that a group has an active owner, direct or inherited, besides the given member.

    Raise InvalidError if there is no such owner.
    """
    if namespace.group_id is None or member.role < Role.OWNER:
        return
    if not has_owner(namespace.path, Member.id != member.id, session=session):
        message = "A group must have an owner. Give the Owner role to another member first."
        raise InvalidError(message, field="member")


def has_owner(group_path: str, other: ColumnElement[bool], *, session: Session) -> bool:
    """Return whether a group has a matching owner, direct or inherited, who can sign in."""
    owners = (
        select(Member.id)
        .join(User, User.id == Member.user_id)
        .join(Group, Group.id == Member.group_id)
        .where(
            Group.path_key.in_(
                [fold_text(each) for each in (*list_ancestor_paths(group_path), group_path)]
            ),
            Member.role == int(Role.OWNER),
            # Owners with an expiry date do not count, since the group would have no owner after
            # that date.
            Member.expires_at.is_(None),
            other,
            IS_ACTIVE_HUMAN,
        )
    )
    return session.scalar(owners.limit(1)) is not None


def list_solely_owned_groups(user_id: int, *, session: Session) -> tuple[str, ...]:
    """Return the paths of the groups whose only owner is the given user.

    The members of the groups stay locked until the caller commits.
    """
    mine = (
        select(Group.path)
        .join(Member, Member.group_id == Group.id)
        .where(Member.user_id == user_id, Member.role == int(Role.OWNER), Group.owner_id.is_(None))
        .order_by(Group.id)
        .with_for_update(of=Group, key_share=True)
    )
    paths = session.scalars(mine).all()
    others = Member.user_id != user_id
    return tuple(path for path in paths if not has_owner(path, others, session=session))


def leave_namespace(namespace: Namespace, *, viewer: Viewer, session: Session) -> None:
    """Remove the viewer's own direct membership.

    Inherited roles remain. Raise NotFoundError if the viewer is not a direct member. Raise
    InvalidError for bots and for the last owner of a group.
    """
    lock_namespace_members(namespace, session=session)
    row = session.execute(
        select(Member, User)
        .join(User, User.id == Member.user_id)
        .where(Member.user_id == viewer.user_id, is_direct_membership(namespace))
        .execution_options(populate_existing=True)
    ).first()
    if row is None:
        raise NotFoundError(f"You are not a direct member of {namespace.path}.")
    member, user = row
    _check_not_bot(user)
    check_owner_remains(namespace, member, session=session)
    session.execute(delete(Member).where(Member.id == member.id))
