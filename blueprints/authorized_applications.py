"""The user settings page 'authorized applications': who acts for me, and how to end it."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.oauth.authorized import list_authorized, revoke_authorized
from web.access import signed_in, visitor
from web.extensions import db
from web.services import now

authorized_applications = Blueprint(
    "authorized_applications", __name__, url_prefix="/-/user_settings/authorized_applications"
)


@authorized_applications.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the applications that hold live tokens of the visitor."""
    found = list_authorized(visitor().id, session=db.session(), now=now())
    return render_template("authorized_applications/index.html", applications=found)


@authorized_applications.post("/<int:application_id>/revoke")
@signed_in
def revoke(application_id: int) -> ResponseReturnValue:
    """End everything that one application may do for the visitor."""
    name = revoke_authorized(application_id, visitor().id, session=db.session(), now=now())
    flash(f"{name} has no access to your account any more.")
    return redirect(url_for("authorized_applications.index"))
