"""Commands about the incidents of projects."""

from typing import Any
from urllib.parse import quote

import click
from flask.cli import AppGroup

from domain.alerts.listing.queries import LARGEST_IID
from domain.alerts.listing.sort_orders import read_cursor
from domain.alerts.reading.incoming import Severity
from domain.clock import written
from domain.incidents.editing import IncidentEdit, edit_incident
from domain.incidents.events import incident_changed, incident_created
from domain.incidents.listing import (
    SORT_ORDERS,
    TABS,
    IncidentFilter,
    IncidentSlice,
    list_incidents,
)
from domain.incidents.opening import Composer, NewIncident, create_incident
from domain.incidents.rows import get_incident
from domain.incidents.status import change_status
from domain.incidents.views import STATUSES, IncidentView
from domain.projects.access import check_takes_changes, follow_to_project
from domain.projects.views import ProjectView, Viewer
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, reading, settings

#: The command line has all permissions.
_OPERATOR = Viewer(user_id=None, is_admin=True)
_SEVERITY = click.Choice([severity.value for severity in Severity])
_IID = click.IntRange(1, LARGEST_IID)
_MOST_LISTED = 100

incidents = AppGroup("incidents", help="Incidents of projects.")


@incidents.command("create")
@click.argument("project")
@click.option("--title", help="Title; without it, that of the first alert.")
@click.option("--description", help="Description in Markdown; without it, that of the alert.")
@click.option("--severity", type=_SEVERITY, help="Severity; without it, that of the alert.")
@click.option("--alert", "alerts", type=_IID, multiple=True, help="Number of an alert to link.")
@click.option("--assignee", "assignees", multiple=True, help="User name of an assignee.")
@click.option("--close-when-resolved", is_flag=True, help="Close it when its alerts are resolved.")
@one_transaction
def create_incident_command(*, project: str, **given: Any) -> dict[str, Any]:
    """Open an incident in PROJECT, with alerts or without."""
    found = _project(project)
    check_takes_changes(found)
    composer = Composer(reading=reading(), alert_url=lambda iid: _url(found, "alerts", iid))
    new = NewIncident(
        title=given["title"],
        description=given["description"],
        severity=_severity(given["severity"]),
        alerts=given["alerts"],
        assignees=given["assignees"],
        closes_when_resolved=given["close_when_resolved"],
    )
    made = create_incident(found, new, by=None, session=db.session(), now=now(), composer=composer)
    record_event(incident_created(made, found.path))
    return _shown(found, made)


@incidents.command("list")
@click.argument("project")
@click.option("--status", type=click.Choice(list(TABS)), default="open", show_default=True)
@click.option("--severity", type=_SEVERITY)
@click.option("--assignee", help="A user name, or - for nobody.")
@click.option("--search", default="", help="Search titles and descriptions.")
@click.option("--sort", type=click.Choice(list(SORT_ORDERS)), default="created")
@click.option("--cursor", default="", help="The value of next_cursor, for the next page.")
@one_transaction
def list_incidents_command(*, project: str, **given: Any) -> dict[str, Any]:
    """List up to 100 incidents of PROJECT."""
    found, order = _project(project), SORT_ORDERS[given["sort"]]
    wanted = IncidentFilter(
        project_id=found.id,
        statuses=TABS[given["status"]],
        severity=_severity(given["severity"]),
        assignee=given["assignee"],
        search=given["search"].strip(),
    )
    part = IncidentSlice(
        size=_MOST_LISTED, order=order, following=read_cursor(given["cursor"], order)
    )
    page = list_incidents(wanted, part, session=db.session())
    return {
        "incidents": [_shown(found, each) for each in page.items],
        "next_cursor": page.next_before,
    }


@incidents.command("show")
@click.argument("project")
@click.argument("iid", type=_IID)
@one_transaction
def show_incident_command(*, project: str, iid: int) -> dict[str, Any]:
    """Show the incident IID of PROJECT."""
    found = _project(project)
    return _shown(found, get_incident(found.id, iid, session=db.session()))


@incidents.command("update")
@click.argument("project")
@click.argument("iid", type=_IID)
@click.option("--status", type=click.Choice(STATUSES), help="resolved closes it and its alerts.")
@click.option("--severity", type=_SEVERITY)
@click.option("--title")
@click.option("--description", help="Markdown.")
@click.option(
    "--assignee", "assignees", multiple=True, help="Replaces all assignees; - for nobody."
)
@click.option("--close-when-resolved/--close-by-hand", default=None)
@one_transaction
def update_incident_command(*, project: str, iid: int, **given: Any) -> dict[str, Any]:
    """Change the incident IID of PROJECT. Omitted options keep their values."""
    found, session = _project(project), db.session()
    check_takes_changes(found)
    names = tuple(name for name in given["assignees"] if name != "-")
    edit = IncidentEdit(
        title=given["title"],
        description=given["description"],
        severity=_severity(given["severity"]),
        closes_when_resolved=given["close_when_resolved"],
        assignees=names if given["assignees"] else None,
    )
    changed = edit_incident(found, iid, edit, by=None, session=session, now=now())
    status = given["status"]
    if status is not None:
        changed = change_status(found.id, iid, status, by=None, session=session, now=now())
    details = {name: value for name, value in given.items() if value not in (None, ())}
    record_event(incident_changed(changed, found.path, **details))
    return _shown(found, changed)


#: As the other kinds of things have it.
incidents.add_command(update_incident_command, "change")


def _project(path: str) -> ProjectView:
    return follow_to_project(path, _OPERATOR, session=db.session())


def _severity(word: str | None) -> Severity | None:
    return Severity(word) if word else None


def _url(project: ProjectView, kind: str, iid: int) -> str:
    return f"{settings().base_url}/{quote(project.path)}/-/{kind}/{iid}"


def _shown(project: ProjectView, view: IncidentView) -> dict[str, Any]:
    return {
        "iid": view.iid,
        "title": view.title,
        "description": view.description,
        "severity": view.severity.value,
        "status": view.status.value,
        "assignees": [person.username for person in view.assignees],
        "alerts": list(view.alerts),
        "alerts_count": view.alert_count,
        "close_when_resolved": view.closes_when_resolved,
        "created_at": written(view.created_at),
        "resolved_at": written(view.resolved_at) if view.resolved_at else None,
        "web_url": _url(project, "incidents", view.iid),
    }
