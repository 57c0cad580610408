"""Why somebody was paged for alerts, and whom the next step pages: for the texts of messages."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.escalations.policies import plan_of
from domain.escalations.progress import Progress, next_due
from domain.escalations.state import State
from domain.escalations.steps import Plan, Step, Target, TargetKind
from domain.escalations.targets import names_of
from domain.escalations.wording import listed, target_words
from domain.notifications.reasons import PageReason
from domain.on_call.current import who_is_on_call
from models import Escalation, EscalationPage, EscalationPolicy


def page_reasons(
    alert_ids: Collection[int], *, user_id: int | None, channel_id: int | None, session: Session
) -> Mapping[int, PageReason]:
    """Return why a person or a channel was paged last, by alert.

    Alerts for which no policy pages them any more are left out.
    """
    rows = session.execute(
        select(Escalation, EscalationPolicy)
        .join(EscalationPolicy, EscalationPolicy.id == Escalation.policy_id)
        .where(Escalation.alert_id.in_(alert_ids))
    ).all()
    pages = _pages([row.alert_id for row, _ in rows], session=session)
    reasons = _Reasons(session)
    found: dict[int, PageReason] = {}
    for row, policy in rows:
        own = [
            page
            for page in pages[row.alert_id]
            if (page.user_id, page.channel_id) == (user_id, channel_id)
        ]
        if own:
            found[row.alert_id] = reasons.of(row, policy, pages[row.alert_id][0], own[-1])
    return found


def _pages(
    alert_ids: Collection[int], *, session: Session
) -> Mapping[int, Sequence[EscalationPage]]:
    """Return the pages of alerts in their order."""
    found: dict[int, list[EscalationPage]] = defaultdict(list)
    rows = session.scalars(
        select(EscalationPage)
        .where(EscalationPage.alert_id.in_(alert_ids))
        .order_by(EscalationPage.id)
    )
    for row in rows:
        found[row.alert_id].append(row)
    return found


class _Reasons:
    """Reads who is on call once for all alerts with the same schedules and moment."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._on_call: dict[tuple[tuple[int, ...], datetime], Mapping[int, tuple[int, ...]]] = {}

    def of(
        self,
        row: Escalation,
        policy: EscalationPolicy,
        first: EscalationPage,
        own: EscalationPage,
    ) -> PageReason:
        plan = plan_of(policy)
        step, at = _following(row, plan) or (None, None)
        return PageReason(
            policy=policy.name,
            step=own.step,
            steps=len(plan.steps),
            round=own.round,
            schedules=self._schedules(plan, own),
            first_paged_at=first.paged_at,
            next_whom=self._whom(step, at) if step and at else None,
            next_at=at,
        )

    def _schedules(self, plan: Plan, own: EscalationPage) -> tuple[str, ...]:
        """Return the schedules that led a step to a person; none if the step names the person."""
        # The policy may have changed since.
        targets = plan.steps[own.step - 1].targets if own.step <= len(plan.steps) else ()
        if own.user_id is None or Target(TargetKind.USER, own.user_id) in targets:
            return ()
        on_call = self._who(targets, own.paged_at)
        schedules = [Target(TargetKind.SCHEDULE, each) for each in on_call]
        names = names_of(schedules, session=self._session)
        return tuple(
            names[each] for each in schedules if each in names and own.user_id in on_call[each.id]
        )

    def _whom(self, step: Step, at: datetime) -> str:
        """Return whom a step pages, with the people of its schedules."""
        on_call = self._who(step.targets, at)
        people = {
            each: [Target(TargetKind.USER, number) for number in on_call.get(each.id, ())]
            for each in step.targets
            if each.kind is TargetKind.SCHEDULE
        }
        wanted = {*step.targets, *(each for some in people.values() for each in some)}
        names = names_of(wanted, session=self._session)
        return listed([_words(each, people.get(each, ()), names) for each in step.targets])

    def _who(self, targets: Sequence[Target], at: datetime) -> Mapping[int, tuple[int, ...]]:
        schedules = tuple(each.id for each in targets if each.kind is TargetKind.SCHEDULE)
        if not schedules:
            return {}
        key = schedules, at
        if key not in self._on_call:
            self._on_call[key] = who_is_on_call(schedules, at=at, session=self._session)
        return self._on_call[key]


def _following(row: Escalation, plan: Plan) -> tuple[Step, datetime] | None:
    """Return the next step and when it is due; None if nobody is paged after this."""
    if row.state != State.RUNNING.value:
        return None
    due = next_due(plan, Progress(row.round, row.step, row.round_began_at))
    if due is not None:
        return plan.steps[row.step], due
    if row.round > plan.repeats:
        return None
    # The next round begins when the last step was judged, so this is the earliest moment.
    ended_at = row.round_began_at + plan.steps[-1].after
    return plan.steps[0], ended_at + plan.pause + plan.steps[0].after


def _words(target: Target, people: Sequence[Target], names: Mapping[Target, str]) -> str:
    """Return whom a target pages: of a schedule, the people who are on call then."""
    known = [f"@{names[each]}" for each in people if each in names]
    if not known:
        return target_words(target.kind, names.get(target))
    return f"{listed(known)} ({names[target]})" if target in names else listed(known)
