"""Invitations by email to become a member of a group or project.

Invitations neither reveal who has an account nor add people by address, because some addresses were
never confirmed. An invitation stays pending until its recipient opens the link in the email,
whether or not the address belongs to an account.
"""

from datetime import date

from sqlalchemy import ColumnElement, Select, func, select

from domain.access.actions import action, question
from domain.access.actor import Seal, Work
from domain.access.authorizations import has_not_ended, held_authorization
from domain.access.roles import Role
from domain.accounts.email_addresses import Letterhead
from domain.accounts.message_limits import (
    INVITATIONS,
    RecipientLimitError,
    Sending,
    claim_sending,
)
from domain.accounts.users import ACTIVE, checked_email, view_of
from domain.audit.events import EventKind
from domain.core.database.paging import fetch_part
from domain.core.database.rows import delete_rows, insert_into
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.types.base import Found
from domain.delivery.mail.outbox import NewMessage, queue_messages
from domain.projects.access import role_in_namespace
from domain.projects.member_types import (
    INVITATION_LIFETIME,
    Invitation,
    InvitationChange,
    InvitationQuery,
    InvitationResult,
    NewInvitations,
)
from domain.projects.members import (
    add_member,
    check_day,
    check_gift,
    is_here,
    lock_members,
    record_joined,
    store_member,
)
from domain.projects.views import Holder, Namespace, Viewer, viewer_of
from models import Group, Member, Project, User
from models import Invitation as Row
from models.folding import fold

#: Purpose for which the links of invitations are signed.
SEALED_FOR = "invitation"
_NO_MAIL = (
    "This instance cannot send invitations, because MAIL_URL is not set. Add members by user name "
    "instead."
)


@question("invitations.index")
def list_invitations(work: Work, holder: Holder, query: InvitationQuery) -> Found[Invitation]:
    """List the pending invitations of a project or group."""
    search = func.lower(Row.email).contains(query.query.lower(), autoescape=True)
    wanted = _pending(work).where(_is_of(holder.namespace), search)
    found = fetch_part(wanted, {"id": Row.id}, query.part, session=work.session)
    return Found.of(found, Invitation.model_validate)


@action("invitations.create")
def invite(work: Work, holder: Holder, new: NewInvitations) -> InvitationResult:
    """Invite people by email.

    Each address gets an email with a link.
    """
    problems = {each: _invite(work, holder.namespace, each, new) for each in new.email}
    refused = {email: reason for email, reason in problems.items() if reason}
    return InvitationResult(status="error" if refused else "success", message=refused)


@action("invitations.change")
def change_invitation(
    work: Work, holder: Holder, email: str, change: InvitationChange
) -> Invitation:
    """Change the role or the expiry date of an invitation.

    Raise NotFoundError if there is no such invitation. Raise ForbiddenError without the required
    role, and InvalidError for an invalid role or date.
    """
    giver = lock_members(holder.namespace, viewer_of(work), session=work.session)
    found = _get(work, _is_to(holder.namespace, email))
    role = change.access_level or found.role
    day = change.expires_at if "expires_at" in change.given else found.expires_at
    check_gift(max(role, found.role), giver)
    if (role, day) == (found.role, found.expires_at):
        return found
    if day != found.expires_at:
        check_day(day, work.now.date())
    row = work.session.get_one(Row, found.id)
    row.role, row.expires_at = int(role), day
    work.session.flush()  # The new values are read below.
    return _recorded(work, EventKind.INVITATION_CHANGED, _get(work, Row.id == found.id))


@action("invitations.revoke")
def revoke_invitation(work: Work, holder: Holder, email: str) -> Invitation:
    """Revoke an invitation.

    Raise NotFoundError if there is no such invitation. Raise ForbiddenError without the required
    role.
    """
    giver = lock_members(holder.namespace, viewer_of(work), session=work.session)
    found = _get(work, _is_to(holder.namespace, email))
    check_gift(found.role, giver)
    _delete(work, Row.id == found.id)
    return _recorded(work, EventKind.INVITATION_REVOKED, found)


@question("invitations.accept")
def show_offer(work: Work, invitation_id: int, email: str) -> Invitation:
    """Show the pending invitation of a link.

    Raise NotFoundError if it is no longer pending. Raise ForbiddenError for an archived project, or
    if its author may no longer send it.
    """
    found = _get(work, (Row.id == invitation_id) & (Row.email_key == fold(email)))
    _check_author(work, found, work.now.date())
    _check_not_archived(work, found.namespace)
    return found


@action("invitations.accept")
def accept(work: Work, invitation_id: int, email: str) -> Invitation:
    """Accept an invitation as the user with the invited address.

    An existing member keeps the current role. Raise the errors of `show_offer`, and ForbiddenError
    for another address.
    """
    found = show_offer(work, invitation_id, email)
    user = work.session.get_one(User, work.actor.id)
    if user.email_key != fold(found.invite_email):
        message = f"This invitation is for {found.invite_email}, which is not your email address."
        raise ForbiddenError(message)
    today = work.now.date()
    is_theirs = (Member.user_id == user.id) & is_here(found.namespace)
    is_live = Member.expires_at.is_(None) | (Member.expires_at > today)
    _delete(work, Row.id == found.id)
    _recorded(work, EventKind.INVITATION_ACCEPTED, found)
    if work.session.scalar(select(Member.id).where(is_theirs, is_live)) is None:
        store_member(
            found.namespace,
            view_of(user),
            found.role,
            expires_at=found.expires_at,
            session=work.session,
            now=work.now,
        )
        record_joined(work, found.namespace, view_of(user), found.role, found.expires_at)
    return found


def _invite(work: Work, namespace: Namespace, email: str, new: NewInvitations) -> str:
    """Invite an address; return the reason if it was not invited, or an empty string."""
    if work.actor.is_admin and _was_added(work, namespace, email, new):
        return ""
    if not work.policy(Letterhead).has_mail_server:
        return _NO_MAIL
    try:
        made = _store(work, namespace, email, new)
        _claim_message(work, namespace, made.invite_email)
    except (ConflictError, RecipientLimitError) as error:
        return str(error)
    except InvalidError as error:
        if error.field != "email":
            raise
        return str(error)
    queue_messages(
        [_message(work, made)],
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
    )
    _recorded(work, EventKind.INVITATION_SENT, made)
    return ""


def _claim_message(work: Work, namespace: Namespace, address: str) -> None:
    """Count an invitation email against its limits.

    Raise TooManyAttemptsError above a limit. If it is the recipient's limit, delete the invitation.
    """
    kind, number = (
        ("group", namespace.group_id)
        if namespace.group_id is not None
        else ("project", namespace.project_id)
    )
    sending = Sending(
        recipient=address,
        sender_id=None if work.actor.is_trusted else work.actor.id,
        place=f"{kind} {number}",
    )
    try:
        claim_sending(
            INVITATIONS,
            sending,
            session=work.session,
            keyring=work.policy(Keyring),
            now=work.now,
        )
    except RecipientLimitError:
        _delete(work, _is_to(namespace, address))
        raise


def _was_added(work: Work, namespace: Namespace, email: str, new: NewInvitations) -> bool:
    """Add the account with this address for an administrator; return False if there is none."""
    if new.expires_at is not None:
        return False
    by, role = viewer_of(work), new.access_level
    try:
        user = add_member(namespace, email, role, by=by, session=work.session, now=work.now)
    except (NotFoundError, ConflictError):
        return False
    record_joined(work, namespace, user, role)
    return True


def _store(work: Work, namespace: Namespace, email: str, new: NewInvitations) -> Invitation:
    """Store an invitation.

    Raise InvalidError, ForbiddenError, or ConflictError if the address was already invited.
    """
    giver = lock_members(namespace, viewer_of(work), session=work.session)
    check_gift(new.access_level, giver)
    check_day(new.expires_at, work.now.date())
    address = checked_email(email)
    _delete(work, _is_to(namespace, address) & ~_is_pending(work))
    insert = insert_into(Row, session=work.session).values(
        group_id=namespace.group_id,
        project_id=namespace.project_id,
        email=address,
        email_key=fold(address),
        invited_by=work.actor.id,
        role=int(new.access_level),
        created_at=work.now,
        expires_at=new.expires_at,
        authorization_id=held_authorization(work),
    )
    stored = work.session.execute(insert.on_conflict_do_nothing().returning(Row.id)).first()
    if stored is None:
        raise ConflictError(f"{address} has already been invited.", field="email")
    return _get(work, Row.id == stored[0])


def _message(work: Work, invitation: Invitation) -> NewMessage:
    """Return the email with the link that accepts an invitation."""
    by, path, head = invitation.created_by_name, invitation.path, work.policy(Letterhead)
    sealed = work.policy(Seal).sign([invitation.id, invitation.invite_email], SEALED_FOR)
    return NewMessage(
        key=f"invitation {invitation.id} of {invitation.created_at.isoformat()}",
        recipient=invitation.invite_email,
        subject=f"{by} invited you to {path}",
        text=(
            f"Hello,\n\n{by} invited you to join {path} with the {invitation.role.label} role.\n\n"
            f"To accept, open this link within {INVITATION_LIFETIME.days} days and sign in with "
            "this email address. If you do not have an account, the page shows how to get one:\n"
            f"{head.base_url}/-/invitations/{sealed}\n\n"
            "If you do not want to join, ignore this message.\n\n"
            f"-- \n{head.instance_name}, {head.base_url}\n"
        ),
    )


def _check_author(work: Work, invitation: Invitation, today: date) -> None:
    """Check that the author could still give the role today.

    Raise ForbiddenError if not.
    """
    author = work.session.scalar(
        select(User).join(Row, Row.invited_by == User.id).where(Row.id == invitation.id)
    )
    if author is not None and author.state == ACTIVE:
        viewer = Viewer(user_id=author.id, is_admin=author.is_admin, today=today)
        role = role_in_namespace(
            invitation.path, invitation.project_id, viewer, session=work.session
        )
        if role is not None and role >= max(Role.MAINTAINER, invitation.role):
            return
    raise ForbiddenError(
        "This invitation is no longer valid, because its sender can no longer assign this role. "
        f"Ask another owner or maintainer of {invitation.path} for a new invitation."
    )


def _check_not_archived(work: Work, namespace: Namespace) -> None:
    is_archived = select(Project.id).where(
        Project.id == namespace.project_id, Project.archived_at.is_not(None)
    )
    if namespace.project_id is not None and work.session.scalar(is_archived) is not None:
        raise ForbiddenError(f"{namespace.path} is archived, so members cannot be added.")


def _is_of(namespace: Namespace) -> ColumnElement[bool]:
    if namespace.group_id is not None:
        return Row.group_id == namespace.group_id
    return Row.project_id == namespace.project_id


def _is_to(namespace: Namespace, email: str) -> ColumnElement[bool]:
    return _is_of(namespace) & (Row.email_key == fold(email.replace("\x00", "\ufffd")))


def _is_pending(work: Work) -> ColumnElement[bool]:
    is_young = Row.created_at > work.now - INVITATION_LIFETIME
    return is_young & has_not_ended(Row.authorization_id, work.now)


def _pending(work: Work) -> Select[tuple[object, ...]]:
    """Select the pending invitations with the fields of `Invitation`."""
    return (
        select(
            *Row.__table__.columns,
            Row.email.label("invite_email"),
            Row.role.label("access_level"),
            User.username.label("created_by_name"),
            func.coalesce(Group.path, Project.path).label("path"),
        )
        .join(User, User.id == Row.invited_by)
        .outerjoin(Group, Group.id == Row.group_id)
        .outerjoin(Project, Project.id == Row.project_id)
        .where(_is_pending(work), Group.deleted_at.is_(None), Project.deleted_at.is_(None))
    )


def _get(work: Work, condition: ColumnElement[bool]) -> Invitation:
    row = work.session.execute(_pending(work).where(condition)).first()
    if row is None:
        raise NotFoundError(
            "This invitation is no longer pending. It was accepted, revoked or replaced, has "
            "expired, or its group or project was deleted. If you have not accepted it, ask the "
            "sender for a new one."
        )
    return Invitation.model_validate(row)


def _recorded(work: Work, kind: EventKind, invitation: Invitation) -> Invitation:
    """Record an event of an invitation in the audit log, and return the invitation."""
    details = {"email": invitation.invite_email, "role": invitation.role.label}
    work.record(kind, subject=invitation.path, place=invitation.namespace, details=details)
    return invitation


def _delete(work: Work, condition: ColumnElement[bool]) -> None:
    work.session.execute(delete_rows(Row).where(condition))
