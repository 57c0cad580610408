"""A project's incidents: the list, a new one, and one with its timeline."""

from dataclasses import dataclass, replace
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.alerts.handling.assignments import candidates
from domain.alerts.listing.filters import SEVERITIES
from domain.alerts.listing.queries import LARGEST_IID
from domain.alerts.listing.sort_orders import read_cursor
from domain.alerts.reading.incoming import Severity
from domain.audit.events import Actor
from domain.database.paging import Slice, parse_id
from domain.database.paging import read_cursor as read_id
from domain.errors import ConflictError
from domain.incidents.events import incident_created
from domain.incidents.linked_alerts import list_linked
from domain.incidents.listing import (
    SORT_ORDERS,
    TABS,
    IncidentSlice,
    count_by_status,
    list_incidents,
    looked_up,
)
from domain.incidents.notes import sees_internal
from domain.incidents.opening import Composer, NewIncident, create_incident
from domain.incidents.rows import get_incident
from domain.incidents.rules import rule_name
from domain.incidents.timeline import list_entries
from domain.incidents.views import STATUSES
from domain.projects.views import ProjectView
from forms.incident import IncidentForm
from forms.incident_query import PARAMETERS, IncidentQuery, read_query
from web.access.marks import get_current_user, project_member
from web.alerts.urls import AlertUrls
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.pages.links import page_links
from web.pages.list_query import CURSORS, list_query, page_size
from web.pages.markdown import rendered_document
from web.services import now, reading

incidents = PageBlueprint("incidents", __name__, url_prefix="/<names:project_path>/-/incidents")
#: The converter refuses numbers that no incident has and that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"
#: The most names in a list of choices; others can be assigned by the API.
_MOST_CHOICES = 200
_ALERTS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab of the list."""

    key: str
    label: str
    #: None if counting would be slow.
    count: int | None
    href: str
    current: bool


@incidents.get("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def index(project: ProjectView) -> ResponseReturnValue:
    """List incidents."""
    query = read_query(list_query(*PARAMETERS, *CURSORS), project_id=project.id)
    query = replace(query, wanted=looked_up(query.wanted, session=db.session()))
    # As in all lists, `before` leads to older rows.
    part = IncidentSlice(
        size=page_size(),
        order=query.order,
        following=read_cursor(request.args.get("before"), query.order),
        preceding=read_cursor(request.args.get("after"), query.order),
    )
    return render_template(
        "incidents/index.html",
        project=project,
        query=query,
        page=page_links(list_incidents(query.wanted, part, session=db.session())),
        tabs=_tabs(project, query),
        severities=SEVERITIES,
        sort_orders=tuple(SORT_ORDERS.values()),
        people=_people(project),
    )


def _people(project: ProjectView) -> tuple[str, ...]:
    me, today = get_current_user().username, now().date()
    return candidates(project, me=me, most=_MOST_CHOICES, session=db.session(), today=today)


def _tabs(project: ProjectView, query: IncidentQuery) -> tuple[Tab, ...]:
    counts = count_by_status(query.wanted, session=db.session())
    return tuple(
        Tab(
            key=key,
            label=key.capitalize(),
            count=sum(counts[status] for status in statuses) if counts else None,
            href=url_for(
                "incidents.index", project_path=project.path, **{**query.arguments, "status": key}
            ),
            current=key == query.tab,
        )
        for key, statuses in TABS.items()
    )


@incidents.get("/new")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def new(project: ProjectView) -> ResponseReturnValue:
    """Ask for the words of a new incident."""
    list_query()
    return _form_page(project, IncidentForm(formdata=None))


@incidents.post("/new")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def create(project: ProjectView) -> ResponseReturnValue:
    """Open an incident without an alert."""
    form = IncidentForm()
    if not form.validate():
        return _form_page(project, form), 422
    return _open(
        project,
        NewIncident(
            title=form.title.data,
            description=form.description.data,
            severity=Severity(form.severity.data),
            closes_when_resolved=bool(form.close_when_resolved.data),
        ),
    )


def _form_page(project: ProjectView, form: IncidentForm) -> str:
    return render_template("incidents/new.html", project=project, form=form)


@incidents.post("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def create_from_alert(project: ProjectView) -> ResponseReturnValue:
    """Open an incident from an alert, on whose page the button is."""
    iid = parse_id(request.form.get("alert", "")) or 0
    try:
        with db.session.begin_nested():
            return _open(project, NewIncident(alerts=(min(iid, LARGEST_IID),)))
    except ConflictError as error:
        flash(str(error), "error")
        return redirect(url_for("alerts.show", project_path=project.path, iid=iid))


def _open(project: ProjectView, wanted: NewIncident) -> ResponseReturnValue:
    urls, user = AlertUrls(), get_current_user()
    composer = Composer(reading=reading(), alert_url=lambda iid: urls.of(project.path, iid))
    by, session = Actor(id=user.id, name=user.username), db.session()
    made = create_incident(project, wanted, by=by, session=session, now=now(), composer=composer)
    record_event(incident_created(made, project.path))
    flash(f"Incident #{made.iid} created.")
    return redirect(url_for("incidents.show", project_path=project.path, iid=made.iid))


@incidents.get(_ONE)
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def show(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Show an incident with its alerts and its timeline."""
    given, session = list_query("alerts", "timeline"), db.session()
    incident = get_incident(project.id, iid, session=session)
    timeline = list_entries(
        incident.id,
        Slice(size=page_size(), before=read_id(given.get("timeline"))),
        shows_internal=sees_internal(project),
        session=session,
    )
    return render_template(
        "incidents/show.html",
        project=project,
        incident=incident,
        rule=rule_name(incident.rule_id, session=session) if incident.rule_id else None,
        linked=list_linked(
            incident.id,
            Slice(size=_ALERTS_SHOWN, before=read_id(given.get("alerts"))),
            session=session,
        ),
        timeline=timeline,
        **_choices(project),
    )


def _choices(project: ProjectView) -> dict[str, Any]:
    return {
        "people": _people(project),
        "severities": SEVERITIES,
        "status_choices": STATUSES,
        "rendered_document": rendered_document,
        "writes_internal": sees_internal(project),
    }
