"""The /-/alerts page: alerts in all of a member's projects."""

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.alerts.changes import change_alerts, parse_list_arguments
from blueprints.alerts.list_pages import AllAlertsList, ChangeableAlertsList, is_partial_request
from blueprints.alerts.receivers import build_alert_export
from domain.alerts.listing.daily_counts import count_alerts_by_day
from domain.alerts.listing.project_selection import (
    ProjectSelection,
    build_member_projects_query,
    list_project_ids,
    list_project_paths,
)
from domain.core.database.pagination import MAX_ID
from domain.paging.page_digests.alerts import find_alerts_digest
from forms.alerts import ALERT_LIST_PARAMETERS_ACROSS
from web.access.decorators import get_request_viewer, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import get_list_query
from web.pages.live_pages import render_live_page
from web.services import get_current_time

all_alerts = PageBlueprint("all_alerts", __name__, url_prefix="/-/alerts")
#: Maximum number of projects in the selection list. Other projects can be selected through the URL.
_MAX_PROJECT_CHOICES = 200


@all_alerts.get("")
@sign_in_required.with_changes(is_heavy=True, has_mark=True)
def index() -> ResponseReturnValue:
    """List the alerts of all projects in which the user can see alerts."""
    mine = build_member_projects_query(get_request_viewer(), session=db.session())
    ids = list_project_ids(mine, session=db.session())
    mark = find_alerts_digest(ids, session=db.session(), now=get_current_time())
    return render_live_page(mark, lambda: _render_list(mine))


def _render_list(mine: ProjectSelection) -> ResponseReturnValue:
    listing = AllAlertsList()
    if is_partial_request():
        return render_template("alerts/_list.html", listing=listing)
    return render_template(
        "alerts/all.html",
        listing=listing,
        watched=list_project_paths(mine, most=_MAX_PROJECT_CHOICES, session=db.session()),
        days=count_alerts_by_day(listing.projects, get_current_time().date(), session=db.session()),
    )


@all_alerts.get("/export.<any(json, csv):kind>")
@sign_in_required.with_changes(is_heavy=True)
def download(kind: str) -> ResponseReturnValue:
    """Return the filtered list of alerts in all projects as a file."""
    query = AllAlertsList(get_list_query(*ALERT_LIST_PARAMETERS_ACROSS)).query
    return build_alert_export(query.wanted, query.order, path="all-projects", kind=kind)


@all_alerts.post("/status")
@sign_in_required
def change_several() -> ResponseReturnValue:
    """Change the selected alerts, or all matching alerts, that the user may change."""
    listing = ChangeableAlertsList(parse_list_arguments())
    return change_alerts(listing, field="id", largest=MAX_ID)
