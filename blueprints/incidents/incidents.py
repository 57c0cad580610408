"""Pages for a project's incidents: the list, a new incident, and a single incident."""

from collections.abc import Mapping

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.change_feed import Follower, find_oldest_change_time
from domain.alerts.handling.assignments import list_assignable_users
from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.listing.queries import MAX_IID
from domain.alerts.listing.sort_orders import parse_sort_cursor
from domain.core.database.pagination import KeysetRange, parse_id
from domain.core.database.pagination import parse_cursor as read_id
from domain.core.errors import ConflictError
from domain.core.types.validation import validate_body
from domain.incidents import actions
from domain.incidents.listing import SORT_ORDERS, TABS, IncidentSlice
from domain.incidents.note_actions import can_see_internal_comments
from domain.incidents.rule_actions import find_rule_name
from domain.incidents.timeline import has_set_status
from domain.incidents.timelines.actions import list_incident_timeline, show_responders_and_runbooks
from domain.incidents.timelines.sources import MAX_TIMELINE_ALERTS
from domain.incidents.types import Incident, NewIncident
from domain.paging.page_digests.alerts import find_incident_digest
from domain.projects.views import ProjectView
from forms.incidents import (
    INCIDENT_LIST_PARAMETERS,
    IncidentForm,
    IncidentListQuery,
    parse_incident_list_query,
)
from web.access.decorators import get_current_user, permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    Tab,
    build_page_links,
    get_list_query,
    get_page_size,
)
from web.pages.live_pages import render_live_page
from web.pages.markdown import render_markdown_document
from web.pages.timelines import TIMELINE_PARAMETERS, build_timeline_page, get_timeline_query
from web.services import get_current_time

incidents = PageBlueprint("incidents", __name__, url_prefix="/<names:project_path>/-/incidents")
#: URL path of an incident. The converter rejects numbers that are too large for the database.
_INCIDENT_PATH = f"/<int(max={MAX_IID}):iid>"
#: Maximum number of names in a selection list. Other users can be assigned through the API.
_MAX_CHOICES = 200
_ALERTS_PER_PAGE = 20


@incidents.get("")
@permission_required("incidents.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the project's incidents that match the filters."""
    query = parse_incident_list_query(
        get_list_query(*INCIDENT_LIST_PARAMETERS, *CURSOR_PARAMETERS), project_id=project.id
    )
    # As in all lists, `before` leads to older rows.
    part = IncidentSlice(
        size=get_page_size(),
        order=query.order,
        following=parse_sort_cursor(request.args.get("before"), query.order),
        preceding=parse_sort_cursor(request.args.get("after"), query.order),
    )
    work = get_unit_of_work()
    page, counts = actions.list_incidents_with_counts(work, project, query.wanted, part)
    return render_template(
        "incidents/index.html",
        waits_since=find_oldest_change_time(Follower.INCIDENTS, [project.id], session=db.session()),
        project=project,
        query=query,
        page=build_page_links(page),
        tabs=_build_tabs(project, query, counts),
        severities=SEVERITIES,
        sort_orders=tuple(SORT_ORDERS.values()),
        people=_list_assignee_choices(project),
    )


def _list_assignee_choices(project: ProjectView) -> tuple[str, ...]:
    me, today = get_current_user().username, get_current_time().date()
    return list_assignable_users(
        project, me=me, most=_MAX_CHOICES, session=db.session(), today=today
    )


def _build_tabs(
    project: ProjectView, query: IncidentListQuery, counts: Mapping[str, int]
) -> tuple[Tab, ...]:
    return tuple(
        Tab(
            key=key,
            count=sum(counts[status] for status in statuses) if counts else None,
            href=url_for(
                "incidents.index",
                project_path=project.path,
                **{**query.query_parameters, "status": key},
            ),
            current=key == query.tab,
        )
        for key, statuses in TABS.items()
    )


@incidents.get("/new")
@permission_required("incidents.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Show the form for a new incident."""
    get_list_query()
    return _render_new_incident_page(project, IncidentForm(formdata=None))


@incidents.post("/new")
@permission_required("incidents.create")
def create(project: ProjectView) -> ResponseReturnValue:
    """Open an incident without an alert."""
    form = IncidentForm()
    made = form.run_if_valid(
        lambda: actions.create_incident(
            get_unit_of_work(), project, form.build_entered_body(NewIncident)
        )
    )
    if made is None:
        return _render_new_incident_page(project, form), 422
    return _redirect_to_new_incident(project, made)


def _render_new_incident_page(project: ProjectView, form: IncidentForm) -> str:
    return render_template("incidents/new.html", project=project, form=form)


@incidents.post("")
@permission_required("incidents.create")
def create_from_alert(project: ProjectView) -> ResponseReturnValue:
    """Create an incident from an alert, through the button on the alert's page."""
    iid = parse_id(request.form.get("alert", "")) or 0
    new = validate_body(NewIncident, {"alerts": [min(iid, MAX_IID)]})
    try:
        return _redirect_to_new_incident(
            project, actions.create_incident(get_unit_of_work(), project, new)
        )
    except ConflictError as error:
        flash(str(error), "error")
        return redirect(url_for("alerts.show", project_path=project.path, iid=iid))


def _redirect_to_new_incident(project: ProjectView, incident: Incident) -> ResponseReturnValue:
    flash(f"Incident #{incident.iid} created.")
    return redirect(url_for("incidents.show", project_path=project.path, iid=incident.iid))


@incidents.get(_INCIDENT_PATH)
@permission_required("incidents.show")
def show(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Show an incident with its alerts and timeline."""
    mark = find_incident_digest(get_unit_of_work(), project, iid)
    return render_live_page(mark, lambda: _render_incident(project, iid))


def _render_incident(project: ProjectView, iid: int) -> ResponseReturnValue:
    given, query = get_list_query("alerts", *TIMELINE_PARAMETERS), get_timeline_query()
    incident = actions.show_incident(get_unit_of_work(), project, iid)
    alerts = KeysetRange(size=_ALERTS_PER_PAGE, before=read_id(given.get("alerts")))
    rule_id = incident.rule_id
    return render_template(
        "incidents/show.html",
        project=project,
        incident=incident,
        rule=find_rule_name(get_unit_of_work(), project, rule_id) if rule_id else None,
        linked=actions.fetch_incident_alert_page(get_unit_of_work(), project, iid, alerts),
        timeline=build_timeline_page(
            list_incident_timeline(get_unit_of_work(), project, iid, query), query
        ),
        most_alerts=MAX_TIMELINE_ALERTS,
        around=show_responders_and_runbooks(get_unit_of_work(), project, iid),
        people=_list_assignee_choices(project),
        is_own_status=has_set_status(incident.id, get_current_user().id, session=db.session()),
        severities=SEVERITIES,
        rendered_document=render_markdown_document,
        writes_internal=can_see_internal_comments(project),
    )
