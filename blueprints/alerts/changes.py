"""Views that change alerts, in lists or on an alert's page, and views that save filters."""

from datetime import datetime
from urllib.parse import parse_qsl, urlencode

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from blueprints.alerts.list_pages import AlertList, AllAlertsList, ProjectAlertList
from domain.access.roles import Ability, Role
from domain.alerts.handling import actions
from domain.alerts.handling.batch_actions import assign_alert, set_alert_status, undo_batch
from domain.alerts.handling.batches import (
    BatchRequest,
    BatchView,
    change_all_matching_alerts,
    change_selected_alerts,
    get_batch,
)
from domain.alerts.handling.status import SAME_FINGERPRINT, StatusChange, StatusChangeResult
from domain.alerts.handling.types import AlertNoteBody
from domain.alerts.listing.queries import MAX_IID, count_matching_alerts
from domain.alerts.listing.saved_filters import delete_filter, save_filter
from domain.audit.events import EventActor
from domain.core.database.pagination import parse_id
from domain.core.errors import ConflictError, InvalidError
from domain.core.time_zones import convert_to_utc, get_zone
from domain.core.types.validation import validate_body
from domain.paging.escalations import manual_actions, undoable_escalations
from domain.paging.escalations.types import AlertPageBody, AlertSnooze
from domain.projects.views import ProjectView
from forms.alerts import parse_alert_list_query, parse_alert_list_query_for_all_projects
from web.access.decorators import (
    get_current_user,
    permission_required,
    project_role_required,
    sign_in_required,
)
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.pages.templating import pluralize, replace_invisible_text
from web.services import get_current_time

_ALERT_PATH = f"/<int(max={MAX_IID}):iid>"
_PROJECT_LIST_PATH = "/<names:project_path>/-/alerts"
_ALL_LIST_PATH = "/-/alerts"


def parse_list_arguments() -> MultiDict[str, str]:
    """Return the query arguments of the list that contained the form."""
    return MultiDict(parse_qsl(request.form.get("back", "")))


def change_alerts(listing: AlertList, *, field: str, largest: int) -> ResponseReturnValue:
    """Change the selected alerts, or all matching alerts after a confirmation.

    `field` is the form field with the numbers of selected alerts. Numbers above `largest` are
    ignored.
    """
    order = BatchRequest(
        status=request.form.get("status", ""),
        by=get_acting_user(),
        project_id=listing.project.id if listing.project else None,
        list_query=urlencode(listing.query.query_parameters),
    )
    if "every" in request.form:
        return _confirm_or_change_all(listing, order)
    numbers = [parse_id(text) for text in request.form.getlist(field)]
    selected = [number for number in numbers if number is not None and number <= largest]
    batch, outcome = change_selected_alerts(
        order, selected, session=db.session(), now=get_current_time()
    )
    _flash_change_result(outcome, batch)
    return redirect(listing.build_url(**listing.query.query_parameters))


def _confirm_or_change_all(listing: AlertList, order: BatchRequest) -> ResponseReturnValue:
    change: StatusChange = order.change
    if "confirmed" not in request.form:
        matching = count_matching_alerts(listing.query.wanted, session=db.session())
        return render_template(
            "alerts/confirm_change.html",
            listing=listing,
            project=listing.project,
            status=change.status,
            matching="all matching alerts" if matching is None else pluralize(matching, "alert"),
            back=order.list_query,
        )
    batch = change_all_matching_alerts(
        order,
        listing.query.wanted,
        path=listing.query.project,
        session=db.session(),
        now=get_current_time(),
    )
    return redirect_after_batch(batch, listing.build_url(**listing.query.query_parameters))


def redirect_after_batch(batch: BatchView, list_url: str) -> ResponseReturnValue:
    """Redirect to the list with the result, or to the progress page of the batch."""
    if batch.is_in_progress:
        return redirect(url_for("alert_batches.show", batch_id=batch.id))
    flash_batch_result(batch)
    return redirect(list_url)


def flash_batch_result(batch: BatchView) -> None:
    """Show the result of a finished batch in messages on the next page."""
    if batch.restored or batch.kept:
        flash(f"{pluralize(batch.restored, 'alert was', 'alerts were')} restored.")
        if batch.kept:
            kept = pluralize(batch.kept, "alert was", "alerts were")
            they_have = "it has" if batch.kept == 1 else "they have"
            flash(f"{kept} not restored because {they_have} changed since.", "warning")
        return
    flash_with_undo(_format_change_message(batch.changed, batch.status), batch)
    if batch.left:
        flash(
            f"{pluralize(batch.left, 'alert was', 'alerts were')} not changed: "
            "another unresolved alert has the same fingerprint.",
            "error",
        )


def flash_with_undo(text: str, batch: BatchView, *, iid: int | None = None) -> None:
    """Show a result with a button that undoes the change (templates/layout.html).

    `iid` is the number of the alert if the change was made on the page of an alert, not in a list.
    """
    if batch.can_be_undone:
        flash(text, "undo:" + url_for("alert_batches.undo", batch_id=batch.id, alert=iid))
    else:
        flash(text)


def _flash_change_result(outcome: StatusChangeResult, batch: BatchView) -> None:
    if outcome.done:
        flash_with_undo(_format_change_message(len(outcome.done), batch.status), batch)
    if outcome.conflicts:
        names = ", ".join(
            f"#{iid} “{replace_invisible_text(title)}”" for iid, title in outcome.conflicts
        )
        flash(f"Not changed: {names}. {SAME_FINGERPRINT}", "error")
    if not (outcome.done or outcome.conflicts):
        flash("Select alerts first.", "warning")


def _format_change_message(number: int, status: str) -> str:
    return f"{pluralize(number, 'alert is', 'alerts are')} now {status}."


def get_acting_user() -> EventActor:
    """Return the signed-in user as the actor of a change."""
    return EventActor(id=get_current_user().id, name=get_current_user().username)


alert_changes = PageBlueprint(
    "alert_changes", __name__, url_prefix="/<names:project_path>/-/alerts"
)


@alert_changes.post("/status")
@permission_required("alerts.change_several")
def change_several(project: ProjectView) -> ResponseReturnValue:
    """Change the selected alerts or all matching alerts, and return to the list."""
    listing = ProjectAlertList(project, parse_list_arguments())
    return change_alerts(listing, field="iid", largest=MAX_IID)


@alert_changes.post(f"{_ALERT_PATH}/status")
@permission_required("alerts.change")
def change_status(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Change the status of an alert."""
    with show_errors_on_next_page(ConflictError):
        batch = set_alert_status(get_unit_of_work(), project, iid, request.form.get("status", ""))
        flash_with_undo(f"The alert is now {batch.status}.", batch, iid=iid)
    return _redirect_to_alert(project, iid)


@alert_changes.post(f"{_ALERT_PATH}/assignee")
@permission_required("alerts.change")
def assign(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Assign an alert to a user, or remove the assignee."""
    with show_errors_on_next_page(InvalidError):
        assign_alert(get_unit_of_work(), project, iid, request.form.get("assignee", ""))
    return _redirect_to_alert(project, iid)


@alert_changes.post(f"{_ALERT_PATH}/notes")
@permission_required("alert_activity.create_note")
def write_note(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Add a note to an alert."""
    new = AlertNoteBody.model_construct(body=request.form.get("text", ""))
    with show_errors_on_next_page(InvalidError):
        actions.create_note(get_unit_of_work(), project, iid, new)
    return _redirect_to_alert(project, iid, part="timeline")


@alert_changes.post(f"{_ALERT_PATH}/delete")
@permission_required("alerts.delete")
def delete(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Delete an alert with its activity, and return to the list."""
    actions.delete_alert(get_unit_of_work(), project, iid)
    flash(f"Alert #{iid} was deleted.")
    return redirect(url_for("alerts.index", project_path=project.path))


@alert_changes.post(f"{_ALERT_PATH}/escalate")
@permission_required("alerts.escalate")
def escalate(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Escalate an alert after five seconds.

    Until then, the user can undo the escalation.
    """
    with show_errors_on_next_page(ConflictError):
        undoable_escalations.request_escalation(get_unit_of_work(), project, iid)
    return _redirect_to_alert(project, iid)


@alert_changes.post(f"{_ALERT_PATH}/escalate/undo")
@permission_required("alerts.escalate")
def undo_escalation(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Cancel an escalation that has not happened yet."""
    if undoable_escalations.undo_escalation(get_unit_of_work(), project, iid):
        flash("The escalation was canceled. Nobody else was paged.")
    else:
        message = "Nothing to undo: the escalation was already undone or has already happened."
        flash(message, "warning")
    return _redirect_to_alert(project, iid)


@alert_changes.post(f"{_ALERT_PATH}/<any(wake, renew):verb>")
@permission_required("alerts.escalate")
def handle(project: ProjectView, iid: int, verb: str) -> ResponseReturnValue:
    """End the snooze of an alert, or renew its acknowledgement."""
    act, done = _HANDLING_ACTIONS[verb]
    with show_errors_on_next_page(ConflictError):
        act(get_unit_of_work(), project, iid)
        flash(done)
    return _redirect_to_alert(project, iid)


_HANDLING_ACTIONS = {
    "wake": (manual_actions.end_snooze, "The alert is triggered again, and paging starts over."),
    "renew": (manual_actions.renew_acknowledgement, "Acknowledgement renewed."),
}


@alert_changes.post(f"{_ALERT_PATH}/page")
@permission_required("alerts.page")
def page_selected_user(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Page a user about an alert."""
    with show_errors_on_next_page(InvalidError):
        body = validate_body(AlertPageBody, {"user": request.form.get("user", "")})
        manual_actions.page_user(get_unit_of_work(), project, iid, body)
        flash(f"@{body.user} is being paged.")
    return _redirect_to_alert(project, iid)


@alert_changes.post(f"{_ALERT_PATH}/snooze")
@permission_required("alerts.snooze")
def snooze(project: ProjectView, iid: int) -> ResponseReturnValue:
    """Snooze an alert for a duration or until a given time."""
    with show_errors_on_next_page(InvalidError):
        manual_actions.snooze_alert(get_unit_of_work(), project, iid, _parse_requested_snooze())
        flash("The alert is snoozed.")
    return _redirect_to_alert(project, iid)


def _parse_requested_snooze() -> AlertSnooze:
    """Return the requested snooze, which ends after a duration, tomorrow, or at a local time."""
    chosen = request.form.get("for", "")
    if chosen == "tomorrow":
        return AlertSnooze(tomorrow=True)
    if chosen != "until":
        return validate_body(AlertSnooze, {"duration": chosen})
    try:
        local = datetime.fromisoformat(request.form.get("until", ""))
    except ValueError as error:
        raise InvalidError("Enter the time at which the snooze ends.", field="until") from error
    until = convert_to_utc(local.replace(tzinfo=None), get_zone(get_current_user().time_zone))
    return AlertSnooze(until=until)


def _redirect_to_alert(
    project: ProjectView, iid: int, *, part: str | None = None
) -> ResponseReturnValue:
    return redirect(url_for("alerts.show", project_path=project.path, iid=iid, _anchor=part))


alert_batches = PageBlueprint("alert_batches", __name__, url_prefix="/-/alert_changes")


@alert_batches.get("/<int:batch_id>")
@sign_in_required
def show(batch_id: int) -> ResponseReturnValue:
    """Show the progress of a batch that the user started.

    The page's script polls for updates.
    """
    batch = get_batch(batch_id, get_current_user().id, session=db.session(), now=get_current_time())
    return render_template("alerts/batch.html", batch=batch, list_url=_build_list_url(batch))


@alert_batches.post("/<int:batch_id>/undo")
@sign_in_required
def undo(batch_id: int) -> ResponseReturnValue:
    """Restore the previous status of each alert in a batch.

    Alerts that have changed since the batch are not restored.
    """
    batch = get_batch(batch_id, get_current_user().id, session=db.session(), now=get_current_time())
    iid, path = request.args.get("alert", type=int), batch.project_path
    back = url_for("alerts.show", project_path=path, iid=iid) if iid and path else None
    undone = undo_batch(get_unit_of_work(), batch_id)
    return redirect_after_batch(undone, back or _build_list_url(batch))


def _build_list_url(batch: BatchView) -> str:
    """Return the URL of the list in which the change was made."""
    given = MultiDict(parse_qsl(batch.list_query))
    if batch.project_path is None:
        return url_for(
            "all_alerts.index", **parse_alert_list_query_for_all_projects(given).query_parameters
        )
    arguments = parse_alert_list_query(given, project_id=0).query_parameters
    return url_for("alerts.index", project_path=batch.project_path, **arguments)


alert_list_settings = PageBlueprint("alert_list_settings", __name__)
_require_developer = project_role_required(
    at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS, in_archived=True
)


@alert_list_settings.post(f"{_PROJECT_LIST_PATH}/filters")
@_require_developer
def save(project: ProjectView) -> ResponseReturnValue:
    """Save the filters of a project's alert list under a name."""
    return _save_list_filter(ProjectAlertList(project, parse_list_arguments()))


@alert_list_settings.post(f"{_ALL_LIST_PATH}/filters")
@sign_in_required
def save_for_all_projects() -> ResponseReturnValue:
    """Save the filters of the list for all projects under a name."""
    return _save_list_filter(AllAlertsList(parse_list_arguments()))


def _save_list_filter(listing: AlertList) -> ResponseReturnValue:
    arguments = {name: str(value) for name, value in listing.query.query_parameters.items()}
    name, is_shared = request.form.get("name", ""), "shared" in request.form
    with show_errors_on_next_page(InvalidError):
        name = save_filter(
            get_unit_of_work(), listing.project, name, arguments, is_shared=is_shared
        )
        flash(f"Filter “{name}” saved.")
    return redirect(listing.build_url(**listing.query.query_parameters))


@alert_list_settings.post(f"{_PROJECT_LIST_PATH}/filters/<int:filter_id>/delete", endpoint="delete")
@_require_developer
def delete_saved(project: ProjectView, filter_id: int) -> ResponseReturnValue:
    """Delete a saved filter from a project's alert list."""
    return _delete_list_filter(ProjectAlertList(project, parse_list_arguments()), filter_id)


@alert_list_settings.post(f"{_ALL_LIST_PATH}/filters/<int:filter_id>/delete")
@sign_in_required
def delete_for_all_projects(filter_id: int) -> ResponseReturnValue:
    """Delete a saved filter from the list for all projects."""
    return _delete_list_filter(AllAlertsList(parse_list_arguments()), filter_id)


def _delete_list_filter(listing: AlertList, filter_id: int) -> ResponseReturnValue:
    name = delete_filter(get_unit_of_work(), listing.project, filter_id)
    flash(f"Filter “{name}” deleted.")
    return redirect(listing.build_url(**listing.query.query_parameters))
