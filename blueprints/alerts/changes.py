"""The actions of users on alerts: change the status, assign, add notes."""

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.alerts.bulk_changes import change_alerts, flash_change, list_arguments, me
from blueprints.alerts.list_pages import ProjectAlertList
from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.alerts.handling.assignments import assign as assign_alert
from domain.alerts.handling.batch_rows import BatchOrder
from domain.alerts.handling.batches import change_selected
from domain.alerts.handling.notes import add_note
from domain.alerts.handling.removal import delete_alert
from domain.alerts.listing.queries import LARGEST_IID
from domain.errors import InvalidError, NotFoundError
from domain.projects.views import ProjectView
from web.access.marks import project_member
from web.alerts.alert_audit import record_deletion
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now

alert_changes = PageBlueprint(
    "alert_changes", __name__, url_prefix="/<names:project_path>/-/alerts"
)
_ONE = f"/<int(max={LARGEST_IID}):iid>"


@alert_changes.post("/status")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def change_several(project: ProjectView) -> ResponseReturnValue:
    """Change the selected alerts, or all that match, and return to the list."""
    listing = ProjectAlertList(project, list_arguments())
    return change_alerts(listing, field="iid", largest=LARGEST_IID)


@alert_changes.post(f"{_ONE}/status")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def change_status(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the status of an alert."""
    order = BatchOrder(
        status=request.form.get("status", ""), by=me(), project_id=project.id, list_query=""
    )
    batch, outcome = change_selected(order, [iid], session=db.session(), now=now())
    if outcome.conflicts:
        flash("Another open alert has the same fingerprint.", "error")
    elif not outcome.done:
        message = f"Alert {iid} not found in this project."
        raise NotFoundError(message)
    else:
        flash_change(f"The alert is {batch.status} now.", batch)
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/assignee")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def assign(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Assign an alert to a user, or to nobody."""
    name = request.form.get("assignee", "")
    try:
        assign_alert(project, iid, name, by=me(), session=db.session(), now=now())
    except InvalidError as error:
        flash(str(error), "error")
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/notes")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def write_note(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Add a note to an alert."""
    text = request.form.get("text", "")
    try:
        add_note(project.id, iid, text, by=me(), session=db.session(), now=now())
    except InvalidError as error:
        flash(str(error), "error")
    return _to_alert(project, iid, part="activity")


@alert_changes.post(f"{_ONE}/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Delete an alert with its activity, and return to the list."""
    record_deletion(project, delete_alert(project.id, iid, session=db.session()))
    flash(f"Alert #{iid} was deleted.")
    return redirect(url_for("alerts.index", project_path=project.path))


def _to_alert(project: ProjectView, iid: int, *, part: str | None = None) -> ResponseReturnValue:
    return redirect(url_for("alerts.show", project_path=project.path, iid=iid, _anchor=part))
