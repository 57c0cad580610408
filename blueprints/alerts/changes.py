"""The actions of users on alerts: change the status, assign, add notes."""

from urllib.parse import parse_qsl

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.alerts.handling.assignments import assign as assign_alert
from domain.alerts.handling.notes import add_note
from domain.alerts.handling.removal import delete_alert
from domain.alerts.handling.status import StatusChange, StatusChangeResult, change_statuses
from domain.alerts.handling.status import change_status as change
from domain.alerts.listing.queries import LARGEST_IID
from domain.audit.events import Actor
from domain.errors import ConflictError, InvalidError
from domain.projects.views import ProjectView
from forms.alert_query import read_query
from web.access.marks import get_current_user, project_member
from web.alerts.alert_audit import record_deletion
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.filters import pluralize, visible
from web.services import now

alert_changes = PageBlueprint(
    "alert_changes", __name__, url_prefix="/<names:project_path>/-/alerts"
)
_ONE = f"/<int(max={LARGEST_IID}):iid>"


@alert_changes.post("/status")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def change_several(project: ProjectView) -> ResponseReturnValue:
    """Change the status of the selected alerts, and return to the list."""
    back = MultiDict(parse_qsl(request.form.get("back", "")))
    query = read_query(back, project_id=project.id)
    wanted = StatusChange(status=request.form.get("status", ""), by=_me())
    iids = [int(text) for text in request.form.getlist("iid") if _is_iid(text)]
    outcome = change_statuses(project.id, iids, wanted, session=db.session(), now=now())
    _flash_outcome(outcome, wanted.status)
    return redirect(url_for("alerts.index", project_path=project.path, **query.arguments))


def _is_iid(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= LARGEST_IID  # noqa: PLR2004 - 32 bits


def _flash_outcome(outcome: StatusChangeResult, status: str) -> None:
    if outcome.done:
        flash(f"{pluralize(len(outcome.done), 'alert')} {_is(outcome.done)} {status} now.")
    if outcome.conflicts:
        names = ", ".join(f"#{iid} “{visible(title)}”" for iid, title in outcome.conflicts)
        flash(
            f"Left as {'it was' if len(outcome.conflicts) == 1 else 'they were'}: {names}. "
            "Another open alert has the same fingerprint.",
            "error",
        )
    if not (outcome.done or outcome.conflicts):
        flash("Select alerts first.", "warning")


def _is(done: tuple[int, ...]) -> str:
    return "is" if len(done) == 1 else "are"


@alert_changes.post(f"{_ONE}/status")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def change_status(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the status of an alert."""
    wanted = StatusChange(status=request.form.get("status", ""), by=_me())
    try:
        change(project.id, iid, wanted, session=db.session(), now=now())
    except ConflictError as error:
        flash(str(error), "error")
    else:
        flash(f"The alert is {wanted.status} now.")
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/assignee")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def assign(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Assign an alert to a user, or to nobody."""
    name = request.form.get("assignee", "")
    try:
        assign_alert(project, iid, name, by=_me(), session=db.session(), now=now())
    except InvalidError as error:
        flash(str(error), "error")
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/notes")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_ALERTS)
def write_note(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Add a note to an alert."""
    text = request.form.get("text", "")
    try:
        add_note(project.id, iid, text, by=_me(), session=db.session(), now=now())
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


def _me() -> Actor:
    return Actor(id=get_current_user().id, name=get_current_user().username)


def _to_alert(project: ProjectView, iid: int, *, part: str | None = None) -> ResponseReturnValue:
    return redirect(url_for("alerts.show", project_path=project.path, iid=iid, _anchor=part))
