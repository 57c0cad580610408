"""The user settings page 'applications': a user's own applications."""

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.application_pages import ApplicationPages
from domain.oauth.clients.applications import get_own
from domain.oauth.clients.types import ApplicationView
from domain.oauth.clients.views import list_own
from forms.application import ApplicationForm
from web.access.marks import get_current_user, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now

applications = PageBlueprint("applications", __name__, url_prefix="/-/user_settings/applications")


def _get_own(application_id: int) -> ApplicationView:
    return get_own(application_id, owner_id=get_current_user().id, session=db.session())


_PAGES = ApplicationPages(
    endpoint="applications", form=ApplicationForm, get=_get_own, is_administration=False
)


@applications.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the user's applications."""
    mine = list_own(get_current_user().id, session=db.session(), now=now())
    return render_template("applications/index.html", applications=mine)


@applications.route("/new", methods=["GET", "POST"])
@signed_in
def new() -> ResponseReturnValue:
    """Register an application of the user's own and show its credentials."""
    return _PAGES.new()


@applications.get("/<int:application_id>")
@signed_in
def show(application_id: int) -> ResponseReturnValue:
    """Show an application, with its secret right after its creation or renewal."""
    return _PAGES.show(application_id)


@applications.get("/<int:application_id>/setup")
@signed_in
def setup(application_id: int) -> ResponseReturnValue:
    """Show only how far an application has come, for a page that waits for it."""
    return _PAGES.setup(application_id)


@applications.route("/<int:application_id>/edit", methods=["GET", "POST"])
@signed_in
def edit(application_id: int) -> ResponseReturnValue:
    """Change an application."""
    return _PAGES.edit(application_id)


@applications.post("/<int:application_id>/renew_secret")
@signed_in
def renew_secret(application_id: int) -> ResponseReturnValue:
    """Issue a new secret and show it; the old one stays valid for the chosen time."""
    return _PAGES.renew_secret(application_id)


@applications.post("/<int:application_id>/secrets/<int:secret_id>/end", endpoint="end_secret")
@signed_in
def end_old_secret(application_id: int, secret_id: int) -> ResponseReturnValue:
    """Revoke the older one of two secrets."""
    return _PAGES.end_old_secret(application_id, secret_id)


@applications.get("/<int:application_id>/delete")
@signed_in
def delete(application_id: int) -> ResponseReturnValue:
    """Ask for confirmation of the removal."""
    return _PAGES.delete(application_id)


@applications.post("/<int:application_id>/delete")
@signed_in
def remove(application_id: int) -> ResponseReturnValue:
    """Delete an application with all its tokens."""
    return _PAGES.remove(application_id)
