"""Pages for a project's incidents: the list, a new incident, and a single incident."""

from collections.abc import Mapping

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.change_feed import Follower, waits_since
from domain.alerts.handling.assignments import candidates
from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.listing.queries import LARGEST_IID
from domain.alerts.listing.sort_orders import read_cursor
from domain.core.database.paging import Slice, parse_id
from domain.core.database.paging import read_cursor as read_id
from domain.core.errors import ConflictError
from domain.core.types.reading import read_body
from domain.incidents import actions
from domain.incidents.listing import SORT_ORDERS, TABS, IncidentSlice
from domain.incidents.note_actions import sees_internal
from domain.incidents.rule_actions import find_rule_name
from domain.incidents.timelines.actions import list_incident_timeline, show_surroundings
from domain.incidents.timelines.sources import MOST_ALERTS
from domain.incidents.types import STATUSES, Incident, NewIncident
from domain.projects.views import ProjectView
from forms.incidents import PARAMETERS, IncidentForm, IncidentQuery, read_query
from web.access.decorators import get_current_user, permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.list_query import CURSORS, Tab, list_query, page_links, page_size
from web.pages.markdown import rendered_document
from web.pages.timelines import TIMELINE, asked_timeline, shown_timeline
from web.services import now

incidents = PageBlueprint("incidents", __name__, url_prefix="/<names:project_path>/-/incidents")
#: Part of a URL for an incident. The converter rejects numbers that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"
#: Maximum number of names in a choice list. Other users can be assigned with the API.
_MOST_CHOICES = 200
_ALERTS_SHOWN = 20


@incidents.get("")
@permitted("incidents.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List incidents."""
    query = read_query(list_query(*PARAMETERS, *CURSORS), project_id=project.id)
    # As in all lists, `before` leads to older rows.
    part = IncidentSlice(
        size=page_size(),
        order=query.order,
        following=read_cursor(request.args.get("before"), query.order),
        preceding=read_cursor(request.args.get("after"), query.order),
    )
    page, counts = actions.show_page(work(), project, query.wanted, part)
    return render_template(
        "incidents/index.html",
        waits_since=waits_since(Follower.INCIDENTS, [project.id], session=db.session()),
        project=project,
        query=query,
        page=page_links(page),
        tabs=_tabs(project, query, counts),
        severities=SEVERITIES,
        sort_orders=tuple(SORT_ORDERS.values()),
        people=_people(project),
    )


def _people(project: ProjectView) -> tuple[str, ...]:
    me, today = get_current_user().username, now().date()
    return candidates(project, me=me, most=_MOST_CHOICES, session=db.session(), today=today)


def _tabs(project: ProjectView, query: IncidentQuery, counts: Mapping[str, int]) -> tuple[Tab, ...]:
    return tuple(
        Tab(
            key=key,
            count=sum(counts[status] for status in statuses) if counts else None,
            href=url_for(
                "incidents.index", project_path=project.path, **{**query.arguments, "status": key}
            ),
            current=key == query.tab,
        )
        for key, statuses in TABS.items()
    )


@incidents.get("/new")
@permitted("incidents.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Show the form for a new incident."""
    list_query()
    return _form_page(project, IncidentForm(formdata=None))


@incidents.post("/new")
@permitted("incidents.create")
def create(project: ProjectView) -> ResponseReturnValue:
    """Open an incident without an alert."""
    form = IncidentForm()
    made = form.carry_out(lambda: actions.create_incident(work(), project, form.read(NewIncident)))
    return (_form_page(project, form), 422) if made is None else _to_new(project, made)


def _form_page(project: ProjectView, form: IncidentForm) -> str:
    return render_template("incidents/new.html", project=project, form=form)


@incidents.post("")
@permitted("incidents.create")
def create_from_alert(project: ProjectView) -> ResponseReturnValue:
    """Create an incident from an alert; the button is on the alert's page."""
    iid = parse_id(request.form.get("alert", "")) or 0
    new = read_body(NewIncident, {"alerts": [min(iid, LARGEST_IID)]})
    try:
        return _to_new(project, actions.create_incident(work(), project, new))
    except ConflictError as error:
        flash(str(error), "error")
        return redirect(url_for("alerts.show", project_path=project.path, iid=iid))


def _to_new(project: ProjectView, made: Incident) -> ResponseReturnValue:
    flash(f"Incident #{made.iid} created.")
    return redirect(url_for("incidents.show", project_path=project.path, iid=made.iid))


@incidents.get(_ONE)
@permitted("incidents.show")
def show(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Show an incident with its alerts and timeline."""
    given, query = list_query("alerts", *TIMELINE), asked_timeline()
    incident = actions.show_incident(work(), project, iid)
    alerts = Slice(size=_ALERTS_SHOWN, before=read_id(given.get("alerts")))
    rule_id = incident.rule_id
    return render_template(
        "incidents/show.html",
        project=project,
        incident=incident,
        rule=find_rule_name(work(), project, rule_id) if rule_id else None,
        linked=actions.show_alerts(work(), project, iid, alerts),
        timeline=shown_timeline(list_incident_timeline(work(), project, iid, query), query),
        most_alerts=MOST_ALERTS,
        around=show_surroundings(work(), project, iid),
        people=_people(project),
        severities=SEVERITIES,
        status_choices=STATUSES,
        rendered_document=rendered_document,
        writes_internal=sees_internal(project),
    )
