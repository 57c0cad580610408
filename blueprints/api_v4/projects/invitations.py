"""/api/v4/{projects,groups}/:id/invitations: invitations by e-mail to become a member."""

from flask import Blueprint

from domain.audit.events import EventKind
from domain.database.paging import ListPart
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.mail.outbox import queue_messages
from domain.projects import invitations as domain
from domain.projects.changes import invitation_event, joined
from domain.projects.invitations import InvitationTerms
from domain.projects.members import add_member
from domain.projects.views import Namespace, Viewer
from domain.types.base import Found
from web.access.api_limits import Family
from web.api.operations import operation
from web.api.schemas.projects.invitations import (
    Invitation,
    InvitationBody,
    InvitationChangeBody,
    InvitationQuery,
    InvitationResult,
)
from web.extensions import db
from web.http.audit_events import record_event
from web.sealing.invitation_links import invitation_message
from web.services import now, settings

invitations = Blueprint(
    "invitations",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/invitations",
)
_NO_MAIL = (
    "This instance sends no e-mail (MAIL_URL is not set), so nobody can be invited. Add members by "
    "their user names."
)


@invitations.get("")
@operation("invitations.index", query=InvitationQuery, returns=Invitation, limit=Family.MEMBERS)
def index(namespace: Namespace, query: InvitationQuery) -> Found[Invitation]:
    """List the pending invitations."""
    part = ListPart(size=query.size, offset=query.offset)
    found = domain.list_invitations(
        namespace, part, search=query.query, session=db.session(), now=now()
    )
    return Found.of(found, Invitation.of)


@invitations.post("")
@operation("invitations.create", body=InvitationBody, returns=InvitationResult, status=201)
def create(namespace: Namespace, viewer: Viewer, body: InvitationBody) -> InvitationResult:
    """Invite e-mail addresses; each gets an e-mail with a link."""
    terms = InvitationTerms(role=body.access_level, expires_at=body.expires_at)
    problems = {each: _invite(namespace, each, terms, viewer) for each in body.email}
    refused = {email: reason for email, reason in problems.items() if reason}
    return InvitationResult(status="error" if refused else "success", message=refused)


@invitations.put("/<string:email>")
@operation("invitations.change", body=InvitationChangeBody, returns=Invitation)
def change(
    namespace: Namespace, viewer: Viewer, email: str, body: InvitationChangeBody
) -> Invitation:
    """Change the role or the expiry date of an invitation."""
    session, moment = db.session(), now()
    found = domain.find_invitation(namespace, email, session=session, now=moment)
    has_day = "expires_at" in body.model_fields_set
    terms = InvitationTerms(
        role=body.access_level or found.role,
        expires_at=body.expires_at if has_day else found.expires_at,
    )
    after = domain.change_invitation(
        namespace, email, terms, by=viewer, session=session, now=moment
    )
    if after != found:
        _record(EventKind.INVITATION_CHANGED, after)
    return Invitation.of(after)


@invitations.delete("/<string:email>")
@operation("invitations.revoke")
def revoke(namespace: Namespace, viewer: Viewer, email: str) -> None:
    """Revoke an invitation."""
    found = domain.revoke_invitation(namespace, email, by=viewer, session=db.session(), now=now())
    _record(EventKind.INVITATION_REVOKED, found)


def _record(kind: EventKind, found: domain.InvitationView) -> None:
    record_event(invitation_event(kind, found.namespace, found.email, found.role))


def _invite(namespace: Namespace, email: str, terms: InvitationTerms, by: Viewer) -> str:
    """Invite an address; return why it was not, or an empty text."""
    session, moment = db.session(), now()
    if by.is_admin and _was_added(namespace, email, terms, by):
        return ""
    if not settings().mail_url:
        return _NO_MAIL
    try:
        made = domain.invite(namespace, email, terms, by=by, session=session, now=moment)
    except ConflictError as error:
        return str(error)
    except InvalidError as error:
        if error.field != "email":
            raise
        return str(error)
    queue_messages([invitation_message(made)], session=session, now=moment)
    _record(EventKind.INVITATION_SENT, made)
    return ""


def _was_added(namespace: Namespace, email: str, terms: InvitationTerms, by: Viewer) -> bool:
    """Add the account with an address, which administrators see anyway; False if none has it."""
    if terms.expires_at is not None:
        return False
    try:
        user = add_member(namespace, email, terms.role, by=by, session=db.session(), now=now())
    except (NotFoundError, ConflictError):
        return False
    record_event(joined(namespace, user, terms.role))
    return True
