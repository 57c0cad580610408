"""Explains the paging state of an alert: who was paged, who is next, or why nobody is paged."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from domain.alerts.change_feed import AlertChangeBacklog, Follower, find_change_backlog
from domain.alerts.formats.base import ParserSettings
from domain.alerts.listing.filters import OPEN_STATUSES
from domain.core.clock import CLOCK_TOLERANCE, format_message_time
from domain.core.durations import format_waiting_time
from domain.core.word_joining import join_words
from domain.paging.escalations.missing_escalations import choose_policies_for_alerts
from domain.paging.escalations.policies import build_plan, find_target_names
from domain.paging.escalations.policy_steps import (
    EscalationPlan,
    EscalationProgress,
    Step,
    Target,
    TargetKind,
    find_next_due_time,
    format_target,
)
from domain.paging.escalations.reporting.escalation_history import (
    describe_escalation_end,
    has_failed_round,
)
from domain.paging.escalations.reporting.page_status import UNKNOWN_PAGE_STATUS, find_page_statuses
from domain.paging.escalations.routes import PolicyChoice, load_routing
from domain.paging.escalations.snoozes import is_waiting_for_end_time
from domain.paging.escalations.state import ACTIVE_STATES, EscalationState
from domain.paging.escalations.types import PAGE_RETENTION, SentPage
from domain.paging.notifications.paging_settings import PageReason
from domain.paging.on_call.shifts import find_users_on_call
from domain.projects.row_ownership import find_owner_group_paths
from models import Alert, AlertRoute, Escalation, EscalationPage, EscalationPolicy

_STATE_SENTENCES = {
    EscalationState.RUNNING: (
        "All steps of this round have run. The results of the last pages are pending."
    ),
    EscalationState.STOPPED: "Paging stopped when {end}.",
    EscalationState.EXHAUSTED: "All steps have run. Nobody else is paged.",
    EscalationState.UNANSWERED: "All steps have run, and nobody answered. Nobody else is paged.",
    EscalationState.NO_POLICY: "Nobody is paged for this alert: {reason}.",
    EscalationState.POLICY_DELETED: "Paging ended because the escalation policy was deleted.",
    EscalationState.ACKNOWLEDGED: (
        "The acknowledgement expires at {until}. If the alert is not resolved by then, it is "
        "triggered again."
    ),
    EscalationState.SNOOZED: "Snoozed until {until}. Nobody is paged until then.",
    EscalationState.LAPSED: "The acknowledgement is no longer valid. Paging starts again.",
    EscalationState.ESCALATED: "The alert was escalated. The next step runs now.",
}
#: Sentences about acknowledgements and snoozes whose end the worker has not processed yet.
_OVERDUE_SENTENCES = {
    EscalationState.ACKNOWLEDGED: (
        "The acknowledgement expired at {until}. The alert is triggered again."
    ),
    EscalationState.SNOOZED: "The snooze ended at {until}. The alert is triggered again.",
}
_TRIGGERED = "triggered"
#: States in which an alert without a policy is assigned a new policy when a user escalates it.
_STATES_CHOOSING_AGAIN = (
    EscalationState.STOPPED,
    EscalationState.SNOOZED,
    EscalationState.NO_POLICY,
    EscalationState.POLICY_DELETED,
)
_NEVER_PAGED_SENTENCE = "Nobody was paged before {end}."
_NO_POLICIES_SENTENCE = "This project has no escalation policy, so its alerts do not page anyone."
_NO_ESCALATION_SENTENCE = (
    "Nobody was paged because the alert was opened before the project had an escalation policy."
)
_ARRIVED_RESOLVED_SENTENCE = "Nobody was paged because the alert was resolved when it arrived."
_RECORDS_DELETED_SENTENCE = (
    f"No pages are recorded. Records are deleted after {PAGE_RETENTION.days} days."
)
_OPEN_STATUSES = frozenset(OPEN_STATUSES)
#: States of escalations that ended because no policy applied.
_STATES_WITHOUT_POLICY = (EscalationState.NO_POLICY, EscalationState.POLICY_DELETED)
_ENDED_STATES = frozenset(
    {EscalationState.STOPPED, EscalationState.NO_POLICY, EscalationState.POLICY_DELETED}
)
#: Escalation states that are consistent with each alert status. Other states are outdated.
_STATES_BY_STATUS = {
    "triggered": frozenset(EscalationState)
    - {EscalationState.STOPPED, EscalationState.ACKNOWLEDGED, EscalationState.SNOOZED},
    "acknowledged": _ENDED_STATES | {EscalationState.ACKNOWLEDGED, EscalationState.SNOOZED},
    "ignored": _ENDED_STATES,
    "resolved": _ENDED_STATES,
}
#: States in which the worker acts when `next_at` is reached.
_DUE_STATES = (*ACTIVE_STATES, EscalationState.ACKNOWLEDGED, EscalationState.SNOOZED)


@dataclass(frozen=True, kw_only=True)
class EscalationView:
    """The paging state of an alert, with its policy, next step and recipients."""

    #: State of the escalation. None if the alert has no escalation.
    state: EscalationState | None
    sentence: str
    #: True if similar alerts do not page anyone until a maintainer changes the configuration.
    lacks_policy: bool = False
    #: Name of the escalation's policy, or of the policy that an unprocessed or snoozed alert will
    #: be assigned. None if no policy was chosen, or if the policy was deleted.
    policy: str | None = None
    #: Reason for the choice of the policy, in words. Empty if `sentence` contains the reason.
    reason: str = ""
    #: Number of steps of the policy.
    steps: int = 0
    #: Number of the next step, starting at 1, and the time when it is due. None if no step follows.
    next_step: int | None = None
    next_at: datetime | None = None
    #: Recipients of the next step, in words.
    next_whom: str = ""
    #: End of the acknowledgement or snooze. None if there is neither.
    rests_until: datetime | None = None
    round: int = 1
    #: Number of the previous round if it reached nobody. None otherwise.
    unreached_round: int | None = None
    was_paged: bool = False
    #: Delay of the worker. None if the worker is on time.
    waiting: timedelta | None = None
    #: True if escalating the alert now would page anyone.
    can_escalate: bool = False
    #: Recipients of the step that runs if the alert is escalated, in words.
    escalates_to: str = ""

    @property
    def worker_delay_text(self) -> str:
        """The worker's delay in words, or an empty string if the worker is on time."""
        return "" if self.waiting is None else format_waiting_time(self.waiting)


def explain_escalation(
    project_id: int,
    alert_id: int,
    *,
    session: Session,
    now: datetime,
    parser_settings: ParserSettings,
) -> EscalationView:
    """Return the paging state of an alert, including a sentence that explains the state."""
    # Read the backlog first: the worker deletes a processed change and stores its result in one
    # transaction.
    backlog = find_change_backlog(Follower.ESCALATIONS, alert_id, session=session)
    row = session.scalar(select(Escalation).where(Escalation.alert_id == alert_id))
    alert = session.execute(
        select(Alert.status, Alert.created_at, Alert.ended_at).where(Alert.id == alert_id)
    ).one()
    of_alert = EscalationPage.alert_id == alert_id
    was_paged = session.scalar(select(EscalationPage.id).where(of_alert).limit(1)) is not None
    if row is None or (
        row.policy_id is None and EscalationState(row.state) in _STATES_CHOOSING_AGAIN
    ):
        choices = choose_policies_for_alerts(
            [alert_id], session=session, parser_settings=parser_settings
        )
        choice = choices.get(alert_id, PolicyChoice())
    else:
        choice = PolicyChoice(row.policy_id, row.route_id)
    policy = session.get(EscalationPolicy, choice.policy_id) if choice.policy_id else None
    route = session.get(AlertRoute, choice.route_id) if choice.route_id else None
    is_open = alert.status in _OPEN_STATUSES
    state = EscalationState(row.state) if row else None
    view = EscalationView(
        state=state,
        sentence="",
        lacks_policy=state in (None, EscalationState.NO_POLICY)
        and choice.route_id is None
        and policy is None,
        policy=policy.name if policy else None,
        steps=len(build_plan(policy).steps) if policy else 0,
        reason=_format_policy_reason(choice, route, policy, session=session),
        was_paged=was_paged,
        can_escalate=is_open and policy is not None and state is not EscalationState.HELD,
    )
    if policy is not None and view.can_escalate:
        recipients = _describe_escalation_recipients(row, policy, session=session, now=now)
        view = replace(view, escalates_to=recipients)
    if backlog is not None and (state is None or state not in _STATES_BY_STATUS[alert.status]):
        return _build_unprocessed_view(view, backlog, alert.status, now=now)
    never_began = state is EscalationState.STOPPED and (
        policy is None or alert.status == _TRIGGERED
    )
    if row is None and alert.ended_at is not None and alert.ended_at <= alert.created_at:
        return replace(view, state=None, sentence=_ARRIVED_RESOLVED_SENTENCE)
    if row is None or state is None or never_began:
        return _build_view_without_escalation(
            view, project_id, alert.created_at, session=session, now=now
        )
    if state in _STATES_WITHOUT_POLICY:
        return _build_view_without_policy(view, row, session=session)
    return _build_escalation_view(view, row, policy, alert.status, session=session, now=now)


def _build_unprocessed_view(
    view: EscalationView, backlog: AlertChangeBacklog, status: str, *, now: datetime
) -> EscalationView:
    """Return a view of an alert whose latest change the worker has not processed yet."""
    waiting = max(now - backlog.since, timedelta())
    if status == _TRIGGERED:
        sentence = (
            f"The alert is {format_waiting_time(waiting)}. Paging starts when the background "
            "worker "
            "processes it."
        )
    else:
        sentence = f"The alert is {status}: nobody else is paged."
        if waiting > CLOCK_TOLERANCE:
            sentence += f" This change is {format_waiting_time(waiting)}."
    if backlog.tries:
        times = {1: "once", 2: "twice"}.get(backlog.tries, f"{backlog.tries} times")
        sentence += f" Processing has failed {times} and will be retried."
    return replace(view, state=EscalationState.UNPROCESSED, sentence=sentence, waiting=waiting)


def _build_view_without_escalation(
    view: EscalationView,
    project_id: int,
    opened_at: datetime,
    *,
    session: Session,
    now: datetime,
) -> EscalationView:
    """Return a view that explains why an alert has no escalation."""
    has_policies = load_routing([project_id], session=session)[project_id].has_policies
    sentence = _NO_ESCALATION_SENTENCE if has_policies else _NO_POLICIES_SENTENCE
    if has_policies and opened_at < now - PAGE_RETENTION:
        sentence = _RECORDS_DELETED_SENTENCE
    return replace(
        view,
        state=None,
        sentence=sentence,
        lacks_policy=view.lacks_policy or not has_policies,
        policy=None,
        reason="",
    )


def _build_view_without_policy(
    view: EscalationView, row: Escalation, *, session: Session
) -> EscalationView:
    """Return a view of an escalation that ended because no policy applied.

    `view.policy` is the policy that applies now.
    """
    route = session.get(AlertRoute, row.route_id) if row.route_id else None
    if row.route_id is None:
        reason = "no route matched, and there was no default policy"
    elif route is None:
        reason = "it matched a route that was deleted"
    else:
        reason = f"it matched the route {route.name}, which does not page anyone"
    sentence = _STATE_SENTENCES[EscalationState(row.state)].format(reason=reason)
    if view.policy:
        sentence += f" The policy {view.policy} applies only to later alerts."
    return replace(view, sentence=sentence, policy=None, reason="")


def _build_escalation_view(
    view: EscalationView,
    row: Escalation,
    policy: EscalationPolicy | None,
    status: str,
    *,
    session: Session,
    now: datetime,
) -> EscalationView:
    """Return a view of an escalation whose state is consistent with the status of its alert."""
    state = EscalationState(row.state)
    plan = build_plan(policy) if policy else None
    next_at = _find_next_due_time(row, state, plan) if status == _TRIGGERED else None
    recipients = (
        _PageReasonLookup(session).describe_recipients(plan.steps[row.step], next_at)
        if plan and next_at
        else ""
    )
    late = now - row.next_at if row.next_at and state in _DUE_STATES else timedelta()
    shown = replace(
        view,
        next_step=row.step + 1 if next_at else None,
        next_at=next_at,
        next_whom=recipients,
        rests_until=row.next_at if is_waiting_for_end_time(row) else None,
        round=row.round,
        unreached_round=(
            row.round - 1 if next_at and has_failed_round(row, session=session) else None
        ),
        waiting=late if late > CLOCK_TOLERANCE else None,
    )
    is_stopped = state is EscalationState.STOPPED
    end = describe_escalation_end(row, status, session=session) if is_stopped else ""
    return replace(shown, sentence=_format_state_sentence(row, shown, end, now=now))


def _describe_escalation_recipients(
    row: Escalation | None, policy: EscalationPolicy, *, session: Session, now: datetime
) -> str:
    """Describe the recipients of the step that runs if the alert is escalated.

    Step 1 follows the last step.
    """
    steps = build_plan(policy).steps
    taken = row.step if row and row.policy_id == policy.id else 0
    return _PageReasonLookup(session).describe_recipients(
        steps[taken if taken < len(steps) else 0], now
    )


def find_unanswered_alerts(alert_ids: Collection[int], *, session: Session) -> Collection[int]:
    """Return the IDs of the given alerts whose pages received no response."""
    return set(
        session.scalars(
            select(Escalation.alert_id).where(
                Escalation.alert_id.in_(alert_ids),
                Escalation.state == EscalationState.UNANSWERED.value,
            )
        )
    )


def _find_next_due_time(
    row: Escalation, state: EscalationState, plan: EscalationPlan | None
) -> datetime | None:
    if state is not EscalationState.RUNNING or plan is None:
        return None
    return find_next_due_time(plan, EscalationProgress(row.round, row.step, row.round_began_at))


def _format_state_sentence(
    row: Escalation, view: EscalationView, end: str, *, now: datetime
) -> str:
    state = EscalationState(row.state)
    until = format_message_time(row.next_at) if row.next_at else ""
    late = f" It is {view.worker_delay_text}." if view.waiting is not None else ""
    if view.next_at is not None:
        of_round = f" of round {view.round}" if view.round > 1 else ""
        at = f"at {format_message_time(view.next_at)}" if view.next_at > now else "now"
        before = f"Round {view.unreached_round} reached nobody. " if view.unreached_round else ""
        return f"{before}Step {view.next_step}{of_round} pages {view.next_whom} {at}.{late}"
    if state is EscalationState.HELD:
        end = f"until {format_message_time(row.held_until)}" if row.held_until else "now"
        return f"Nobody is paged {end}: {row.held_by}.{late}"
    if state is EscalationState.STOPPED and not view.was_paged:
        return _NEVER_PAGED_SENTENCE.format(end=end)
    sentences = (
        _STATE_SENTENCES | _OVERDUE_SENTENCES if view.waiting is not None else _STATE_SENTENCES
    )
    return sentences[state].format(until=until, end=end) + late


def _format_policy_reason(
    choice: PolicyChoice,
    route: AlertRoute | None,
    policy: EscalationPolicy | None,
    *,
    session: Session,
) -> str:
    decided = route or policy
    group = find_owner_group_paths([decided] if decided else [], session=session)
    of_group = "".join(f" of {path}" for path in group.values())
    if choice.route_id is not None:
        known = f"chosen by the route {route.name}{of_group}" if route else None
        return known or "chosen by a route that was deleted"
    if choice.policy_id is not None:
        return f"the default policy{of_group}, because no route matches"
    return "no route matches, and there is no default policy"


def list_sent_pages(
    alert_ids: Collection[int],
    following: int | None,
    *,
    size: int,
    is_oldest_first: bool,
    session: Session,
) -> Sequence[SentPage]:
    """List pages that were sent for alerts, oldest or newest first.

    Return at most `size` pages, starting after the page with the ID `following`.
    """
    # Adding 0 prevents Postgres from scanning the pages of all alerts in ID order.
    key = EscalationPage.id + 0
    wanted = select(EscalationPage).where(EscalationPage.alert_id.in_(alert_ids))
    if following is not None:
        wanted = wanted.where(key > following if is_oldest_first else key < following)
    order = key.asc() if is_oldest_first else key.desc()
    rows = session.scalars(wanted.order_by(order).limit(size)).all()
    asking = [Target(TargetKind.USER, row.asked_by_id) for row in rows if row.asked_by_id]
    names = find_target_names(
        [*filter(None, map(_get_page_target, rows)), *asking], session=session
    )
    fates = find_page_statuses([row.page_key for row in rows], session=session)
    return [
        SentPage(
            id=row.id,
            alert_id=row.alert_id,
            at=row.paged_at,
            name=_get_recipient_name(row, names),
            round=row.round,
            step=row.step,
            asked_by=_get_requester_name(row, names),
            state=fate.state,
            contacts=fate.contacts,
        )
        for row, fate in ((row, fates.get(row.page_key, UNKNOWN_PAGE_STATUS)) for row in rows)
    ]


def _get_page_target(row: EscalationPage) -> Target | None:
    if row.channel_id is not None:
        return Target(TargetKind.CHANNEL, row.channel_id)
    return None if row.user_id is None else Target(TargetKind.USER, row.user_id)


def _get_requester_name(row: EscalationPage, names: Mapping[Target, str]) -> str | None:
    """Return the name of the user who requested a manual page, or None for other pages."""
    if not row.asked_by_id:
        return None if row.asked_by_id is None else "the operator"
    asker = Target(TargetKind.USER, row.asked_by_id)
    return format_target(TargetKind.USER, names.get(asker))


def _get_recipient_name(row: EscalationPage, names: Mapping[Target, str]) -> str:
    target = _get_page_target(row)
    if target is None:
        return format_target(TargetKind.USER, None)
    return format_target(target.kind, names.get(target))


def find_page_reasons(
    alert_ids: Collection[int], *, user_id: int | None, channel_id: int | None, session: Session
) -> Mapping[int, PageReason]:
    """Return the latest reason why a recipient was paged, by alert ID.

    Alerts whose policy no longer pages the recipient are left out.
    """
    rows = session.execute(
        select(Escalation, EscalationPolicy)
        .join(EscalationPolicy, EscalationPolicy.id == Escalation.policy_id)
        .where(Escalation.alert_id.in_(alert_ids))
    ).all()
    escalations = {row.alert_id: (row, policy) for row, policy in rows}
    reasons = _PageReasonLookup(session)
    found: dict[int, PageReason] = {}
    for first, own in _find_first_and_last_pages(user_id, channel_id, alert_ids, session=session):
        if own.alert_id in escalations:
            found[own.alert_id] = reasons.find_reason(*escalations[own.alert_id], first, own)
        elif own.asked_by_id is not None:
            found[own.alert_id] = reasons.find_manual_page_reason(own)
    return found


def _find_first_and_last_pages(
    user_id: int | None, channel_id: int | None, alert_ids: Collection[int], *, session: Session
) -> Iterator[tuple[EscalationPage, EscalationPage]]:
    """Yield each alert's first page, and its last page to the given user or channel.

    The query avoids loading all pages, since an alert may have hundreds of pages.
    """
    pages = EscalationPage
    of_alerts = select(pages.alert_id, func.min(pages.id).label("first"))
    firsts = of_alerts.where(pages.alert_id.in_(alert_ids)).group_by(pages.alert_id).subquery()
    of_them = (
        select(func.max(pages.id))
        .where(pages.alert_id.in_(alert_ids))
        .where(pages.user_id.is_not_distinct_from(user_id))
        .where(pages.channel_id.is_not_distinct_from(channel_id))
        .group_by(pages.alert_id)
    )
    first = aliased(pages)
    yield from session.execute(
        select(first, pages)
        .join(firsts, firsts.c.alert_id == pages.alert_id)
        .join(first, first.id == firsts.c.first)
        .where(pages.id.in_(of_them))
    )


class _PageReasonLookup:
    """Finds the reasons for pages, and caches the users on call by schedule and time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._on_call: dict[tuple[tuple[int, ...], datetime], Mapping[int, tuple[int, ...]]] = {}

    def find_reason(
        self,
        row: Escalation,
        policy: EscalationPolicy,
        first_page: EscalationPage,
        own_page: EscalationPage,
    ) -> PageReason:
        plan = build_plan(policy)
        step, at = _find_next_step(row, plan) or (None, None)
        return PageReason(
            policy=policy.name,
            step=own_page.step,
            steps=len(plan.steps),
            round=own_page.round,
            asked_by=self._find_requester_name(own_page),
            schedules=self._find_schedules(plan, own_page),
            first_paged_at=first_page.paged_at,
            next_whom=self.describe_recipients(step, at) if step and at else None,
            next_at=at,
        )

    def find_manual_page_reason(self, page: EscalationPage) -> PageReason:
        """Return the reason for a manual page about an alert without a policy."""
        asked_by, at = self._find_requester_name(page), page.paged_at
        return PageReason(policy="", step=0, steps=0, round=1, first_paged_at=at, asked_by=asked_by)

    def _find_requester_name(self, page: EscalationPage) -> str | None:
        asker = [Target(TargetKind.USER, page.asked_by_id)] if page.asked_by_id else []
        return _get_requester_name(page, find_target_names(asker, session=self._session))

    def _find_schedules(self, plan: EscalationPlan, own_page: EscalationPage) -> tuple[str, ...]:
        """Return the names of the schedules through which a step paged a user.

        The result is empty if the step names the user directly.
        """
        # The policy may have changed since the page was sent.
        is_step = 1 <= own_page.step <= len(plan.steps)
        targets = plan.steps[own_page.step - 1].targets if is_step else ()
        if own_page.user_id is None or Target(TargetKind.USER, own_page.user_id) in targets:
            return ()
        on_call = self._find_users_on_call(targets, own_page.paged_at)
        schedules = [Target(TargetKind.SCHEDULE, each) for each in on_call]
        names = find_target_names(schedules, session=self._session)
        return tuple(
            names[each]
            for each in schedules
            if each in names and own_page.user_id in on_call[each.id]
        )

    def describe_recipients(self, step: Step, moment: datetime) -> str:
        """Describe the recipients of a step, including the users who are on call."""
        on_call = self._find_users_on_call(step.targets, moment)
        people = {
            each: [Target(TargetKind.USER, number) for number in on_call.get(each.id, ())]
            for each in step.targets
            if each.kind is TargetKind.SCHEDULE
        }
        wanted = {*step.targets, *(each for some in people.values() for each in some)}
        names = find_target_names(wanted, session=self._session)
        words = [
            _format_target_with_users(each, people.get(each, ()), names) for each in step.targets
        ]
        return (
            f"one of {join_words(words)}"
            if step.takes_turns and len(words) > 1
            else join_words(words or ["nobody"])
        )

    def _find_users_on_call(
        self, targets: Sequence[Target], moment: datetime
    ) -> Mapping[int, tuple[int, ...]]:
        schedules = tuple(each.id for each in targets if each.kind is TargetKind.SCHEDULE)
        if not schedules:
            return {}
        key = schedules, moment
        if key not in self._on_call:
            self._on_call[key] = find_users_on_call(schedules, moment=moment, session=self._session)
        return self._on_call[key]


def _find_next_step(row: Escalation, plan: EscalationPlan) -> tuple[Step, datetime] | None:
    """Return the next step and the time when it is due, or None if no step follows."""
    if row.state != EscalationState.RUNNING.value:
        return None
    due = find_next_due_time(plan, EscalationProgress(row.round, row.step, row.round_began_at))
    if due is not None:
        return plan.steps[row.step], due
    if row.round > plan.repeats:
        return None
    # The next round starts when the last step has been evaluated. Return the earliest possible
    # time.
    ended_at = row.round_began_at + plan.steps[-1].after
    return plan.steps[0], ended_at + plan.pause + plan.steps[0].after


def _format_target_with_users(
    target: Target, people: Sequence[Target], names: Mapping[Target, str]
) -> str:
    """Describe the recipients of a target.

    The recipients of a schedule are the users who are on call.
    """
    known = [f"@{names[each]}" for each in people if each in names]
    if not known:
        return format_target(target.kind, names.get(target))
    return f"{join_words(known)} ({names[target]})" if target in names else join_words(known)
