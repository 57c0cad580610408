"""Pages for a project's alerts: the list, its export, and a single alert."""

from typing import Any

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.alerts.list_pages import ProjectAlertList, is_partial_request
from blueprints.alerts.receivers import build_alert_export, build_payload_response
from domain.alerts.change_feed import Follower, find_change_backlog
from domain.alerts.environments import find_environment_reference, list_environment_names
from domain.alerts.handling.activity import find_earlier_alerts
from domain.alerts.handling.alert_detail import AlertDetailView, get_alert_detail, get_payload
from domain.alerts.handling.assignments import list_assignable_users
from domain.alerts.integrations.integrations import list_integrations
from domain.alerts.listing import daily_counts, queries
from domain.alerts.listing.queries import MAX_IID, list_service_names
from domain.alerts.listing.status_history import has_set_status
from domain.incidents.actions import list_incidents_for_alert
from domain.incidents.timelines.actions import list_alert_timeline
from domain.paging.escalations.reporting.explanation import explain_escalation, find_page_reasons
from domain.paging.escalations.reporting.last_pages import list_last_pages
from domain.paging.escalations.undoable_escalations import find_pending_escalation
from domain.paging.page_digests.alerts import find_alert_digest, find_alerts_digest
from domain.paging.silences.active_mutes import find_mutes_for_listed_alerts
from domain.projects.views import ProjectView
from forms.alerts import ALERT_LIST_PARAMETERS, parse_alert_list_query
from web.access.decorators import get_current_user, permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import get_list_query
from web.pages.live_pages import render_live_page
from web.pages.timelines import TIMELINE_PARAMETERS, build_timeline_page, get_timeline_query
from web.services import get_current_time, get_parser_settings

alerts = PageBlueprint("alerts", __name__, url_prefix="/<names:project_path>/-/alerts")
#: URL path of an alert. The converter rejects numbers that are too large for a database column.
_ALERT_PATH = f"/<int(max={MAX_IID}):iid>"
#: Maximum number of names in a selection list. Users can search for other names.
_MAX_CHOICES = 200


@alerts.get("")
@permission_required("alerts.index").with_changes(is_heavy=True, has_mark=True)
def index(project: ProjectView) -> ResponseReturnValue:
    """List the project's alerts that match the filters.

    The page's script reloads only the list.
    """
    mark = find_alerts_digest([project.id], project, session=db.session(), now=get_current_time())
    return render_live_page(mark, lambda: _render_list(project))


def _render_list(project: ProjectView) -> ResponseReturnValue:
    listing = ProjectAlertList(project)
    listed = {"project": project, "listing": listing, "most_sorted": queries.MAX_SORTED_ALERTS}
    if is_partial_request():
        return render_template("alerts/_list.html", **listed)
    return render_template("alerts/index.html", **listed, **_build_page_variables(project))


def _build_page_variables(project: ProjectView) -> dict[str, Any]:
    """Return the template variables for the parts of the page around the list."""
    session = db.session()
    return {
        "days": daily_counts.count_alerts_by_day(
            project.id, get_current_time().date(), session=session
        ),
        "environments": list_environment_names(project.id, most=_MAX_CHOICES, session=session),
        "services": list_service_names(project.id, most=_MAX_CHOICES, session=session),
        "people": _list_assignee_choices(project),
        "integrations": list_integrations(get_unit_of_work(), project),
    }


def _list_assignee_choices(project: ProjectView) -> tuple[str, ...]:
    """Return the usernames that the page offers as assignees.

    Other users can be assigned through the API.
    """
    me, today = get_current_user().username, get_current_time().date()
    return list_assignable_users(
        project, me=me, most=_MAX_CHOICES, session=db.session(), today=today
    )


@alerts.get("/export.<any(json, csv):kind>")
@permission_required("alerts.download").with_changes(is_heavy=True)
def download(project: ProjectView, kind: str) -> ResponseReturnValue:
    """Return the filtered list of alerts as a file."""
    query = parse_alert_list_query(get_list_query(*ALERT_LIST_PARAMETERS), project_id=project.id)
    return build_alert_export(query.wanted, query.order, path=project.path, kind=kind)


@alerts.get(_ALERT_PATH)
@permission_required("alerts.show")
def show(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Show an alert with all its fields and its history."""
    mark = find_alert_digest(get_unit_of_work(), project, iid)
    return render_live_page(mark, lambda: _render_alert(project, iid))


def _render_alert(project: ProjectView, iid: int) -> ResponseReturnValue:
    get_list_query(*TIMELINE_PARAMETERS)
    session, me, query = db.session(), get_current_user().id, get_timeline_query()
    work = get_unit_of_work()
    alert = get_alert_detail(project.id, iid, session=session, reading=get_parser_settings())
    backlog = find_change_backlog(Follower.INCIDENTS, alert.id, session=session)
    return render_template(
        "alerts/show.html",
        project=project,
        alert=alert,
        timeline=build_timeline_page(list_alert_timeline(work, project, iid, query), query),
        people=_list_assignee_choices(project),
        former=find_earlier_alerts(alert.id, session=session),
        environment=find_environment_reference(
            project.id, alert.environment or "", session=session
        ),
        incidents=list_incidents_for_alert(work, project, alert.id),
        is_own_status=has_set_status(alert.id, me, session=session),
        incidents_wait_since=backlog.since if backlog else None,
        **_explain_paging(alert, me),
    )


def _explain_paging(alert: AlertDetailView, user_id: int) -> dict[str, Any]:
    """Return the template variables that explain who is paged about an alert, and why."""
    session, reading, moment = db.session(), get_parser_settings(), get_current_time()
    reasons = find_page_reasons([alert.id], user_id=user_id, channel_id=None, session=session)
    escalation = explain_escalation(
        alert.project_id, alert.id, session=session, now=moment, parser_settings=reading
    )
    return {
        "mute": find_mutes_for_listed_alerts(
            [alert], moment=moment, session=session, parser_settings=reading
        ).get(alert.id),
        "escalation": escalation,
        "last_pages": list_last_pages(alert.id, session=session),
        "my_reason": reasons.get(alert.id),
        "pending": find_pending_escalation(alert.id, session=session),
    }


@alerts.get(f"{_ALERT_PATH}/payload")
@permission_required("alerts.payload")
def payload(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Return the complete request body that reported an alert, unchanged."""
    return build_payload_response(get_payload(project.id, iid, session=db.session()))
