"""Pages for a project's alerts: the list, its export, and a single alert."""

from typing import Any

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.alerts.list_pages import ProjectAlertList, wants_part
from blueprints.alerts.receiving import alert_file, payload_file
from domain.alerts.change_feed import Follower, find_backlog
from domain.alerts.environments import names_of, reference_to
from domain.alerts.handling.activity import former_alerts
from domain.alerts.handling.alert_detail import get_alert, get_payload
from domain.alerts.handling.assignments import candidates
from domain.alerts.integrations.integrations import list_integrations
from domain.alerts.listing import charts, queries
from domain.alerts.listing.queries import LARGEST_IID, services_of
from domain.alerts.listing.status_notes import gave_status
from domain.incidents.actions import list_of_alert
from domain.incidents.timelines.actions import list_alert_timeline
from domain.paging.escalations.explanation import explain, page_reasons
from domain.paging.escalations.pending import find_pending
from domain.paging.silences.muting import muted_rows
from domain.projects.views import ProjectView
from forms.alerts import PARAMETERS, read_query
from web.access.decorators import get_current_user, permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.list_query import list_query
from web.pages.timelines import TIMELINE, asked_timeline, shown_timeline
from web.services import now, reading

alerts = PageBlueprint("alerts", __name__, url_prefix="/<names:project_path>/-/alerts")
#: Part of a URL for an alert. The converter rejects numbers that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"
#: Maximum number of names in a choice list. Other names can be searched for.
_MOST_CHOICES = 200


@alerts.get("")
@permitted("alerts.index").but(is_heavy=True)
def index(project: ProjectView) -> ResponseReturnValue:
    """List alerts; the page's script reloads only the list."""
    listing = ProjectAlertList(project)
    listed = {"project": project, "listing": listing, "most_sorted": queries.NEWEST_SORTED}
    if wants_part():
        return render_template("alerts/_list.html", **listed)
    return render_template("alerts/index.html", **listed, **_around(project))


def _around(project: ProjectView) -> dict[str, Any]:
    """Return the template variables of the page around the list."""
    session = db.session()
    return {
        "days": charts.last_days(project.id, now().date(), session=session),
        "environments": names_of(project.id, most=_MOST_CHOICES, session=session),
        "services": services_of(project.id, most=_MOST_CHOICES, session=session),
        "people": _people(project),
        "integrations": list_integrations(work(), project),
    }


def _people(project: ProjectView) -> tuple[str, ...]:
    """Return the user names in the choice list; the API can assign alerts to others."""
    me, today = get_current_user().username, now().date()
    return candidates(project, me=me, most=_MOST_CHOICES, session=db.session(), today=today)


@alerts.get("/export.<any(json, csv):kind>")
@permitted("alerts.download").but(is_heavy=True)
def download(project: ProjectView, kind: str) -> ResponseReturnValue:
    """Return the filtered list as a file."""
    query = read_query(list_query(*PARAMETERS), project_id=project.id)
    return alert_file(query.wanted, query.order, path=project.path, kind=kind)


@alerts.get(_ONE)
@permitted("alerts.show")
def show(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Show an alert with all its fields and its history."""
    list_query(*TIMELINE)
    session, me, query = db.session(), get_current_user().id, asked_timeline()
    alert = get_alert(project.id, iid, session=session, reading=reading())
    backlog = find_backlog(Follower.INCIDENTS, alert.id, session=session)
    mine = page_reasons([alert.id], user_id=me, channel_id=None, session=session)
    return render_template(
        "alerts/show.html",
        project=project,
        alert=alert,
        mute=muted_rows([alert], at=now(), session=session, reading=reading()).get(alert.id),
        timeline=shown_timeline(list_alert_timeline(work(), project, iid, query), query),
        people=_people(project),
        former=former_alerts(alert.id, session=session),
        environment=reference_to(project.id, alert.environment or "", session=session),
        incidents=list_of_alert(work(), project, alert.id),
        is_own_status=gave_status(alert.id, me, session=session),
        escalation=explain(project.id, alert.id, session=session, now=now(), reading=reading()),
        my_reason=mine.get(alert.id),
        incidents_wait_since=backlog.since if backlog else None,
        pending=find_pending(alert.id, session=session),
    )


@alerts.get(f"{_ONE}/payload")
@permitted("alerts.payload")
def payload(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Return the complete body that an alert was received with, unchanged."""
    return payload_file(get_payload(project.id, iid, session=db.session()))
