"""The actions of users on incidents: status, severity, assignees, words and alerts."""

from collections.abc import Iterator
from contextlib import contextmanager

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.alerts.listing.queries import LARGEST_IID
from domain.alerts.reading.incoming import Severity
from domain.audit.events import Actor
from domain.database.paging import parse_id
from domain.errors import InvalidError, NotFoundError
from domain.incidents.editing import IncidentEdit, delete_incident, edit_incident
from domain.incidents.events import incident_changed, incident_removed
from domain.incidents.links import link_alerts, unlink_alert
from domain.incidents.rows import get_incident
from domain.incidents.status import change_status as change
from domain.projects.views import ProjectView
from web.access.marks import get_current_user, project_member
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.services import now

incident_changes = PageBlueprint(
    "incident_changes", __name__, url_prefix="/<names:project_path>/-/incidents"
)
_ONE = f"/<int(max={LARGEST_IID}):iid>"
_SEVERITIES = frozenset(Severity)


@incident_changes.post(f"{_ONE}/status")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def change_status(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the status of an incident, and of its alerts with it."""
    status = request.form.get("status", "")
    with _refusals_shown():
        changed = change(project.id, iid, status, by=_me(), session=db.session(), now=now())
        record_event(incident_changed(changed, project.path, status=status))
        flash(f"The incident is {status} now.")
    return _to_incident(project, iid)


@incident_changes.post(f"{_ONE}/severity")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def change_severity(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the severity of an incident."""
    word = request.form.get("severity", "")
    if word not in _SEVERITIES:
        flash("Choose a severity.", "error")
        return _to_incident(project, iid)
    return _edit(project, iid, IncidentEdit(severity=Severity(word)), severity=word)


@incident_changes.post(f"{_ONE}/assignees")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def assign(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Assign an incident to one more user, or take an assignee away."""
    present = get_incident(project.id, iid, session=db.session()).assignees
    names = [person.username for person in present if person.username != request.form.get("remove")]
    added = request.form.get("add")
    names += [added] if added and added not in names else []
    return _edit(project, iid, IncidentEdit(assignees=names), assignees=names)


@incident_changes.post(f"{_ONE}/edit")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def edit(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change title, description and whether it is closed with its alerts."""
    wanted = IncidentEdit(
        title=request.form.get("title"),
        description=request.form.get("description"),
        closes_when_resolved="close_when_resolved" in request.form,
    )
    closes = wanted.closes_when_resolved
    return _edit(project, iid, wanted, title=wanted.title, close_when_resolved=closes)


def _edit(
    project: ProjectView, iid: int, wanted: IncidentEdit, **details: object
) -> ResponseReturnValue:
    moment = now()
    with _refusals_shown():
        changed = edit_incident(project, iid, wanted, by=_me(), session=db.session(), now=moment)
        if changed.updated_at == moment:
            record_event(incident_changed(changed, project.path, **details))
            flash("Incident saved.")
    return _to_incident(project, iid)


@incident_changes.post(f"{_ONE}/alerts")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def link(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Link an alert to an incident by its number."""
    number = parse_id(request.form.get("alert", "").strip().removeprefix("#")) or 0
    with _refusals_shown():
        view = link_alerts(
            project.id, iid, [min(number, LARGEST_IID)], by=_me(), session=db.session(), now=now()
        )
        record_event(incident_changed(view, project.path, linked=[number]))
        flash(f"Alert #{number} linked.")
    return _to_incident(project, iid, part="alerts")


@incident_changes.post(f"{_ONE}/alerts/<int(max={LARGEST_IID}):alert_iid>/unlink")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def unlink(project: ProjectView, iid: int, alert_iid: int) -> ResponseReturnValue:
    """Unlink an alert from an incident."""
    with _refusals_shown():
        view = unlink_alert(project.id, iid, alert_iid, by=_me(), session=db.session(), now=now())
        record_event(incident_changed(view, project.path, unlinked=[alert_iid]))
        flash(f"Alert #{alert_iid} unlinked.")
    return _to_incident(project, iid, part="alerts")


@incident_changes.post(f"{_ONE}/delete")
@project_member(at_least=Role.OWNER)
def delete(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Delete an incident; its alerts are kept."""
    gone = delete_incident(project.id, iid, session=db.session())
    record_event(incident_removed(gone, project.path))
    flash(f"Incident #{iid} deleted. Its alerts are kept.")
    return redirect(url_for("incidents.index", project_path=project.path))


@contextmanager
def _refusals_shown() -> Iterator[None]:
    """Show a refusal of the domain on the page that follows, and store nothing."""
    try:
        with db.session.begin_nested():
            yield
    except (InvalidError, NotFoundError) as error:
        flash(str(error), "error")


def _me() -> Actor:
    return Actor(id=get_current_user().id, name=get_current_user().username)


def _to_incident(project: ProjectView, iid: int, *, part: str | None = None) -> ResponseReturnValue:
    return redirect(url_for("incidents.show", project_path=project.path, iid=iid, _anchor=part))
