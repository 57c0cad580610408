"""The page on which an invited person accepts."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.audit.events import EventKind
from domain.errors import NotFoundError
from domain.projects import invitations as domain
from domain.projects.changes import invitation_event, joined
from domain.projects.invitations import InvitationView
from web.access.marks import get_current_user, signed_in
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.sealing.invitation_links import read_link
from web.services import now

invitations = PageBlueprint("invitations", __name__, url_prefix="/-/invitations")


@invitations.get("/<sealed>")
@signed_in
def show(sealed: str) -> ResponseReturnValue:
    """Show what an invitation offers."""
    return render_template("members/invitation.html", invitation=_opened(sealed), sealed=sealed)


@invitations.post("/<sealed>")
@signed_in
def accept(sealed: str) -> ResponseReturnValue:
    """Accept an invitation."""
    invitation = _opened(sealed)
    namespace, role = invitation.namespace, invitation.role
    user = domain.accept(invitation, get_current_user().id, session=db.session(), now=now())
    record_event(invitation_event(EventKind.INVITATION_ACCEPTED, namespace, invitation.email, role))
    if user is not None:
        record_event(joined(namespace, user, role, expires_at=invitation.expires_at))
    flash(f"You are a member of {namespace.path}.")
    return redirect(url_for("projects.show_namespace", full_path=namespace.path))


def _opened(sealed: str) -> InvitationView:
    found = read_link(sealed)
    if found is None:
        message = "This invitation has expired, or its link is incomplete."
        raise NotFoundError(message)
    return domain.get_invitation(*found, session=db.session(), now=now())
