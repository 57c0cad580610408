"""/-/alerts: the alerts of all projects of a member together."""

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.alerts.bulk_changes import change_alerts, list_arguments
from blueprints.alerts.list_pages import AllAlertsList, ChangeableAlertsList, wants_part
from domain.alerts.listing.watched_projects import paths_of, projects_of_member
from domain.database.paging import LARGEST_ID
from web.access.marks import signed_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint

all_alerts = PageBlueprint("all_alerts", __name__, url_prefix="/-/alerts")
#: The most projects in a list of choices; others can be given in the address.
_MOST_CHOICES = 200


@all_alerts.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the alerts of all projects in which the user may see them."""
    listing = AllAlertsList()
    if wants_part():
        return render_template("alerts/_list.html", listing=listing)
    mine = projects_of_member(viewer(), session=db.session())
    watched = paths_of(mine, most=_MOST_CHOICES, session=db.session())
    return render_template("alerts/all.html", listing=listing, watched=watched)


@all_alerts.post("/status")
@signed_in
def change_several() -> ResponseReturnValue:
    """Change selected alerts, or all that match, in the projects where the user may do so."""
    listing = ChangeableAlertsList(list_arguments())
    return change_alerts(listing, field="id", largest=LARGEST_ID)
