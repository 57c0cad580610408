"""The actions of users on alerts: change the status, assign, add notes."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.alerts.bulk_changes import change_alerts, flash_change, list_arguments
from blueprints.alerts.list_pages import ProjectAlertList
from domain.alerts.handling import actions
from domain.alerts.handling.batch_actions import assign_alert, give_status
from domain.alerts.handling.types import AlertNoteBody
from domain.alerts.listing.queries import LARGEST_IID
from domain.errors import ConflictError, InvalidError
from domain.projects.views import ProjectView
from web.access.marks import permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.refusals import refusals_shown

alert_changes = PageBlueprint(
    "alert_changes", __name__, url_prefix="/<names:project_path>/-/alerts"
)
_ONE = f"/<int(max={LARGEST_IID}):iid>"


@alert_changes.post("/status")
@permitted("alerts.change_several")
def change_several(project: ProjectView) -> ResponseReturnValue:
    """Change the selected alerts, or all that match, and return to the list."""
    listing = ProjectAlertList(project, list_arguments())
    return change_alerts(listing, field="iid", largest=LARGEST_IID)


@alert_changes.post(f"{_ONE}/status")
@permitted("alerts.change")
def change_status(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the status of an alert."""
    with refusals_shown(ConflictError):
        batch = give_status(work(), project, iid, request.form.get("status", ""))
        flash_change(f"The alert is {batch.status} now.", batch)
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/assignee")
@permitted("alerts.change")
def assign(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Assign an alert to a user, or to nobody."""
    with refusals_shown(InvalidError):
        assign_alert(work(), project, iid, request.form.get("assignee", ""))
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/notes")
@permitted("alert_activity.create_note")
def write_note(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Add a note to an alert."""
    new = AlertNoteBody.model_construct(body=request.form.get("text", ""))
    with refusals_shown(InvalidError):
        actions.create_note(work(), project, iid, new)
    return _to_alert(project, iid, part="activity")


@alert_changes.post(f"{_ONE}/delete")
@permitted("alerts.delete")
def delete(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Delete an alert with its activity, and return to the list."""
    actions.delete_alert(work(), project, iid)
    flash(f"Alert #{iid} was deleted.")
    return redirect(url_for("alerts.index", project_path=project.path))


def _to_alert(project: ProjectView, iid: int, *, part: str | None = None) -> ResponseReturnValue:
    return redirect(url_for("alerts.show", project_path=project.path, iid=iid, _anchor=part))
