"""Escalations under way: they begin when an alert is opened, and take their steps when due.

Everything is done for many alerts at once, with a number of statements that does not grow with the
alerts. The rows and the pages that they lead to are stored in one transaction, so after a crash a
step was taken wholly or not at all.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session

from domain.alerts.following.changes import Change, ChangeKind
from domain.alerts.matching.labels import labels_of
from domain.escalations.alerts import AlertInBrief, Surroundings, alerts_in_brief
from domain.escalations.choosing import Choice, read_routing
from domain.escalations.progress import beginning
from domain.escalations.state import State
from domain.escalations.stepping import take_steps
from domain.notifications.paging import pages_became_critical, withdraw_pages
from models import Escalation

_OPENING = frozenset({ChangeKind.OPENED, ChangeKind.REOPENED})
#: Those that an answer to the alert ends, also if nobody else would be paged.
_UNDER_WAY = (State.RUNNING.value, State.HELD.value, State.EXHAUSTED.value)
_AFTER_FAILURE = timedelta(minutes=1)
#: Escalations of one transaction, few enough that writers of SQLite wait briefly.
BATCH = 200


def handle_changes(
    changes: Sequence[Change], *, session: Session, now: datetime, around: Surroundings
) -> None:
    """Begin, begin again and end escalations after changes of alerts.

    Of several changes of an alert the last one counts.
    """
    last = {change.alert_id: change.kind for change in changes}
    raised = [alert_id for alert_id, kind in last.items() if kind is ChangeKind.RAISED]
    opening = {alert_id for alert_id, kind in last.items() if kind in _OPENING}
    opening.update(_without_policy(raised, session=session))
    stop_escalations(last.keys() - opening - set(raised), session=session, now=now)
    start_escalations(opening, session=session, now=now, around=around)
    _let_critical_leave(set(raised) - opening, session=session, now=now)


def _let_critical_leave(alert_ids: Collection[int], *, session: Session, now: datetime) -> None:
    """Send what quiet hours hold back of alerts that have become critical."""
    alerts = alerts_in_brief(alert_ids, session=session)
    critical = [number for number, alert in alerts.items() if alert.is_critical]
    if not critical:
        return
    # Who takes a step meanwhile queues pages of the former severity, so that is waited for.
    session.execute(
        select(Escalation.id)
        .where(Escalation.alert_id.in_(critical))
        .order_by(Escalation.id)
        .with_for_update()
    )
    pages_became_critical(critical, session=session, now=now)


def _without_policy(alert_ids: Collection[int], *, session: Session) -> Collection[int]:
    """Return those alerts that page nobody so far: more urgent, they may go to another policy."""
    if not alert_ids:
        return ()
    return session.scalars(
        select(Escalation.alert_id).where(
            Escalation.alert_id.in_(alert_ids), Escalation.state == State.NO_POLICY.value
        )
    ).all()


def stop_escalations(alert_ids: Collection[int], *, session: Session, now: datetime) -> None:
    """End the escalations of alerts; pages that have not left do not leave."""
    if not alert_ids:
        return
    session.execute(
        update(Escalation)
        .where(Escalation.alert_id.in_(alert_ids), Escalation.state.in_(_UNDER_WAY))
        .values(state=State.STOPPED.value, next_at=None, ended_at=now)
        .execution_options(synchronize_session=False)
    )
    withdraw_pages(sorted(alert_ids), session=session, now=now)


def start_escalations(
    alert_ids: Collection[int], *, session: Session, now: datetime, around: Surroundings
) -> None:
    """Choose the policies of alerts that are triggered, and take the steps that are due at once."""
    alerts = alerts_in_brief(alert_ids, session=session)
    triggered = {number: alert for number, alert in alerts.items() if alert.is_triggered}
    if not triggered:
        return
    labels = labels_of(triggered, session=session, reading=around.reading)
    routing = read_routing({each.project_id for each in triggered.values()}, session=session)
    rows = [
        _new_escalation(alert, routing[alert.project_id].choose(labels[number]), now=now)
        for number, alert in triggered.items()
        if number in labels
    ]
    session.execute(
        delete(Escalation)
        .where(Escalation.alert_id.in_(triggered))
        .execution_options(synchronize_session=False)
    )
    session.add_all(rows)
    session.flush()  # Pages have the ids of escalations in their keys.
    running = [row for row in rows if row.next_at is not None]
    take_steps(running, triggered, labels, session=session, now=now, around=around)


def _new_escalation(alert: AlertInBrief, choice: Choice, *, now: datetime) -> Escalation:
    begin = beginning(now)
    pages = choice.policy_id is not None
    return Escalation(
        alert_id=alert.id,
        project_id=alert.project_id,
        state=(State.RUNNING if pages else State.NO_POLICY).value,
        policy_id=choice.policy_id,
        route_id=choice.route_id,
        round=begin.round,
        step=begin.step,
        round_began_at=begin.began_at,
        next_at=now if pages else None,
        has_reached=False,
        started_at=now,
        ended_at=None if pages else now,
    )


def due_escalations(*, session: Session, now: datetime, limit: int = BATCH) -> Sequence[int]:
    """Return the ids of escalations with a step that is due, or a mute to be looked at again.

    It writes nothing. Those that have waited longest come first.
    """
    first = Escalation.next_at, Escalation.id
    return session.scalars(
        select(Escalation.id).where(_is_due(now)).order_by(*first).limit(limit)
    ).all()


def _is_due(now: datetime) -> ColumnElement[bool]:
    return Escalation.next_at <= now


def take_due_steps(
    ids: Sequence[int], *, session: Session, now: datetime, around: Surroundings
) -> int:
    """Take those steps of escalations that are still due; return of how many.

    Another worker skips the escalations that this one has locked.
    """
    rows = session.scalars(
        select(Escalation)
        .where(Escalation.id.in_(ids), _is_due(now))
        .order_by(Escalation.next_at, Escalation.id)
        .with_for_update(skip_locked=True)
    ).all()
    if not rows:
        return 0
    alerts = alerts_in_brief([row.alert_id for row in rows], session=session)
    live = [row for row in rows if alerts[row.alert_id].is_triggered]
    over = [row.alert_id for row in rows if not alerts[row.alert_id].is_triggered]
    # The change that ended them is handled in a moment; nobody is to be paged until then.
    stop_escalations(over, session=session, now=now)
    labels = labels_of([row.alert_id for row in live], session=session, reading=around.reading)
    take_steps(live, alerts, labels, session=session, now=now, around=around)
    return len(rows)


def postpone(escalation_id: int, *, session: Session, now: datetime) -> None:
    """Try an escalation whose step could not be taken again later, and the others meanwhile."""
    session.execute(
        update(Escalation)
        .where(Escalation.id == escalation_id, Escalation.next_at.is_not(None))
        .values(next_at=now + _AFTER_FAILURE)
        .execution_options(synchronize_session=False)
    )
