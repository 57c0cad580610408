"""Actions that change several alerts, and actions for buttons on web pages."""

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.alerts.handling.assignments import set_assignee
from domain.alerts.handling.batches import (
    BatchRequest,
    BatchView,
    change_selected_alerts,
    find_last_batch,
    get_batch,
    start_undo,
)
from domain.alerts.handling.status import (
    SAME_FINGERPRINT,
    StatusChange,
    StatusChangeResult,
    change_alert_statuses,
    change_locked_alerts,
    lock_project_alerts,
)
from domain.alerts.handling.types import (
    MAX_ALERTS_PER_CHANGE,
    AlertStatusBody,
    StatusConflict,
    StatusReport,
)
from domain.alerts.listing.queries import list_alerts
from domain.alerts.listing.sort_orders import NEWEST_FIRST, AlertSlice, parse_sort_cursor
from domain.audit.events import EventActor
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.projects.access import get_project
from domain.projects.views import ProjectView, Viewer


@action("alerts.change_several")
def change_alerts_in_batch(
    work: UnitOfWork, project: ProjectView, body: AlertStatusBody
) -> StatusReport:
    """Change the status of several alerts, selected by number or by a filter."""
    if (body.iids is None) == (body.filter is None):
        raise InvalidError("Exactly one of `iids` and `filter` is required.", field="iids")
    change = StatusChange(status=body.status, by=work.actor.source.actor)
    session = work.session
    if body.filter is None:
        given = body.iids or ()
        result = change_alert_statuses(project.id, given, change, session=session, now=work.now)
        return _build_status_report(body, result, None)
    lock_project_alerts(project.id, session=session)
    part = AlertSlice(
        size=MAX_ALERTS_PER_CHANGE, following=parse_sort_cursor(body.cursor, NEWEST_FIRST)
    )
    page = list_alerts(body.filter.build_filter(project.id), part, session=session)
    iids = [row.iid for row in page.items]
    result = change_locked_alerts(project.id, iids, change, session=session, now=work.now)
    return _build_status_report(
        body, result, None if page.next_before is None else str(page.next_before)
    )


def _build_status_report(
    body: AlertStatusBody, result: StatusChangeResult, next_cursor: str | None
) -> StatusReport:
    unchanged, conflicts = set(result.unchanged), dict(result.conflicts)
    found = {*result.done, *conflicts}
    return StatusReport(
        status=body.status,
        changed=tuple(iid for iid in result.done if iid not in unchanged),
        unchanged=result.unchanged,
        conflicts=tuple(StatusConflict(iid=iid, title=title) for iid, title in conflicts.items()),
        not_found=tuple(iid for iid in dict.fromkeys(body.iids or ()) if iid not in found),
        next_cursor=next_cursor,
    )


@action("alerts.change")
def set_alert_status(work: UnitOfWork, project: ProjectView, iid: int, status: str) -> BatchView:
    """Set the status of an alert as a batch, so that the change can be undone.

    Raise InvalidError for an unknown status, ConflictError if another unresolved alert has the same
    fingerprint, and NotFoundError if there is no such alert.
    """
    order = BatchRequest(
        status=status, by=_get_acting_user(work), project_id=project.id, list_query=""
    )
    batch, outcome = change_selected_alerts(order, [iid], session=work.session, now=work.now)
    if outcome.conflicts:
        raise ConflictError(SAME_FINGERPRINT, field="status")
    if not outcome.done:
        raise NotFoundError(f"Alert {iid} not found in this project.")
    # If the same request is sent twice, the second response offers to undo the first request.
    sent_before = find_last_batch(order, iid, session=work.session, now=work.now)
    return (sent_before if outcome.unchanged else None) or batch


@action("alerts.change")
def assign_alert(work: UnitOfWork, project: ProjectView, iid: int, username: str) -> None:
    """Assign an alert to a user, or unassign it.

    Raise InvalidError if alerts cannot be assigned to the user, and NotFoundError if there is no
    such alert.
    """
    set_assignee(work, project, iid, username, by=_get_acting_user(work))


def undo_batch(work: UnitOfWork, batch_id: int) -> BatchView:
    """Start restoring the previous statuses of the alerts in a batch.

    In a batch across all projects, only alerts that the user may still change are restored. Raise
    NotFoundError if the user has no such batch, and InvalidError if it cannot be undone. Raise
    ForbiddenError if the user may no longer change alerts in the batch's project.
    """
    by, session = _get_acting_user(work), work.session
    path = get_batch(batch_id, by.id, session=session, now=work.now).project_path
    if path is None:
        return start_undo(batch_id, by, session=session, now=work.now)
    viewer = Viewer(user_id=by.id, is_admin=work.actor.is_admin, today=work.now.date())
    return _undo_in_project(work, get_project(path, viewer, session=session), batch_id)


@action("alerts.change_several")
def _undo_in_project(work: UnitOfWork, project: ProjectView, batch_id: int) -> BatchView:
    """Start to undo a batch whose alerts all belong to one project."""
    del project  # The project is only used for the permission check.
    return start_undo(batch_id, _get_acting_user(work), session=work.session, now=work.now)


def _get_acting_user(work: UnitOfWork) -> EventActor:
    return EventActor(id=work.actor.id or 0, name=work.actor.name)
