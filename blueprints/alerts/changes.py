"""Changes to alerts, in lists and on an alert's page, and saved filters."""

from datetime import datetime
from urllib.parse import parse_qsl, urlencode

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from blueprints.alerts.list_pages import AlertList, AllAlertsList, ProjectAlertList
from domain.access.roles import Ability, Role
from domain.alerts.handling import actions
from domain.alerts.handling.batch_actions import assign_alert, give_status, undo_batch
from domain.alerts.handling.batches import (
    BatchOrder,
    BatchView,
    change_all_matching,
    change_selected,
    get_batch,
)
from domain.alerts.handling.status import StatusChange, StatusChangeResult
from domain.alerts.handling.types import AlertNoteBody
from domain.alerts.listing.queries import LARGEST_IID, count_matching
from domain.alerts.listing.saved_filters import delete_filter, save_filter
from domain.audit.events import Actor
from domain.core.database.paging import parse_id
from domain.core.errors import ConflictError, InvalidError
from domain.core.time_zones import instant, zone
from domain.core.types.reading import read_body
from domain.paging.escalations import manual_actions, pending
from domain.paging.escalations.types import AlertPageBody, AlertSnooze
from domain.projects.views import ProjectView
from forms.alerts import read_query, read_query_across
from web.access.decorators import get_current_user, permitted, project_member, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.templating import pluralize, visible
from web.services import now

_ONE = f"/<int(max={LARGEST_IID}):iid>"
_OF_PROJECT = "/<names:project_path>/-/alerts"
_OF_ALL = "/-/alerts"


def list_arguments() -> MultiDict[str, str]:
    """Return the query arguments of the list that the form was on."""
    return MultiDict(parse_qsl(request.form.get("back", "")))


def change_alerts(listing: AlertList, *, field: str, largest: int) -> ResponseReturnValue:
    """Change the selected alerts, or all matching alerts after a confirmation.

    `field` is the form field with the number of a selected alert. Numbers above `largest` are
    ignored.
    """
    order = BatchOrder(
        status=request.form.get("status", ""),
        by=me(),
        project_id=listing.project.id if listing.project else None,
        list_query=urlencode(listing.query.arguments),
    )
    if "every" in request.form:
        return _change_every(listing, order)
    numbers = [parse_id(text) for text in request.form.getlist(field)]
    selected = [number for number in numbers if number is not None and number <= largest]
    batch, outcome = change_selected(order, selected, session=db.session(), now=now())
    _flash_outcome(outcome, batch)
    return redirect(listing.url(**listing.query.arguments))


def _change_every(listing: AlertList, order: BatchOrder) -> ResponseReturnValue:
    change: StatusChange = order.change
    if "confirmed" not in request.form:
        matching = count_matching(listing.query.wanted, session=db.session())
        return render_template(
            "alerts/confirm_change.html",
            listing=listing,
            project=listing.project,
            status=change.status,
            matching="all matching alerts" if matching is None else pluralize(matching, "alert"),
            back=order.list_query,
        )
    batch = change_all_matching(
        order,
        listing.query.wanted,
        path=listing.query.project,
        session=db.session(),
        now=now(),
    )
    return after_batch(batch, listing.url(**listing.query.arguments))


def after_batch(batch: BatchView, list_url: str) -> ResponseReturnValue:
    """Redirect to the list with the result, or to the progress page of the batch."""
    if batch.is_under_way:
        return redirect(url_for("alert_batches.show", batch_id=batch.id))
    flash_batch(batch)
    return redirect(list_url)


def flash_batch(batch: BatchView) -> None:
    """Show the result of a finished batch."""
    if batch.restored or batch.kept:
        flash(f"{pluralize(batch.restored, 'alert was', 'alerts were')} restored.")
        if batch.kept:
            kept = pluralize(batch.kept, "alert was", "alerts were")
            they_have = "it has" if batch.kept == 1 else "they have"
            flash(f"{kept} not restored because {they_have} changed since.", "warning")
        return
    flash_change(_done(batch.changed, batch.status), batch)
    if batch.left:
        flash(
            f"{pluralize(batch.left, 'alert was', 'alerts were')} not changed: "
            "another open alert has the same fingerprint.",
            "error",
        )


def flash_change(text: str, batch: BatchView) -> None:
    """Show a result with a button that undoes the change (templates/layout.html)."""
    if batch.can_be_undone:
        flash(text, "undo:" + url_for("alert_batches.undo", batch_id=batch.id))
    else:
        flash(text)


def _flash_outcome(outcome: StatusChangeResult, batch: BatchView) -> None:
    if outcome.done:
        flash_change(_done(len(outcome.done), batch.status), batch)
    if outcome.conflicts:
        names = ", ".join(f"#{iid} “{visible(title)}”" for iid, title in outcome.conflicts)
        flash(f"Not changed: {names}. Another open alert has the same fingerprint.", "error")
    if not (outcome.done or outcome.conflicts):
        flash("Select alerts first.", "warning")


def _done(number: int, status: str) -> str:
    return f"{pluralize(number, 'alert is', 'alerts are')} now {status}."


def me() -> Actor:
    """Return the signed-in user as the actor of a change."""
    return Actor(id=get_current_user().id, name=get_current_user().username)


alert_changes = PageBlueprint(
    "alert_changes", __name__, url_prefix="/<names:project_path>/-/alerts"
)


@alert_changes.post("/status")
@permitted("alerts.change_several")
def change_several(project: ProjectView) -> ResponseReturnValue:
    """Change the selected or all matching alerts, and return to the list."""
    listing = ProjectAlertList(project, list_arguments())
    return change_alerts(listing, field="iid", largest=LARGEST_IID)


@alert_changes.post(f"{_ONE}/status")
@permitted("alerts.change")
def change_status(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the status of an alert."""
    with refusals_shown(ConflictError):
        batch = give_status(work(), project, iid, request.form.get("status", ""))
        flash_change(f"The alert is now {batch.status}.", batch)
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/assignee")
@permitted("alerts.change")
def assign(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Assign an alert to a user, or remove the assignee."""
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
    return _to_alert(project, iid, part="timeline")


@alert_changes.post(f"{_ONE}/delete")
@permitted("alerts.delete")
def delete(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Delete an alert with its activity, and return to the list."""
    actions.delete_alert(work(), project, iid)
    flash(f"Alert #{iid} was deleted.")
    return redirect(url_for("alerts.index", project_path=project.path))


@alert_changes.post(f"{_ONE}/escalate")
@permitted("alerts.escalate")
def escalate(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Escalate an alert after five seconds, during which the user can undo it."""
    with refusals_shown(ConflictError):
        pending.ask_to_escalate(work(), project, iid)
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/escalate/undo")
@permitted("alerts.escalate")
def undo_escalation(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Cancel an escalation that has not happened yet."""
    if pending.undo_escalation(work(), project, iid):
        flash("The escalation was cancelled. Nobody else was paged.")
    else:
        message = "Nothing to undo: the escalation was already undone or has already happened."
        flash(message, "warning")
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/<any(wake, renew):verb>")
@permitted("alerts.escalate")
def handle(project: ProjectView, iid: int, verb: str) -> ResponseReturnValue:
    """End the snooze of an alert, or renew its acknowledgement."""
    act, done = _VERBS[verb]
    with refusals_shown(ConflictError):
        act(work(), project, iid)
        flash(done)
    return _to_alert(project, iid)


_VERBS = {
    "wake": (manual_actions.wake_alert, "The alert is triggered again, and paging starts over."),
    "renew": (manual_actions.renew_acknowledgement, "Acknowledgement renewed."),
}


@alert_changes.post(f"{_ONE}/page")
@permitted("alerts.page")
def page_person(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Page a user about an alert."""
    with refusals_shown(InvalidError):
        body = read_body(AlertPageBody, {"user": request.form.get("user", "")})
        manual_actions.page_person(work(), project, iid, body)
        flash(f"@{body.user} is being paged.")
    return _to_alert(project, iid)


@alert_changes.post(f"{_ONE}/snooze")
@permitted("alerts.snooze")
def snooze(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Snooze an alert for a while."""
    with refusals_shown(InvalidError):
        manual_actions.snooze_alert(work(), project, iid, _asked_snooze())
        flash("The alert is snoozed.")
    return _to_alert(project, iid)


def _asked_snooze() -> AlertSnooze:
    """Return the requested snooze: a duration, until tomorrow, or until a local time."""
    chosen = request.form.get("for", "")
    if chosen == "tomorrow":
        return AlertSnooze(tomorrow=True)
    if chosen != "until":
        return read_body(AlertSnooze, {"duration": chosen})
    try:
        local = datetime.fromisoformat(request.form.get("until", ""))
    except ValueError as error:
        raise InvalidError("Enter the end of the snooze.", field="until") from error
    until = instant(local.replace(tzinfo=None), zone(get_current_user().time_zone))
    return AlertSnooze(until=until)


def _to_alert(project: ProjectView, iid: int, *, part: str | None = None) -> ResponseReturnValue:
    return redirect(url_for("alerts.show", project_path=project.path, iid=iid, _anchor=part))


alert_batches = PageBlueprint("alert_batches", __name__, url_prefix="/-/alert_changes")


@alert_batches.get("/<int:batch_id>")
@signed_in
def show(batch_id: int) -> ResponseReturnValue:
    """Show the progress of a batch of the user; the page's script polls for updates."""
    batch = get_batch(batch_id, get_current_user().id, session=db.session(), now=now())
    return render_template("alerts/batch.html", batch=batch, list_url=_list_url(batch))


@alert_batches.post("/<int:batch_id>/undo")
@signed_in
def undo(batch_id: int) -> ResponseReturnValue:
    """Restore the statuses of the alerts, except for alerts that have changed since."""
    batch = get_batch(batch_id, get_current_user().id, session=db.session(), now=now())
    return after_batch(undo_batch(work(), batch_id), _list_url(batch))


def _list_url(batch: BatchView) -> str:
    """Return the address of the list in which the change was made."""
    given = MultiDict(parse_qsl(batch.list_query))
    if batch.project_path is None:
        return url_for("all_alerts.index", **read_query_across(given).arguments)
    arguments = read_query(given, project_id=0).arguments
    return url_for("alerts.index", project_path=batch.project_path, **arguments)


alert_list_settings = PageBlueprint("alert_list_settings", __name__)
_in_project = project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS, in_archived=True)


@alert_list_settings.post(f"{_OF_PROJECT}/filters")
@_in_project
def save(project: ProjectView) -> ResponseReturnValue:
    """Save the filters of the list under a name."""
    return _save(ProjectAlertList(project, list_arguments()))


@alert_list_settings.post(f"{_OF_ALL}/filters")
@signed_in
def save_of_all() -> ResponseReturnValue:
    """Save the filters of the list of all projects under a name."""
    return _save(AllAlertsList(list_arguments()))


def _save(listing: AlertList) -> ResponseReturnValue:
    arguments = {name: str(value) for name, value in listing.query.arguments.items()}
    name, is_shared = request.form.get("name", ""), "shared" in request.form
    with refusals_shown(InvalidError):
        name = save_filter(work(), listing.project, name, arguments, is_shared=is_shared)
        flash(f"Filter “{name}” saved.")
    return redirect(listing.url(**listing.query.arguments))


@alert_list_settings.post(f"{_OF_PROJECT}/filters/<int:filter_id>/delete", endpoint="delete")
@_in_project
def delete_saved(project: ProjectView, filter_id: int) -> ResponseReturnValue:
    """Delete a saved filter."""
    return _delete(ProjectAlertList(project, list_arguments()), filter_id)


@alert_list_settings.post(f"{_OF_ALL}/filters/<int:filter_id>/delete")
@signed_in
def delete_of_all(filter_id: int) -> ResponseReturnValue:
    """Delete a saved filter of the list of all projects."""
    return _delete(AllAlertsList(list_arguments()), filter_id)


def _delete(listing: AlertList, filter_id: int) -> ResponseReturnValue:
    name = delete_filter(work(), listing.project, filter_id)
    flash(f"Filter “{name}” deleted.")
    return redirect(listing.url(**listing.query.arguments))
