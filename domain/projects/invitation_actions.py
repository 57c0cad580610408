"""Email invitations to groups and projects.

An invitation stays pending until its recipient opens the link in the email, whether or not the
email address belongs to an account. Invitations therefore do not reveal which addresses have an
account. An existing account is not added directly, since its email address might never have been
confirmed.
"""

from dataclasses import replace
from datetime import date

from sqlalchemy import ColumnElement, Select, func, select

from domain.access.actions import action, read_action
from domain.access.actor import LinkSigner, UnitOfWork
from domain.access.authorizations import has_live_access, lock_authorization
from domain.access.roles import Role
from domain.accounts.email_addresses import AccountMessageBuilder
from domain.accounts.message_limits import (
    INVITATION_LIMIT,
    LimitedMessage,
    RecipientLimitError,
    count_message,
)
from domain.accounts.users import ACTIVE, build_user_view, normalize_email
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_bulk_delete, build_session_insert
from domain.core.database.pagination import fetch_list_page
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.types.pagination import ListPage
from domain.delivery.mail.outbox import NewEmail, queue_emails
from domain.projects.access import find_role_in_namespace
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
    check_can_grant_role,
    check_expiry_date,
    is_direct_membership,
    lock_members,
    record_member_added,
    store_member,
)
from domain.projects.views import Namespace, ProjectOrGroup, Viewer, get_viewer
from models import Group, Member, Project, User
from models import Invitation as Row
from models.case_folding import fold_text

#: Purpose that is part of the signature in invitation links.
INVITATION_SEAL_PURPOSE = "invitation"
_NO_MAIL_REASON = (
    "This instance cannot send invitations, because MAIL_URL is not set. Add members by username "
    "instead."
)


@read_action("invitations.index")
def list_invitations(
    work: UnitOfWork, holder: ProjectOrGroup, query: InvitationQuery
) -> ListPage[Invitation]:
    """List the pending invitations of a project or group."""
    search = func.lower(Row.email).contains(query.query.lower(), autoescape=True)
    wanted = _select_pending_invitations(work).where(_is_for_namespace(holder.namespace), search)
    found = fetch_list_page(wanted, {"id": Row.id}, query.requested_range, session=work.session)
    return ListPage.from_page_result(found, Invitation.model_validate)


@action("invitations.create")
def send_invitations(
    work: UnitOfWork, holder: ProjectOrGroup, new: NewInvitations
) -> InvitationResult:
    """Invite people by email.

    Each address receives an email with a link.
    """
    problems = {each: _invite_address(work, holder.namespace, each, new) for each in new.email}
    rejected = {email: reason for email, reason in problems.items() if reason}
    return InvitationResult(status="error" if rejected else "success", message=rejected)


@action("invitations.change")
def change_invitation(
    work: UnitOfWork, holder: ProjectOrGroup, email: str, change: InvitationChange
) -> Invitation:
    """Change the role or the expiry date of an invitation.

    Raise NotFoundError if there is no such invitation. Raise ForbiddenError if the caller lacks the
    required role, and InvalidError for an invalid role or date.
    """
    giver = lock_members(holder.namespace, get_viewer(work), session=work.session)
    found = _get_pending_invitation(work, _is_for_address(holder.namespace, email))
    role = change.access_level or found.role
    day = change.expires_at if "expires_at" in change.given_values else found.expires_at
    check_can_grant_role(max(role, found.role), giver)
    if (role, day) == (found.role, found.expires_at):
        return found
    if day != found.expires_at:
        check_expiry_date(day, work.now.date())
    row = work.session.get_one(Row, found.id)
    row.role, row.expires_at = int(role), day
    work.session.flush()  # The following query reads the new values.
    return _record_event(
        work, EventKind.INVITATION_CHANGED, _get_pending_invitation(work, Row.id == found.id)
    )


@action("invitations.revoke")
def revoke_invitation(work: UnitOfWork, holder: ProjectOrGroup, email: str) -> Invitation:
    """Revoke an invitation.

    Raise NotFoundError if there is no such invitation. Raise ForbiddenError if the caller lacks the
    required role.
    """
    giver = lock_members(holder.namespace, get_viewer(work), session=work.session)
    found = _get_pending_invitation(work, _is_for_address(holder.namespace, email))
    check_can_grant_role(found.role, giver)
    _delete_invitations(work, Row.id == found.id)
    return _record_event(work, EventKind.INVITATION_REVOKED, found)


@read_action("invitations.accept")
def show_pending_invitation(work: UnitOfWork, invitation_id: int, email: str) -> Invitation:
    """Show the pending invitation that a link belongs to.

    Raise NotFoundError if the invitation is no longer pending. Raise ForbiddenError if the project
    is archived, or if the author of the invitation may no longer assign the role.
    """
    found = _get_pending_invitation(
        work, (Row.id == invitation_id) & (Row.email_key == fold_text(email))
    )
    _check_author_can_grant(work, found, work.now.date())
    _check_not_archived(work, found.namespace)
    return found


@read_action("invitations.accept")
def find_invited_namespace_path(
    work: UnitOfWork, email: str, group_id: int | None, project_id: int | None
) -> str | None:
    """Return the path of the group or project that an invited user has already joined.

    The link of an accepted invitation therefore still leads to the group or project. Return None
    for other users.
    """
    user = work.session.scalar(select(User).where(User.id == work.actor.id))
    if user is None or user.email_key != fold_text(email):
        return None
    holder = (
        select(Group.path).where(Group.id == group_id, Group.deleted_at.is_(None))
        if group_id is not None
        else select(Project.path).where(Project.id == project_id, Project.deleted_at.is_(None))
    )
    path = work.session.scalar(holder)
    if path is None:
        return None
    viewer = replace(get_viewer(work), is_admin=False)
    role = find_role_in_namespace(path, project_id, viewer, session=work.session)
    return None if role is None else path


@action("invitations.accept")
def accept_invitation(work: UnitOfWork, invitation_id: int, email: str) -> Invitation:
    """Accept an invitation as the user with the invited email address.

    An existing member keeps the current role. Raise ForbiddenError if the actor has another email
    address. The errors of `show_pending_invitation` are raised too.
    """
    found = show_pending_invitation(work, invitation_id, email)
    user = work.session.get_one(User, work.actor.id)
    if user.email_key != fold_text(found.invite_email):
        message = f"This invitation is for {found.invite_email}, which is not your email address."
        raise ForbiddenError(message)
    today = work.now.date()
    is_theirs = (Member.user_id == user.id) & is_direct_membership(found.namespace)
    is_live = Member.expires_at.is_(None) | (Member.expires_at > today)
    _delete_invitations(work, Row.id == found.id)
    _record_event(work, EventKind.INVITATION_ACCEPTED, found)
    if work.session.scalar(select(Member.id).where(is_theirs, is_live)) is None:
        store_member(
            found.namespace,
            build_user_view(user),
            found.role,
            expires_at=found.expires_at,
            session=work.session,
            now=work.now,
        )
        record_member_added(
            work, found.namespace, build_user_view(user), found.role, found.expires_at
        )
    return found


def _invite_address(
    work: UnitOfWork, namespace: Namespace, email: str, new_invitations: NewInvitations
) -> str:
    """Invite an email address, and return the reason if the invitation fails.

    Return an empty string on success.
    """
    if work.actor.is_admin and _try_add_member(work, namespace, email, new_invitations):
        return ""
    if not work.policy(AccountMessageBuilder).has_mail_server:
        return _NO_MAIL_REASON
    try:
        made = _store_invitation(work, namespace, email, new_invitations)
        _count_invitation_email(work, namespace, made.invite_email)
    except (ConflictError, RecipientLimitError) as error:
        return str(error)
    except InvalidError as error:
        if error.field != "email":
            raise
        return str(error)
    queue_emails(
        [_build_invitation_email(work, made)],
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
    )
    _record_event(work, EventKind.INVITATION_SENT, made)
    return ""


def _count_invitation_email(work: UnitOfWork, namespace: Namespace, address: str) -> None:
    """Count an invitation email against its limits.

    Raise TooManyAttemptsError if a limit is exceeded. If the limit of the recipient is exceeded,
    delete the invitation.
    """
    kind, number = (
        ("group", namespace.group_id)
        if namespace.group_id is not None
        else ("project", namespace.project_id)
    )
    sending = LimitedMessage(
        recipient=address,
        sender_id=None if work.actor.is_trusted else work.actor.id,
        place=f"{kind} {number}",
    )
    try:
        count_message(work, INVITATION_LIMIT, sending)
    except RecipientLimitError:
        _delete_invitations(work, _is_for_address(namespace, address))
        raise


def _try_add_member(
    work: UnitOfWork, namespace: Namespace, email: str, new_invitations: NewInvitations
) -> bool:
    """Add the account with the given email address as a member.

    Only administrators can add accounts by email address. Return False on failure.
    """
    if new_invitations.expires_at is not None:
        return False
    by, role = get_viewer(work), new_invitations.access_level
    try:
        user = add_member(namespace, email, role, viewer=by, session=work.session, now=work.now)
    except (NotFoundError, ConflictError):
        return False
    record_member_added(work, namespace, user, role)
    return True


def _store_invitation(
    work: UnitOfWork, namespace: Namespace, email: str, new_invitations: NewInvitations
) -> Invitation:
    """Store an invitation for an email address, with its role and expiry date.

    Raise InvalidError for an invalid value, ForbiddenError if the actor does not have the required
    role, and ConflictError if the address was already invited.
    """
    giver = lock_members(namespace, get_viewer(work), session=work.session)
    check_can_grant_role(new_invitations.access_level, giver)
    check_expiry_date(new_invitations.expires_at, work.now.date())
    address = normalize_email(email)
    _delete_invitations(work, _is_for_address(namespace, address) & ~_is_pending(work))
    insert = build_session_insert(Row, session=work.session).values(
        group_id=namespace.group_id,
        project_id=namespace.project_id,
        email=address,
        email_key=fold_text(address),
        invited_by=work.actor.id,
        role=int(new_invitations.access_level),
        created_at=work.now,
        expires_at=new_invitations.expires_at,
        authorization_id=lock_authorization(work),
    )
    stored = work.session.execute(insert.on_conflict_do_nothing().returning(Row.id)).first()
    if stored is None:
        raise ConflictError(f"{address} has already been invited.", field="email")
    return _get_pending_invitation(work, Row.id == stored[0])


def _build_invitation_email(work: UnitOfWork, invitation: Invitation) -> NewEmail:
    """Return the email for an invitation, with the link that accepts it."""
    by, path, head = invitation.created_by_name, invitation.path, work.policy(AccountMessageBuilder)
    sealed = work.policy(LinkSigner).sign(
        [invitation.id, invitation.invite_email, invitation.group_id, invitation.project_id],
        INVITATION_SEAL_PURPOSE,
    )
    return NewEmail(
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


def _check_author_can_grant(work: UnitOfWork, invitation: Invitation, today: date) -> None:
    """Check that the author of an invitation may still assign its role.

    Raise ForbiddenError otherwise.
    """
    author = work.session.scalar(
        select(User).join(Row, Row.invited_by == User.id).where(Row.id == invitation.id)
    )
    if author is not None and author.state == ACTIVE:
        viewer = Viewer(user_id=author.id, is_admin=author.is_admin, today=today)
        role = find_role_in_namespace(
            invitation.path, invitation.project_id, viewer, session=work.session
        )
        if role is not None and role >= max(Role.MAINTAINER, invitation.role):
            return
    raise ForbiddenError(
        "This invitation is no longer valid, because its sender can no longer assign this role. "
        f"Ask another owner or maintainer of {invitation.path} for a new invitation."
    )


def _check_not_archived(work: UnitOfWork, namespace: Namespace) -> None:
    is_archived = select(Project.id).where(
        Project.id == namespace.project_id, Project.archived_at.is_not(None)
    )
    if namespace.project_id is not None and work.session.scalar(is_archived) is not None:
        raise ForbiddenError(f"{namespace.path} is archived, so members cannot be added.")


def _is_for_namespace(namespace: Namespace) -> ColumnElement[bool]:
    if namespace.group_id is not None:
        return Row.group_id == namespace.group_id
    return Row.project_id == namespace.project_id


def _is_for_address(namespace: Namespace, email: str) -> ColumnElement[bool]:
    return _is_for_namespace(namespace) & (
        Row.email_key == fold_text(email.replace("\x00", "\ufffd"))
    )


def _is_pending(work: UnitOfWork) -> ColumnElement[bool]:
    is_young = Row.created_at > work.now - INVITATION_LIFETIME
    return is_young & has_live_access(Row.authorization_id, work.now)


def _select_pending_invitations(work: UnitOfWork) -> Select[tuple[object, ...]]:
    """Select the pending invitations, with the columns for the fields of `Invitation`."""
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


def _get_pending_invitation(work: UnitOfWork, condition: ColumnElement[bool]) -> Invitation:
    row = work.session.execute(_select_pending_invitations(work).where(condition)).first()
    if row is None:
        raise NotFoundError(
            "This invitation is no longer pending. It was accepted, revoked or replaced, has "
            "expired, or its group or project was deleted. If you have not accepted it, ask the "
            "sender for a new one."
        )
    return Invitation.model_validate(row)


def _record_event(work: UnitOfWork, kind: EventKind, invitation: Invitation) -> Invitation:
    """Record an audit event about an invitation, and return the invitation."""
    details = {"email": invitation.invite_email, "role": invitation.role.label}
    work.record_audit_event(
        kind, subject=invitation.path, event_namespace=invitation.namespace, details=details
    )
    return invitation


def _delete_invitations(work: UnitOfWork, condition: ColumnElement[bool]) -> None:
    work.session.execute(build_bulk_delete(Row).where(condition))
