"""Decides for many escalations at once what follows, and stores it.

What is known of them is read together, each is decided alone (`domain/escalations/decision.py`),
and all is stored in the end.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import add_entries
from domain.alerts.matching.labels import AlertLabels
from domain.escalations.alerts import AlertInBrief, Surroundings
from domain.escalations.choosing import Choice, read_routing
from domain.escalations.decision import Beginnings, Decision, NamedPlan, Results, place
from domain.escalations.notices import tell_of_unanswered, tell_of_unreached
from domain.escalations.policies import plan_of
from domain.escalations.progress import beginning
from domain.escalations.recipients import Recipients, read_recipients
from domain.escalations.state import Event, State, after
from domain.escalations.steps import Plan
from domain.notifications.paging import queue_pages
from domain.silences.muting import muted
from models import Escalation, EscalationPage, EscalationPolicy

_ROUTED_AGAIN = "Its policy was deleted. Paging begins again with another one."
_ENDED = "Paging ended: its policy was deleted, and no other one is for this alert."


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is known of the alerts of escalations that are decided together, by id."""

    alerts: Mapping[int, AlertInBrief]
    labels: Mapping[int, AlertLabels]
    around: Surroundings
    beginnings: Beginnings = field(default_factory=Beginnings)


def take_steps(rows: Sequence[Escalation], work: Work, *, session: Session, now: datetime) -> None:
    """Decide what follows for escalations under way; the session holds their rows."""
    if not rows:
        return
    results = Results()
    plans = _plans_of(rows, work, results, session=session, now=now)
    planned = [row for row in rows if row.policy_id in plans]
    recipients = _recipients_of(planned, plans, work, session=session, now=now)
    mutes = muted(list(work.labels.values()), at=now, session=session)
    pages = _pages_of_rounds(planned, session=session)
    for row in planned:
        alert = work.alerts[row.alert_id]
        one = Decision(row, alert, plans[row.policy_id], recipients, results, now)
        one.begin(work.beginnings)
        one.decide(mutes.get(row.alert_id), pages.get(row.id, ()))
        row.decided_at = now
    _store(results, work, session=session, now=now)


def _plans_of(
    rows: Sequence[Escalation],
    work: Work,
    results: Results,
    *,
    session: Session,
    now: datetime,
) -> Mapping[int | None, NamedPlan]:
    """Return plans by policy; an escalation whose policy was deleted gets another one."""
    plans = _read_plans({row.policy_id for row in rows}, session=session)
    gone = [row for row in rows if row.policy_id not in plans]
    if not gone:
        return plans
    _route_again(gone, work, results, session=session, now=now)
    return plans | _read_plans({row.policy_id for row in gone}, session=session)


def _recipients_of(
    rows: Sequence[Escalation],
    plans: Mapping[int | None, NamedPlan],
    work: Work,
    *,
    session: Session,
    now: datetime,
) -> Recipients:
    wanted: dict[tuple[int, bool], set[Plan]] = {}
    for row in rows:
        key = row.project_id, work.alerts[row.alert_id].is_critical
        wanted.setdefault(key, set()).add(plans[row.policy_id].plan)
    sends_mail = work.around.paging.sends_mail
    return read_recipients(wanted, sends_mail=sends_mail, session=session, now=now)


def _read_plans(ids: Collection[int | None], *, session: Session) -> dict[int | None, NamedPlan]:
    found = session.scalars(select(EscalationPolicy).where(EscalationPolicy.id.in_(ids)))
    return {each.id: NamedPlan(each.name, plan_of(each)) for each in found}


def _pages_of_rounds(
    rows: Sequence[Escalation], *, session: Session
) -> Mapping[int, Sequence[EscalationPage]]:
    """Return the pages of the present round by escalation."""
    rounds = {row.id: row.round for row in rows}
    found: dict[int, list[EscalationPage]] = {}
    for page in session.scalars(
        select(EscalationPage)
        .where(EscalationPage.escalation_id.in_(rounds))
        .order_by(EscalationPage.id)
    ):
        escalation_id = page.escalation_id or 0
        if page.round == rounds[escalation_id]:
            found.setdefault(escalation_id, []).append(page)
    return found


def _route_again(
    rows: Sequence[Escalation],
    work: Work,
    results: Results,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Choose other policies for escalations whose policy was deleted."""
    routing = read_routing({row.project_id for row in rows}, session=session)
    for row in rows:
        if State(row.state) is State.EXHAUSTED:
            # All steps were taken, and the time to answer is over.
            row.state, row.next_at = after(State.EXHAUSTED, Event.NO_ANSWER).value, None
            results.unanswered.append(work.alerts[row.alert_id])
            continue
        labels = work.labels.get(row.alert_id)
        choice = routing[row.project_id].choose(labels) if labels else Choice()
        _begin_anew(row, choice, now=now)
        results.note(row.alert_id, _ROUTED_AGAIN if choice.policy_id else _ENDED)
        if choice.policy_id is None:
            results.unreached.append(work.alerts[row.alert_id])


def _begin_anew(row: Escalation, choice: Choice, *, now: datetime) -> None:
    row.policy_id, row.route_id = choice.policy_id, choice.route_id
    place(row, beginning(now))
    row.judge_at = row.again_at = row.held_since = row.held_by = row.held_until = None
    row.has_reached, row.next_at = False, now
    row.state = after(State(row.state), Event.POLICY_GONE).value
    if choice.policy_id is None:
        row.state, row.next_at, row.ended_at = State.NO_POLICY.value, None, now


def _store(results: Results, work: Work, *, session: Session, now: datetime) -> None:
    session.flush()  # The rows, before statements without the session's objects.
    queue_pages(results.pages, session=session, now=now)
    if results.paged:
        session.execute(insert(EscalationPage), results.paged)
    add_entries(results.entries, session=session, now=now)
    paging = work.around.paging
    tell_of_unreached(results.unreached, paging, session=session, now=now)
    tell_of_unanswered(results.unanswered, paging, session=session, now=now)
