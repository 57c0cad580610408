"""/-/alerts: the alerts of all projects of a member together."""

from dataclasses import replace

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.alerts.list_pages import POSITION, AllAlertsList, wants_part
from domain.alerts.listing.watched_projects import paths_of, projects_of_member
from forms.alert_query import PARAMETERS_ACROSS, AlertQuery, read_query_across
from web.access.marks import signed_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import CURSORS, list_query

all_alerts = PageBlueprint("all_alerts", __name__, url_prefix="/-/alerts")
#: The most projects in a list of choices; others can be given in the address.
_MOST_CHOICES = 200


@all_alerts.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the alerts of all projects in which the user may see them."""
    given = list_query(*PARAMETERS_ACROSS, *CURSORS, POSITION)
    listing = AllAlertsList(given, _within_mine(read_query_across(given)))
    if wants_part():
        return render_template("alerts/_list.html", listing=listing)
    mine = projects_of_member(viewer(), session=db.session())
    watched = paths_of(mine, most=_MOST_CHOICES, session=db.session())
    return render_template("alerts/all.html", listing=listing, watched=watched)


def _within_mine(query: AlertQuery) -> AlertQuery:
    """Return the query of the projects in which the user may see alerts, or of the one asked."""
    projects = projects_of_member(viewer(), session=db.session(), path=query.project)
    return replace(query, wanted=replace(query.wanted, projects=projects))
