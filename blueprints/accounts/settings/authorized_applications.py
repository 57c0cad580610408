"""The user settings page that lists authorized applications and revokes their access."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.oauth.consent.authorized_applications import (
    list_authorized_applications,
    revoke_own_application,
    revoke_own_password_tokens,
)
from web.access.decorators import get_current_user, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.services import get_current_time

authorized_applications = PageBlueprint(
    "authorized_applications", __name__, url_prefix="/-/user_settings/authorized_applications"
)


@authorized_applications.get("")
@sign_in_required
def index() -> ResponseReturnValue:
    """List authorized applications, and password grants without an application."""
    found = list_authorized_applications(
        get_current_user().id, session=db.session(), now=get_current_time()
    )
    return render_template("authorized_applications/index.html", applications=found)


@authorized_applications.post("/<int:application_id>/revoke")
@sign_in_required
def revoke(application_id: int) -> ResponseReturnValue:
    """Revoke an application's access to the user's account."""
    name = revoke_own_application(get_unit_of_work(), application_id)
    flash(f"{name} no longer has access to your account.")
    return redirect(url_for("authorized_applications.index"))


@authorized_applications.post("/without_application/revoke")
@sign_in_required
def revoke_passwords() -> ResponseReturnValue:
    """Revoke all tokens that were issued by password grants without an application."""
    revoke_own_password_tokens(get_unit_of_work())
    flash("Tokens from password sign-ins revoked.")
    return redirect(url_for("authorized_applications.index"))
