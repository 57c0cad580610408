"""Escalations that only wait for an end time: acknowledgements that expire, and snoozes.

Like other escalations, these escalations are due at `next_at`, and a single worker processes each
escalation in a transaction. The worker triggers the alert again, which starts a new escalation
(`domain/paging/escalations/lifecycle.py`).
"""

from collections.abc import Collection, Sequence
from datetime import datetime, time, timedelta

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.handling.acknowledgements import find_last_acknowledgements
from domain.alerts.handling.activity import AUTOMATIC_VIA
from domain.alerts.handling.status import StatusChange, change_statuses_in_bulk
from domain.alerts.listing.status_history import find_last_status_changes
from domain.audit.events import EventActor
from domain.core.clock import CLOCK_TOLERANCE
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.paging.escalations.missing_escalations import choose_policies_for_alerts
from domain.paging.escalations.state import (
    EscalationEvent,
    EscalationState,
    find_states_before,
    get_next_state,
)
from domain.paging.notifications.page_queue import cancel_pages
from models import Alert, Escalation, EscalationPolicy, User

ACKNOWLEDGED = "acknowledged"
_TRIGGERED = "triggered"
#: Event that ends each waiting state, and its description in the activity.
_END_EVENTS = {
    EscalationState.ACKNOWLEDGED: (EscalationEvent.LAPSE, "when its acknowledgement expired"),
    EscalationState.SNOOZED: (EscalationEvent.SNOOZE_ENDED, "when its snooze ended"),
}
#: Local time at which a snooze until tomorrow ends.
TOMORROW_SNOOZE_TIME = time(9)
_SEVERITY_INCREASED_VIA = "because it became more severe"
_BECAME_CRITICAL_VIA = "because it became critical"
_CRITICAL_RANK = 0


def is_waiting_for_end_time(row: Escalation) -> bool:
    """Return whether an escalation only waits for its end time."""
    return EscalationState(row.state) in _END_EVENTS


def stop_acknowledged_escalations(
    alert_ids: Collection[int], *, session: Session, now: datetime
) -> None:
    """Stop the locked escalations of acknowledged alerts.

    If a policy has an acknowledgement timeout, its escalations wait until the timeout expires.
    Alerts that have been triggered again are skipped, since the later change is processed
    separately.
    """
    if not alert_ids:
        return
    answered = select(Alert.id).where(Alert.id.in_(alert_ids), Alert.status == ACKNOWLEDGED)
    is_theirs = Escalation.alert_id.in_(answered)
    timed = _start_acknowledgement_timeouts(is_theirs, session=session, now=now)
    session.execute(
        build_bulk_update(Escalation)
        .where(
            is_theirs,
            Escalation.id.not_in(timed),
            Escalation.state.in_(
                find_states_before(EscalationEvent.ANSWERED, EscalationState.STOPPED)
            ),
        )
        .values(state=EscalationState.STOPPED.value, next_at=None, ended_at=now, decided_at=now)
    )
    cancel_pages(sorted(alert_ids), keeps_asked=True, session=session, now=now)


def _start_acknowledgement_timeouts(
    is_theirs: ColumnElement[bool], *, session: Session, now: datetime
) -> list[int]:
    """Start the acknowledgement timeouts of escalations, and return the escalation IDs."""
    states = (
        *find_states_before(EscalationEvent.ANSWERED_WITH_TIMEOUT, EscalationState.ACKNOWLEDGED),
        EscalationState.ACKNOWLEDGED,
    )
    rows = session.execute(
        select(Escalation, EscalationPolicy.acknowledgement_timeout)
        .join(EscalationPolicy, EscalationPolicy.id == Escalation.policy_id)
        .where(
            is_theirs,
            Escalation.state.in_(states),
            EscalationPolicy.acknowledgement_timeout.is_not(None),
        )
    ).all()
    given = find_last_status_changes([row.alert_id for row, _ in rows], session=session)
    for row, seconds in rows:
        note = given.get(row.alert_id)
        row.state = get_next_state(
            EscalationState(row.state), EscalationEvent.ANSWERED_WITH_TIMEOUT
        ).value
        row.answered_by_id = note.user_id if note else None
        row.next_at = (min(note.created_at, now) if note else now) + timedelta(seconds=seconds or 0)
        row.ended_at, row.decided_at = None, now
    session.flush()  # The following statements need the stored rows.
    return [row.id for row, _ in rows]


def retrigger_expired_alerts(
    rows: Sequence[Escalation], *, session: Session, now: datetime
) -> None:
    """Trigger alerts again if their snooze or acknowledgement has expired.

    `rows` are the escalations of the alerts, which the session has locked.
    """
    over: dict[tuple[int, EscalationState], list[int]] = {}
    for row in rows:
        state = EscalationState(row.state)
        ahead = row.decided_at - now if row.decided_at else timedelta()
        if ahead > CLOCK_TOLERANCE and row.next_at is not None:
            row.state, row.next_at = (
                get_next_state(state, EscalationEvent.CLOCK_SET_BACK).value,
                row.next_at - ahead,
            )
        row.decided_at = now
        if row.next_at is not None and row.next_at <= now:
            end_waiting_state(row, _END_EVENTS[state][0], now=now)
            over.setdefault((row.project_id, state), []).append(row.alert_id)
    for (project_id, state), alert_ids in sorted(over.items()):
        _trigger_alerts_automatically(
            project_id, alert_ids, _END_EVENTS[state][1], session=session, now=now
        )


def end_snoozes_on_severity_increase(
    alert_ids: Collection[int], *, session: Session, now: datetime
) -> set[int]:
    """End the snoozes of alerts whose severity has increased, and return the alert IDs.

    The session has locked the escalations of the alerts.
    """
    found = session.execute(
        select(Escalation, Alert.severity)
        .join(Alert, Alert.id == Escalation.alert_id)
        .where(
            Escalation.alert_id.in_(alert_ids), Escalation.state == EscalationState.SNOOZED.value
        )
    ).all()
    if not found:
        return set()
    given = find_last_acknowledgements([row.alert_id for row, _ in found], session=session)
    rows = [
        row
        for row, severity in found
        if row.alert_id not in given or severity < given[row.alert_id].severity
    ]
    for row in rows:
        end_waiting_state(row, EscalationEvent.RAISED, now=now)
    _trigger_alerts_by_project(rows, _SEVERITY_INCREASED_VIA, session=session, now=now)
    return {row.alert_id for row in rows}


def retrigger_critical_alerts(
    alert_ids: Collection[int], *, session: Session, now: datetime, parser_settings: ParserSettings
) -> set[int]:
    """Trigger acknowledged alerts again if they have become critical, and return the alert IDs.

    An alert is triggered again only if its current policy allows this.
    """
    found = session.scalars(
        select(Escalation)
        .join(Alert, Alert.id == Escalation.alert_id)
        .where(
            Escalation.alert_id.in_(alert_ids),
            Escalation.state.in_(
                find_states_before(EscalationEvent.CRITICAL, EscalationState.LAPSED)
            ),
            Alert.status == ACKNOWLEDGED,
            Alert.severity == _CRITICAL_RANK,
        )
    ).all()
    if not found:
        return set()
    ids = [row.alert_id for row in found]
    given = find_last_acknowledgements(ids, session=session)
    choices = choose_policies_for_alerts(ids, session=session, parser_settings=parser_settings)
    chosen = {choice.policy_id for choice in choices.values()}
    policies = select(EscalationPolicy.id).where(
        EscalationPolicy.id.in_(chosen), EscalationPolicy.retrigger_when_critical
    )
    retriggering = set(session.scalars(policies))
    rows = []
    for row in found:
        answer = given.get(row.alert_id)
        is_known = answer is not None and answer.severity == _CRITICAL_RANK
        if is_known or choices[row.alert_id].policy_id not in retriggering:
            continue
        end_waiting_state(row, EscalationEvent.CRITICAL, now=now)
        row.answered_by_id = answer.user_id if answer else None
        rows.append(row)
    _trigger_alerts_by_project(rows, _BECAME_CRITICAL_VIA, session=session, now=now)
    return {row.alert_id for row in rows}


def _trigger_alerts_by_project(
    rows: Sequence[Escalation], reason: str, *, session: Session, now: datetime
) -> None:
    by_project: dict[int, list[int]] = {}
    for row in rows:
        by_project.setdefault(row.project_id, []).append(row.alert_id)
    for project_id, some in sorted(by_project.items()):
        _trigger_alerts_automatically(project_id, some, reason, session=session, now=now)


def end_waiting_state(row: Escalation, event: EscalationEvent, *, now: datetime) -> None:
    """End the waiting state of an escalation.

    Nothing is due until the alert is triggered again.
    """
    row.state = get_next_state(EscalationState(row.state), event).value
    row.next_at, row.ended_at, row.decided_at = None, now, now


def _trigger_alerts_automatically(
    project_id: int, alert_ids: Sequence[int], reason: str, *, session: Session, now: datetime
) -> None:
    retrigger_alerts(
        project_id, alert_ids, actor=None, via=f"{AUTOMATIC_VIA} {reason}", session=session, now=now
    )


def retrigger_alerts(
    project_id: int,
    alert_ids: Sequence[int],
    *,
    actor: EventActor | None,
    via: str,
    session: Session,
    now: datetime,
) -> None:
    """Trigger acknowledged alerts again.

    Alerts with another status do not change.
    """
    session.flush()  # Escalations are written before alerts are locked.
    change = StatusChange(status=_TRIGGERED, by=actor, via=via)
    ids = select(Alert.id).where(Alert.id.in_(alert_ids))
    change_statuses_in_bulk(
        project_id, ids, change, among=(ACKNOWLEDGED,), session=session, now=now
    )


def get_tomorrow_morning(work: UnitOfWork) -> datetime:
    """Return TOMORROW_SNOOZE_TIME on the next day in the time zone of the acting user."""
    own = work.session.scalar(select(User.time_zone).where(User.id == work.actor.id))
    place_of = get_zone(own or "UTC")
    day = convert_to_local(work.now, place_of).date() + timedelta(days=1)
    return convert_to_utc(datetime.combine(day, TOMORROW_SNOOZE_TIME), place_of)
