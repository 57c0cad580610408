"""Changes the status of alerts on behalf of a user.

Every change is allowed unless two unresolved alerts would have the same fingerprint. Ignored alerts
are unresolved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, case, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import ActivityEntryKind, add_activity_entry
from domain.alerts.handling.types import MAX_ALERTS_PER_CHANGE
from domain.alerts.listing.filters import STATUSES
from domain.audit.events import EventActor
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from models import Alert, AlertCounter

#: Reason for a conflict. The status of the other alert may be `ignored`.
SAME_FINGERPRINT = "Another unresolved alert has the same fingerprint."
#: Maximum number of rows in a statement.
_MAX_ROWS_PER_STATEMENT = 500


@dataclass(frozen=True, kw_only=True)
class StatusChange:
    """A new status for alerts, with the user who sets it and the source of the action."""

    status: str
    #: User who sets the status, or None for the command line.
    by: EventActor | None
    #: Source of the action as a phrase, or None if the user used a web page or a token.
    via: str | None = None

    def __post_init__(self) -> None:
        """Check that the status exists. Raise InvalidError if it is unknown."""
        if self.status not in STATUSES:
            message = f"The status must be one of {', '.join(STATUSES)}."
            raise InvalidError(message, field="status")


@dataclass(frozen=True, kw_only=True)
class AppliedChange:
    """An alert whose status was changed, with its previous state."""

    alert_id: int
    old_status: str
    old_ended_at: datetime | None
    #: ID of the activity entry for the change.
    note_id: int


@dataclass(frozen=True, kw_only=True)
class StatusChangeResult:
    """The alerts that a status change updated, left unchanged, or could not update."""

    #: Numbers (`iid`) of all alerts that have the requested status after the change.
    done: tuple[int, ...]
    #: Numbers of the alerts that already had the requested status.
    unchanged: tuple[int, ...]
    #: Numbers and titles of alerts that were not changed because another unresolved alert has the
    #: same fingerprint.
    conflicts: tuple[tuple[int, str], ...]
    #: Changes that were made, with the data that is needed to undo them.
    made: tuple[AppliedChange, ...] = ()


def change_alert_status(
    project_id: int, iid: int, change: StatusChange, *, session: Session, now: datetime
) -> None:
    """Change the status of an alert.

    Raise ConflictError if another unresolved alert has the same fingerprint, and NotFoundError if
    there is no such alert.
    """
    outcome = change_alert_statuses(project_id, [iid], change, session=session, now=now)
    if outcome.conflicts:
        raise ConflictError(SAME_FINGERPRINT, field="status")
    if not outcome.done:
        raise NotFoundError(f"Alert {iid} not found in this project.")


def change_alert_statuses(
    project_id: int, iids: Sequence[int], change: StatusChange, *, session: Session, now: datetime
) -> StatusChangeResult:
    """Change the status of several alerts. Alerts with a conflict are skipped.

    Raise InvalidError for more than MAX_ALERTS_PER_CHANGE alerts.
    """
    if len(iids) > MAX_ALERTS_PER_CHANGE:
        raise InvalidError(f"Select at most {MAX_ALERTS_PER_CHANGE} alerts.", field="iids")
    lock_project_alerts(project_id, session=session)
    return change_locked_alerts(project_id, iids, change, session=session, now=now)


def change_statuses_in_bulk(
    project_id: int,
    alert_ids: Select[int],
    change: StatusChange,
    *,
    among: Sequence[str],
    session: Session,
    now: datetime,
) -> int:
    """Change the status of alerts whose current status is in `among`, in bulk statements.

    Return the number of changed alerts. The change must not cause conflicts between fingerprints:
    the new status is acknowledged or resolved, and `among` contains only open statuses.
    """
    lock_project_alerts(project_id, session=session)
    is_meant = (Alert.id.in_(alert_ids), Alert.status.in_(among))
    ids = session.scalars(select(Alert.id).where(*is_meant).order_by(Alert.id).with_for_update())
    changed = ids.all()
    # An alert cannot end before its start, which may be in the future.
    ended_at = case((Alert.started_at > now, Alert.started_at), else_=now)
    ends = {"ended_at": ended_at} if change.status == "resolved" else {}
    for begin in range(0, len(changed), _MAX_ROWS_PER_STATEMENT):
        some = changed[begin : begin + _MAX_ROWS_PER_STATEMENT]
        session.execute(
            build_bulk_update(Alert).where(Alert.id.in_(some)).values(status=change.status, **ends)
        )
        for alert_id in some:
            kind, text = ActivityEntryKind.STATUS, change.status
            entry = add_activity_entry(alert_id, kind, text, by=change.by, session=session, now=now)
            entry.via = change.via
    return len(changed)


def lock_project_alerts(project_id: int, *, session: Session) -> None:
    """Lock the alerts of a project.

    The intake also takes this lock before it stores several alerts.
    """
    session.execute(
        select(AlertCounter).where(AlertCounter.project_id == project_id).with_for_update()
    )


def change_locked_alerts(
    project_id: int,
    iids: Sequence[int],
    change: StatusChange,
    *,
    among: Sequence[str] = STATUSES,
    session: Session,
    now: datetime,
) -> StatusChangeResult:
    """Change the status of alerts whose current status is in `among`, skipping conflicts.

    The caller must have locked the alerts of the project.
    """
    alerts = session.scalars(
        select(Alert)
        .where(Alert.project_id == project_id, Alert.iid.in_(iids), Alert.status.in_(among))
        .order_by(Alert.id)
        .with_for_update()
    ).all()
    unchanged = [alert for alert in alerts if alert.status == change.status]
    others = [alert for alert in alerts if alert.status != change.status]
    made, refused = set_statuses(
        dict.fromkeys(others, change.status), change, session=session, now=now
    )
    return StatusChangeResult(
        done=tuple(alert.iid for alert in alerts if alert not in refused),
        unchanged=tuple(alert.iid for alert in unchanged),
        conflicts=tuple((alert.iid, alert.title) for alert in alerts if alert in refused),
        made=made,
    )


def set_statuses(
    wanted: Mapping[Alert, str], change: StatusChange, *, session: Session, now: datetime
) -> tuple[tuple[AppliedChange, ...], frozenset[Alert]]:
    """Set the statuses of locked alerts, and return the changes and the alerts with a conflict.

    Only resolved alerts can cause a conflict, because fingerprints are unique only among unresolved
    alerts.
    """
    before = {alert: (alert.status, alert.ended_at) for alert in wanted}
    refused = frozenset(
        alert
        for alert, status in wanted.items()
        if not _try_set_status(alert, status, session=session, now=now)
    )
    notes = {
        alert: add_activity_entry(
            alert.id, ActivityEntryKind.STATUS, status, by=change.by, session=session, now=now
        )
        for alert, status in wanted.items()
        if alert not in refused
    }
    for note in notes.values():
        note.via = change.via
    session.flush()  # The flush assigns the IDs.
    made = tuple(
        AppliedChange(
            alert_id=alert.id,
            old_status=before[alert][0],
            old_ended_at=before[alert][1],
            note_id=note.id,
        )
        for alert, note in notes.items()
    )
    return made, refused


def _try_set_status(alert: Alert, status: str, *, session: Session, now: datetime) -> bool:
    if alert.status != "resolved":
        _set_status(alert, status, now)
        return True
    try:
        # A unique index prevents a second unresolved alert with the same fingerprint.
        with session.begin_nested():
            _set_status(alert, status, now)
    except IntegrityError:
        return False
    return True


def _set_status(alert: Alert, status: str, now: datetime) -> None:
    alert.status = status
    # An alert cannot end before its start, which may be in the future.
    alert.ended_at = max(now, alert.started_at) if status == "resolved" else None
    alert.recovery_received_at = None
