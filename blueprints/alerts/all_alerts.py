"""The page /-/alerts: the alerts of all projects of a member."""

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.alerts.changes import change_alerts, list_arguments
from blueprints.alerts.list_pages import AllAlertsList, ChangeableAlertsList, wants_part
from blueprints.alerts.receiving import alert_file
from domain.alerts.listing.charts import last_days
from domain.alerts.listing.watched_projects import paths_of, projects_of_member
from domain.core.database.paging import LARGEST_ID
from forms.alerts import PARAMETERS_ACROSS
from web.access.decorators import signed_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import list_query
from web.services import now

all_alerts = PageBlueprint("all_alerts", __name__, url_prefix="/-/alerts")
#: Maximum number of projects in the choice list. Other projects can be given in the URL.
_MOST_CHOICES = 200


@all_alerts.get("")
@signed_in.but(is_heavy=True)
def index() -> ResponseReturnValue:
    """List the alerts of all projects in which the user can see alerts."""
    listing = AllAlertsList()
    if wants_part():
        return render_template("alerts/_list.html", listing=listing)
    mine = projects_of_member(viewer(), session=db.session())
    return render_template(
        "alerts/all.html",
        listing=listing,
        watched=paths_of(mine, most=_MOST_CHOICES, session=db.session()),
        days=last_days(listing.projects, now().date(), session=db.session()),
    )


@all_alerts.get("/export.<any(json, csv):kind>")
@signed_in.but(is_heavy=True)
def download(kind: str) -> ResponseReturnValue:
    """Return the filtered list of all projects as a file."""
    query = AllAlertsList(list_query(*PARAMETERS_ACROSS)).query
    return alert_file(query.wanted, query.order, path="all-projects", kind=kind)


@all_alerts.post("/status")
@signed_in
def change_several() -> ResponseReturnValue:
    """Change selected or all matching alerts in the projects where the user may change them."""
    listing = ChangeableAlertsList(list_arguments())
    return change_alerts(listing, field="id", largest=LARGEST_ID)
