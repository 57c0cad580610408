"""Views that change incidents: status, severity, assignees, text, alerts and comments."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.listing.queries import MAX_IID
from domain.core.database.pagination import MAX_ID, parse_id
from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.validation import validate_body
from domain.incidents import actions, note_actions
from domain.incidents.types import (
    IncidentAlertsBody,
    IncidentChange,
    IncidentNoteChange,
    IncidentPageBody,
    NewIncidentNote,
)
from domain.projects.views import ProjectView
from web.access.decorators import permission_required
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page

incident_changes = PageBlueprint(
    "incident_changes", __name__, url_prefix="/<names:project_path>/-/incidents"
)
_INCIDENT_PATH = f"/<int(max={MAX_IID}):iid>"


@incident_changes.post(f"{_INCIDENT_PATH}/status")
@permission_required("incidents.change")
def change_status(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the status of an incident and of its alerts."""
    with show_errors_on_next_page(InvalidError, NotFoundError):
        change = validate_body(IncidentChange, {"status": request.form.get("status", "")})
        changed = actions.change_incident(get_unit_of_work(), project, iid, change)
        flash(f"The incident is now {changed.status}.")
    return _redirect_to_incident(project, iid)


@incident_changes.post(f"{_INCIDENT_PATH}/severity")
@permission_required("incidents.change")
def change_severity(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the severity of an incident."""
    return _change_incident(project, iid, severity=request.form.get("severity", ""))


@incident_changes.post(f"{_INCIDENT_PATH}/assignees")
@permission_required("incidents.change")
def assign(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Add an assignee to an incident, or remove an assignee."""
    present = actions.show_incident(get_unit_of_work(), project, iid).assignees
    names = [person.username for person in present if person.username != request.form.get("remove")]
    added = request.form.get("add")
    names += [added] if added and added not in names else []
    return _change_incident(
        project, iid, assignees=names, page_assignees="page_now" in request.form
    )


@incident_changes.post(f"{_INCIDENT_PATH}/page")
@permission_required("incidents.page")
def page_selected_user(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Page an assignee about an incident."""
    with show_errors_on_next_page(InvalidError):
        name = request.form.get("user", "")
        body = validate_body(IncidentPageBody, {"users": name})
        actions.page_responders(get_unit_of_work(), project, iid, body)
        flash(f"@{name} is being paged.")
    return _redirect_to_incident(project, iid)


@incident_changes.post(f"{_INCIDENT_PATH}/edit")
@permission_required("incidents.change")
def edit(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the title and description of an incident, and the options for linked alerts."""
    return _change_incident(
        project,
        iid,
        title=request.form.get("title"),
        description=request.form.get("description"),
        close_when_resolved="close_when_resolved" in request.form,
        quiet_alerts="quiet_alerts" in request.form,
    )


def _change_incident(project: ProjectView, iid: int, **given: object) -> ResponseReturnValue:
    unit = get_unit_of_work()
    with show_errors_on_next_page(InvalidError, NotFoundError):
        changed = actions.change_incident(unit, project, iid, validate_body(IncidentChange, given))
        if changed.updated_at == unit.now:
            flash("Incident saved.")
    return _redirect_to_incident(project, iid)


@incident_changes.post(f"{_INCIDENT_PATH}/alerts")
@permission_required("incident_alerts.create")
def link(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Link the alert with the submitted number to an incident."""
    number = parse_id(request.form.get("alert", "").strip().removeprefix("#"))
    with show_errors_on_next_page(InvalidError, NotFoundError):
        if not number:
            raise InvalidError("Enter the number of an alert, such as 12.", field="alert")
        alerts = IncidentAlertsBody(alerts=(min(number, MAX_IID),))
        actions.link_alerts(get_unit_of_work(), project, iid, alerts)
        flash(f"Alert #{number} linked.")
    return _redirect_to_incident(project, iid, part="alerts")


@incident_changes.post(f"{_INCIDENT_PATH}/alerts/<int(max={MAX_IID}):alert_iid>/unlink")
@permission_required("incident_alerts.delete")
def unlink(project: ProjectView, iid: int, alert_iid: int) -> ResponseReturnValue:
    """Unlink an alert from an incident."""
    with show_errors_on_next_page(InvalidError, NotFoundError):
        actions.unlink_alert(get_unit_of_work(), project, iid, alert_iid)
        flash(f"Alert #{alert_iid} unlinked.")
    return _redirect_to_incident(project, iid, part="alerts")


@incident_changes.post(f"{_INCIDENT_PATH}/delete")
@permission_required("incidents.delete")
def delete(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Delete an incident and keep its alerts."""
    actions.delete_incident(get_unit_of_work(), project, iid)
    flash(f"Incident #{iid} deleted. Its alerts are kept.")
    return redirect(url_for("incidents.index", project_path=project.path))


def _redirect_to_incident(
    project: ProjectView, iid: int, *, part: str | None = None
) -> ResponseReturnValue:
    return redirect(url_for("incidents.show", project_path=project.path, iid=iid, _anchor=part))


incident_comments = PageBlueprint(
    "incident_comments",
    __name__,
    url_prefix=f"/<names:project_path>/-/incidents/<int(max={MAX_IID}):iid>/notes",
)
_COMMENT_PATH = f"/<int(max={MAX_ID}):note_id>"


@incident_comments.post("")
@permission_required("incident_notes.create")
def write(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Add a comment to an incident."""
    given = {"body": request.form.get("text", ""), "internal": "internal" in request.form}
    with show_errors_on_next_page(InvalidError):
        note_actions.create_note(
            get_unit_of_work(), project, iid, validate_body(NewIncidentNote, given)
        )
    return _redirect_to_incident(project, iid, part="timeline")


@incident_comments.post(f"{_COMMENT_PATH}/edit", endpoint="edit")
@permission_required("incident_notes.change")
def edit_comment(project: ProjectView, iid: int, note_id: int) -> ResponseReturnValue:
    """Change the text of a comment."""
    given = {"body": request.form.get("text", "")}
    with show_errors_on_next_page(InvalidError):
        note_actions.change_note(
            get_unit_of_work(), project, iid, note_id, validate_body(IncidentNoteChange, given)
        )
    return _redirect_to_incident(project, iid, part="timeline")


@incident_comments.post(f"{_COMMENT_PATH}/delete", endpoint="delete")
@permission_required("incident_notes.delete")
def delete_comment(project: ProjectView, iid: int, note_id: int) -> ResponseReturnValue:
    """Delete a comment from an incident."""
    note_actions.delete_note(get_unit_of_work(), project, iid, note_id)
    flash("Comment deleted.")
    return _redirect_to_incident(project, iid, part="timeline")
