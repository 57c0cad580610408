"""/admin/applications: applications of the instance, and a list of its users'."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from blueprints.application_pages import ApplicationPages
from domain.database.list_queries import one_of, words
from domain.oauth.clients.applications import get_any
from domain.oauth.clients.directory import (
    ApplicationFilter,
    count_applications,
    page_of_applications,
)
from domain.oauth.clients.types import ApplicationView
from forms.instance_application import InstanceApplicationForm
from web.access.marks import administrator
from web.extensions import db
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.services import now

applications = Blueprint("applications", __name__, url_prefix="/applications")
_OWNERS = ("instance", "users")


def _get_any(application_id: int) -> ApplicationView:
    return get_any(application_id, session=db.session())


_PAGES = ApplicationPages(
    endpoint="admin.applications",
    form=InstanceApplicationForm,
    get=_get_any,
    is_administration=True,
)


@applications.get("")
@administrator
def index() -> ResponseReturnValue:
    """List the applications of the instance, or of its users."""
    given = list_query("of", "search", *CURSORS)
    wanted = ApplicationFilter(
        is_instance_wide=one_of(given, "of", _OWNERS, "instance") == "instance",
        search=words(given, "search"),
    )
    found = page_of_applications(wanted, asked_slice(), session=db.session(), now=now())
    return render_template(
        "admin/applications/index.html",
        page=page_links(found),
        is_instance_wide=wanted.is_instance_wide,
        counts=count_applications(session=db.session()),
        query=wanted.search,
    )


@applications.route("/new", methods=["GET", "POST"])
@administrator
def new() -> ResponseReturnValue:
    """Register an application of the instance and show its credentials."""
    return _PAGES.new()


@applications.get("/<int:application_id>")
@administrator
def show(application_id: int) -> ResponseReturnValue:
    """Show an application, with its secret right after its creation or renewal."""
    return _PAGES.show(application_id)


@applications.get("/<int:application_id>/setup")
@administrator
def setup(application_id: int) -> ResponseReturnValue:
    """Show only how far an application has come, for a page that waits for it."""
    return _PAGES.setup(application_id)


@applications.route("/<int:application_id>/edit", methods=["GET", "POST"])
@administrator
def edit(application_id: int) -> ResponseReturnValue:
    """Change an application, its owner, and whether it is trusted."""
    return _PAGES.edit(application_id)


@applications.post("/<int:application_id>/renew_secret")
@administrator
def renew_secret(application_id: int) -> ResponseReturnValue:
    """Issue a new secret and show it; the old one stays valid for the chosen time."""
    return _PAGES.renew_secret(application_id)


@applications.post("/<int:application_id>/secrets/<int:secret_id>/end", endpoint="end_secret")
@administrator
def end_old_secret(application_id: int, secret_id: int) -> ResponseReturnValue:
    """Revoke the older one of two secrets."""
    return _PAGES.end_old_secret(application_id, secret_id)


@applications.get("/<int:application_id>/delete")
@administrator
def delete(application_id: int) -> ResponseReturnValue:
    """Ask for confirmation of the removal."""
    return _PAGES.delete(application_id)


@applications.post("/<int:application_id>/delete")
@administrator
def remove(application_id: int) -> ResponseReturnValue:
    """Delete an application with all its tokens."""
    return _PAGES.remove(application_id)
