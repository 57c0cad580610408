"""Escalations that users requested on the web page of an alert and can undo for five seconds.

Pending escalations are stored in the database, so any host can show them and escalate the alerts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, exists, or_, select
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.accounts.users import ACTIVE
from domain.alerts.handling.activity import ActivityEntryKind, add_activity_entry
from domain.alerts.handling.alert_detail import get_alert_id
from domain.core.database.bulk_statements import build_session_insert
from domain.core.due_time_sql import NOW, Moment, build_time_from_now
from domain.core.errors import ConflictError, DomainError, ForbiddenError
from domain.paging.escalations.manual_actions import escalate_alert, lock_escalatable_alert
from domain.projects.access import get_project
from domain.projects.views import ProjectView, Viewer
from models import Alert, Escalation, PendingEscalation, Project, User

#: Time for which a user can undo an escalation.
UNDO_PERIOD = timedelta(seconds=5)
#: Maximum time until a pending escalation is due. A later due time was written by a host whose
#: clock was ahead.
_MAX_CLOCK_LEAD = timedelta(minutes=1)
#: Maximum number of escalations that the worker reads at a time.
_BATCH_SIZE = 100


@dataclass(frozen=True, kw_only=True)
class PendingEscalationView:
    """An escalation that can still be undone."""

    #: Name of the user who requested the escalation.
    by: str
    due_at: datetime


def _is_due(now: Moment) -> ColumnElement[bool]:
    is_too_late = PendingEscalation.due_at > build_time_from_now(now, _MAX_CLOCK_LEAD)
    return or_(PendingEscalation.due_at <= now, is_too_late)


#: Condition that is true if a pending escalation is due, so it can no longer be undone.
PENDING_ESCALATIONS_ARE_DUE = exists().where(_is_due(NOW))


@action("alerts.escalate")
def request_escalation(work: UnitOfWork, project: ProjectView, iid: int) -> PendingEscalationView:
    """Escalate an alert in five seconds, unless a user undoes the escalation.

    Nothing changes if an escalation was already requested. Raise NotFoundError if there is no such
    alert, or ConflictError if there is no step to take.
    """
    _, alert = lock_escalatable_alert(work, project, iid)
    asked = {
        "alert_id": alert.id,
        "status": alert.status,
        "asked_by_id": work.actor.id,
        "due_at": work.now + UNDO_PERIOD,
    }
    insert = build_session_insert(PendingEscalation, session=work.session)
    work.session.execute(insert.values(asked).on_conflict_do_nothing())
    found = find_pending_escalation(alert.id, session=work.session)
    return found or PendingEscalationView(by=work.actor.name, due_at=work.now)


@action("alerts.escalate")
def undo_escalation(work: UnitOfWork, project: ProjectView, iid: int) -> bool:
    """Cancel the pending escalation of an alert.

    Return False if no escalation was pending. Raise NotFoundError if there is no such alert.
    """
    alert_id = get_alert_id(project.id, iid, session=work.session)
    own = PendingEscalation.alert_id == alert_id
    locked = select(PendingEscalation.alert_id).where(own).with_for_update()
    if work.session.scalar(locked) is None:
        return False
    work.session.execute(delete(PendingEscalation).where(own))
    return True


def find_pending_escalation(alert_id: int, *, session: Session) -> PendingEscalationView | None:
    """Return the pending escalation of an alert, or None."""
    row = session.execute(
        select(PendingEscalation.due_at, User.username)
        .outerjoin(User, User.id == PendingEscalation.asked_by_id)
        .where(PendingEscalation.alert_id == alert_id)
    ).first()
    return None if row is None else PendingEscalationView(by=row.username or "", due_at=row.due_at)


def find_due_pending_escalations(*, session: Session, now: datetime) -> Sequence[int]:
    """Return the IDs of alerts whose pending escalations are due."""
    due = select(PendingEscalation.alert_id).where(_is_due(now))
    return session.scalars(due.order_by(PendingEscalation.due_at).limit(_BATCH_SIZE)).all()


def escalate_pending_alert(work: UnitOfWork, alert_id: int) -> bool:
    """Escalate an alert for the user who requested the escalation.

    Return whether a due request existed. If the alert cannot be escalated, the reason is added to
    the activity of the alert. Requests that another worker has locked are skipped.
    """
    session = work.session
    # Lock the escalation before the pending escalation, as in the actions above.
    session.execute(select(Escalation.id).where(Escalation.alert_id == alert_id).with_for_update())
    row = session.scalar(
        select(PendingEscalation)
        .where(PendingEscalation.alert_id == alert_id, _is_due(work.now))
        .with_for_update(skip_locked=True)
    )
    if row is None:
        return False
    asked_by, status = session.get(User, row.asked_by_id), row.status
    session.delete(row)
    session.flush()
    if asked_by is None:
        return True
    own = work.with_actor(asked_by.id, asked_by.username)
    try:
        _escalate_for_user(own, alert_id, asked_by, status)
    except DomainError as error:
        text = f"requested an escalation, which was canceled. {error}"
        by = own.actor.source.actor
        add_activity_entry(
            alert_id, ActivityEntryKind.HANDLING, text, by=by, session=session, now=work.now
        )
    return True


def _escalate_for_user(
    unit_of_work: UnitOfWork, alert_id: int, asked_by: User, status: str
) -> None:
    alert = unit_of_work.session.execute(
        select(Alert.iid, Alert.status, Project.path)
        .join(Project, Project.id == Alert.project_id)
        .where(Alert.id == alert_id)
    ).one()
    if asked_by.state != ACTIVE:
        raise ForbiddenError("The account is no longer active.")
    if alert.status != status:
        raise ConflictError(f"The alert is {alert.status} now.")
    viewer = Viewer(user_id=asked_by.id, is_admin=asked_by.is_admin, today=unit_of_work.now.date())
    project = get_project(alert.path, viewer, session=unit_of_work.session)
    escalate_alert(unit_of_work, project, alert.iid)
