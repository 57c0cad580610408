"""Invitations by e-mail to become a member, until somebody with the address accepts.

Nobody is told which addresses belong to an account, and some of those were never confirmed. So an
invitation waits for the link in its message, whether or not the address belongs to an account.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import ColumnElement, Row, Select, delete, func, select
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.accounts.users import ACTIVE, UserView, checked_email, view_of
from domain.database.paging import Listed, ListPart, fetch_part
from domain.database.upsert import insert_into
from domain.errors import ConflictError, ForbiddenError, NotFoundError
from domain.projects.access import role_in_namespace
from domain.projects.members import check_day, check_gift, is_here, lock_members, store_member
from domain.projects.views import Namespace, Viewer
from models import Group, Invitation, Member, Project, User
from models.folding import fold

#: An invitation that nobody has accepted ends after this time.
INVITATION_LIFETIME = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class InvitationTerms:
    """What is offered."""

    role: Role
    #: Of the membership: the first day on which the role is not given any more.
    expires_at: date | None = None


@dataclass(frozen=True, kw_only=True)
class InvitationView:
    """A pending invitation."""

    id: int
    namespace: Namespace
    email: str
    role: Role
    expires_at: date | None
    created_at: datetime
    invited_by: str


def invite(
    namespace: Namespace,
    email: str,
    terms: InvitationTerms,
    *,
    by: Viewer,
    session: Session,
    now: datetime,
) -> InvitationView:
    """Store an invitation; raises InvalidError, ForbiddenError, or ConflictError for a second."""
    giver = lock_members(namespace, by, session=session)
    check_gift(terms.role, giver)
    check_day(terms.expires_at, now.date())
    address = checked_email(email)
    _delete(_is_to(namespace, address) & ~_is_pending(now), session)
    insert = insert_into(Invitation, session=session).values(
        group_id=namespace.group_id,
        project_id=namespace.project_id,
        email=address,
        email_key=fold(address),
        invited_by=by.user_id,
        role=int(terms.role),
        created_at=now,
        expires_at=terms.expires_at,
    )
    stored = session.execute(insert.on_conflict_do_nothing().returning(Invitation.id)).first()
    if stored is None:
        message = f"{address} has already been invited."
        raise ConflictError(message, field="email")
    return _get(Invitation.id == stored[0], session=session, now=now)


def list_invitations(
    namespace: Namespace, part: ListPart, *, search: str = "", session: Session, now: datetime
) -> Listed[InvitationView]:
    """Return a part of the pending invitations of a group or project, the oldest first.

    `search` is a part of the address.
    """
    wanted = _pending(now).where(
        _is_of(namespace), func.lower(Invitation.email).contains(search.lower(), autoescape=True)
    )
    found = fetch_part(wanted, {"id": Invitation.id}, part, session=session)
    return Listed(items=tuple(map(_view, found.items)), total=found.total)


def change_invitation(
    namespace: Namespace,
    email: str,
    terms: InvitationTerms,
    *,
    by: Viewer,
    session: Session,
    now: datetime,
) -> InvitationView:
    """Change what is offered; raises NotFoundError, ForbiddenError or InvalidError."""
    giver = lock_members(namespace, by, session=session)
    found = _get(_is_to(namespace, email), session=session, now=now)
    check_gift(max(terms.role, found.role), giver)
    if terms.expires_at != found.expires_at:
        check_day(terms.expires_at, now.date())
    row = session.get_one(Invitation, found.id)
    row.role, row.expires_at = int(terms.role), terms.expires_at
    session.flush()  # the new values are read
    return _get(Invitation.id == found.id, session=session, now=now)


def find_invitation(
    namespace: Namespace, email: str, *, session: Session, now: datetime
) -> InvitationView:
    """Return the pending invitation of an address, or raise NotFoundError."""
    return _get(_is_to(namespace, email), session=session, now=now)


def revoke_invitation(
    namespace: Namespace, email: str, *, by: Viewer, session: Session, now: datetime
) -> InvitationView:
    """Revoke an invitation; raises NotFoundError or ForbiddenError."""
    giver = lock_members(namespace, by, session=session)
    found = _get(_is_to(namespace, email), session=session, now=now)
    check_gift(found.role, giver)
    _delete(Invitation.id == found.id, session)
    return found


def get_invitation(
    invitation_id: int, email: str, *, session: Session, now: datetime
) -> InvitationView:
    """Return the invitation of a link, or raise NotFoundError if it is not pending any more."""
    same = (Invitation.id == invitation_id) & (Invitation.email_key == fold(email))
    return _get(same, session=session, now=now)


def accept(
    invitation: InvitationView, user_id: int, *, session: Session, now: datetime
) -> UserView | None:
    """Make the user with the invited address a member; return None for one who is a member already.

    Raises ForbiddenError for another address, and for an invitation that its author could not send
    any more.
    """
    user = session.get_one(User, user_id)
    if user.email_key != fold(invitation.email):
        message = f"This invitation is for {invitation.email}, which is not your e-mail address."
        raise ForbiddenError(message)
    _check_author(invitation, session=session, today=now.date())
    namespace = invitation.namespace
    _check_not_archived(namespace, session=session)
    is_theirs = (Member.user_id == user_id) & is_here(namespace)
    is_live = Member.expires_at.is_(None) | (Member.expires_at > now.date())
    _delete(Invitation.id == invitation.id, session)
    if session.scalar(select(Member.id).where(is_theirs, is_live)) is not None:
        return None
    store_member(
        namespace,
        view_of(user),
        invitation.role,
        expires_at=invitation.expires_at,
        session=session,
        now=now,
    )
    return view_of(user)


def _check_author(invitation: InvitationView, *, session: Session, today: date) -> None:
    """Raise ForbiddenError unless the author could give the role today."""
    author = session.scalar(
        select(User)
        .join(Invitation, Invitation.invited_by == User.id)
        .where(Invitation.id == invitation.id)
    )
    if author is not None and author.state == ACTIVE:
        viewer = Viewer(user_id=author.id, is_admin=author.is_admin, today=today)
        namespace = invitation.namespace
        role = role_in_namespace(namespace.path, namespace.project_id, viewer, session=session)
        if role is not None and role >= max(Role.MAINTAINER, invitation.role):
            return
    message = "This invitation is no longer valid: its sender can no longer give that role."
    raise ForbiddenError(message)


def _check_not_archived(namespace: Namespace, *, session: Session) -> None:
    is_archived = select(Project.id).where(
        Project.id == namespace.project_id, Project.archived_at.is_not(None)
    )
    if namespace.project_id is not None and session.scalar(is_archived) is not None:
        message = f"{namespace.path} is archived: members cannot be added."
        raise ForbiddenError(message)


def _is_of(namespace: Namespace) -> ColumnElement[bool]:
    if namespace.group_id is not None:
        return Invitation.group_id == namespace.group_id
    return Invitation.project_id == namespace.project_id


def _is_to(namespace: Namespace, email: str) -> ColumnElement[bool]:
    return _is_of(namespace) & (Invitation.email_key == fold(email.replace("\x00", "\ufffd")))


def _is_pending(now: datetime) -> ColumnElement[bool]:
    return Invitation.created_at > now - INVITATION_LIFETIME


def _pending(now: datetime) -> Select[Invitation, str, str]:
    path = func.coalesce(Group.path, Project.path).label("path")
    return (
        select(Invitation, User.username, path)
        .join(User, User.id == Invitation.invited_by)
        .outerjoin(Group, Group.id == Invitation.group_id)
        .outerjoin(Project, Project.id == Invitation.project_id)
        .where(_is_pending(now))
    )


def _get(condition: ColumnElement[bool], *, session: Session, now: datetime) -> InvitationView:
    row = session.execute(
        _pending(now).where(condition).execution_options(populate_existing=True)
    ).first()
    if row is None:
        message = "This invitation is no longer valid."
        raise NotFoundError(message)
    return _view(row)


def _view(row: Row[Invitation, str, str]) -> InvitationView:
    found, invited_by, path = row
    return InvitationView(
        id=found.id,
        namespace=Namespace(group_id=found.group_id, project_id=found.project_id, path=path),
        email=found.email,
        role=Role(found.role),
        expires_at=found.expires_at,
        created_at=found.created_at,
        invited_by=invited_by,
    )


def _delete(condition: ColumnElement[bool], session: Session) -> None:
    session.execute(
        delete(Invitation).where(condition).execution_options(synchronize_session=False)
    )
