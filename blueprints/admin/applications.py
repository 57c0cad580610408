"""The page /admin/applications: applications of the instance, and a list of users' applications."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from blueprints.applications import ApplicationPages
from domain.core.database.paging import one_of, words
from domain.oauth.clients.applications import get_any
from domain.oauth.clients.directory import (
    ApplicationFilter,
    count_applications,
    page_of_applications,
)
from domain.oauth.clients.types import ApplicationView
from forms.applications import InstanceApplicationForm
from web.access.decorators import administrator
from web.extensions import db
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links
from web.services import now

applications = Blueprint("applications", __name__, url_prefix="/applications")
_OWNERS = ("instance", "users")


def _get_any(application_id: int) -> ApplicationView:
    return get_any(application_id, session=db.session())


ApplicationPages(
    endpoint="admin.applications",
    form=InstanceApplicationForm,
    get=_get_any,
    is_administration=True,
).bind(applications, administrator)


@applications.get("")
@administrator
def index() -> ResponseReturnValue:
    """List the applications of the instance or of its users."""
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
