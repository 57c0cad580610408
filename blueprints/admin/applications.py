"""The /admin/applications page: instance-wide applications and users' applications."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from blueprints.applications import ApplicationPages
from domain.core.database.pagination import get_choice, get_search_text
from domain.oauth.clients.application_lists import (
    ApplicationFilter,
    count_applications,
    fetch_application_page,
)
from domain.oauth.clients.applications import get_any_application
from domain.oauth.clients.types import ApplicationView
from forms.applications import InstanceApplicationForm
from web.access.decorators import administrator_required
from web.extensions import db
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)
from web.services import get_current_time

applications = Blueprint("applications", __name__, url_prefix="/applications")
_OWNER_KINDS = ("instance", "users")


def _get_application(application_id: int) -> ApplicationView:
    return get_any_application(application_id, session=db.session())


ApplicationPages(
    endpoint="admin.applications",
    form=InstanceApplicationForm,
    get=_get_application,
    is_administration=True,
).register_routes(applications, administrator_required)


@applications.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """List instance-wide applications or users' applications."""
    given = get_list_query("of", "search", *CURSOR_PARAMETERS)
    wanted = ApplicationFilter(
        is_instance_wide=get_choice(given, "of", _OWNER_KINDS, "instance") == "instance",
        search=get_search_text(given, "search"),
    )
    found = fetch_application_page(
        wanted, get_requested_keyset_range(), session=db.session(), now=get_current_time()
    )
    return render_template(
        "admin/applications/index.html",
        page=build_page_links(found),
        is_instance_wide=wanted.is_instance_wide,
        counts=count_applications(session=db.session()),
        query=wanted.search,
    )
