"""The user settings page 'authorized applications': who acts for me, and how to end it."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.audit.events import Event, EventKind
from domain.oauth.consent.authorized_applications import (
    list_authorized,
    revoke_authorized,
    revoke_without_application,
)
from web.extensions import db
from web.http.access import signed_in, visitor
from web.http.audit import note
from web.services import now

authorized_applications = Blueprint(
    "authorized_applications", __name__, url_prefix="/-/user_settings/authorized_applications"
)


@authorized_applications.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the applications, and passwords without one, that hold live tokens of the visitor."""
    found = list_authorized(visitor().id, session=db.session(), now=now())
    return render_template("authorized_applications/index.html", applications=found)


@authorized_applications.post("/<int:application_id>/revoke")
@signed_in
def revoke(application_id: int) -> ResponseReturnValue:
    """End everything that one application may do for the visitor."""
    name = revoke_authorized(application_id, visitor().id, session=db.session(), now=now())
    note(Event(kind=EventKind.CONSENT_REVOKED, user_id=visitor().id, subject=name))
    flash(f"{name} has no access to your account any more.")
    return redirect(url_for("authorized_applications.index"))


@authorized_applications.post("/without_application/revoke")
@signed_in
def revoke_passwords() -> ResponseReturnValue:
    """End everything that the visitor's password opened without an application."""
    revoke_without_application(visitor().id, session=db.session(), now=now())
    note(Event(kind=EventKind.TOKEN_REVOKED, user_id=visitor().id, subject="password grant"))
    flash("What signed in with your password alone has no access any more.")
    return redirect(url_for("authorized_applications.index"))
