"""Runs escalations: starts them when an alert opens, and takes their steps when due.

`domain/paging/escalations/state.py` defines the states, and the events that change them. Each
function in this module handles one event for many alerts, with a constant number of SQL statements.
Escalations and their pages are stored in one transaction, so a crash cannot leave a step
incomplete. Due escalations are read together, processed separately
(`domain/paging/escalations/decision.py`), and stored together.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    and_,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.orm import Session

from domain.alerts.change_feed import (
    TRIGGERING_KINDS,
    ChangeKind,
    Follower,
    QueuedChange,
    find_alerts_with_later_reopening,
)
from domain.alerts.handling.activity import add_activity_entries
from domain.alerts.matching.alert_labels import AlertLabels, find_alert_labels
from domain.core.clock import CLOCK_TOLERANCE
from domain.core.database.bulk_statements import build_bulk_insert, build_bulk_update
from domain.core.due_time_sql import NOW, Moment, build_time_from_now
from domain.paging.escalations.decision import (
    DecisionChanges,
    EscalationEvaluator,
    EscalationSettings,
)
from domain.paging.escalations.decision_inputs import (
    NamedPlan,
    PageableAlert,
    StartReasons,
    find_pageable_alerts,
    find_previous_progress,
)
from domain.paging.escalations.locks import lock_escalations, schedule_escalations_now
from domain.paging.escalations.maintainer_notices import (
    NOBODY_REACHED,
    NOBODY_RESPONDED,
    notify_of_paging_failure,
)
from domain.paging.escalations.missing_escalations import create_escalations_for_changed_alerts
from domain.paging.escalations.policies import build_plan
from domain.paging.escalations.policy_steps import (
    EscalationPlan,
    build_immediate_step,
    build_initial_progress,
)
from domain.paging.escalations.recipients import RecipientLookup, load_recipients
from domain.paging.escalations.round_robin import lock_round_robin_turns
from domain.paging.escalations.routes import PolicyChoice, load_routing
from domain.paging.escalations.snoozes import (
    end_snoozes_on_severity_increase,
    is_waiting_for_end_time,
    retrigger_critical_alerts,
    retrigger_expired_alerts,
    stop_acknowledged_escalations,
)
from domain.paging.escalations.state import (
    EscalationEvent,
    EscalationState,
    find_states_before,
    get_next_state,
)
from domain.paging.notifications.page_queue import cancel_pages, queue_pages, release_critical_pages
from domain.paging.notifications.paging_settings import PagingSettings
from domain.paging.silences.active_mutes import find_mutes
from domain.projects.row_ownership import GroupChain, find_group_chains
from domain.projects.views import Namespace
from models import Alert, Escalation, EscalationPage, EscalationPolicy, Page

_RETRY_DELAY = timedelta(minutes=1)
#: Maximum number of escalations in a transaction. Transactions are short because writers block each
#: other in SQLite.
ESCALATION_BATCH_SIZE = 200
#: Maximum number of page outcomes in a transaction.
_OUTCOME_BATCH_SIZE = 1_000
_NEW_POLICY_NOTE = (
    "The escalation policy no longer applies. Paging starts again with another policy."
)
_NO_POLICY_NOTE = (
    "Paging ended: the escalation policy no longer applies, and no other policy matches."
)
#: Condition that is true if there are unprocessed page outcomes. SQLite uses the partial index only
#: for exactly this expression.
OUTCOMES_ARE_DUE = exists().where(literal_column("pages.has_news")).select_from(Page)


def process_alert_changes(
    changes: Sequence[QueuedChange],
    *,
    session: Session,
    now: datetime,
    escalation_settings: EscalationSettings,
) -> None:
    """Start, restart and end escalations after alerts have changed.

    If an alert changed several times, only the last change counts.
    """
    last = {change.alert_id: change.kind for change in changes}
    by_kind = {kind: {each for each in last if last[each] is kind} for kind in ChangeKind}
    opening = {each for each in last if last[each] in TRIGGERING_KINDS}
    # If an alert was reopened later, start its escalation only with that change. Otherwise the
    # escalation would start twice and page users twice.
    waits = (
        find_alerts_with_later_reopening(changes, Follower.ESCALATIONS, session=session)
        if opening
        else ()
    )
    answered = by_kind[ChangeKind.ACKNOWLEDGED]
    # Another worker may be taking a step and queueing pages for the previous state. Locking waits
    # for that worker.
    lock_escalations(Escalation.alert_id.in_(last), session=session)
    create_escalations_for_changed_alerts(
        last, session=session, now=now, parser_settings=escalation_settings.reading
    )
    stop_acknowledged_escalations(answered, session=session, now=now)
    raised = by_kind[ChangeKind.RAISED]
    stop_escalations(last.keys() - opening - raised - answered, session=session, now=now)
    raised = raised - end_snoozes_on_severity_increase(raised, session=session, now=now)
    raised -= retrigger_critical_alerts(
        raised, session=session, now=now, parser_settings=escalation_settings.reading
    )
    elsewhere = _find_rerouted_alerts(
        raised, session=session, escalation_settings=escalation_settings
    )
    begins = (opening | elsewhere).difference(waits)
    start_escalations(
        begins, session=session, now=now, escalation_settings=escalation_settings, raised=elsewhere
    )
    _release_critical_pages(raised - elsewhere, session=session, now=now)


def _find_rerouted_alerts(
    alert_ids: Collection[int], *, session: Session, escalation_settings: EscalationSettings
) -> set[int]:
    """Return the alerts whose escalations start again because the severity increased.

    An escalation starts again if another policy applies now, or if the escalation had ended.
    """
    if not alert_ids:
        return set()
    rows = session.scalars(select(Escalation).where(Escalation.alert_id.in_(alert_ids))).all()
    labels = find_alert_labels(
        [row.alert_id for row in rows], session=session, reading=escalation_settings.reading
    )
    routing = load_routing({row.project_id for row in rows}, session=session)
    # Alerts that opened before the project had a policy have no escalation.
    found = set(alert_ids) - {row.alert_id for row in rows}
    for row in rows:
        if row.alert_id not in labels:
            continue
        chosen = routing[row.project_id].choose_policy(labels[row.alert_id]).policy_id
        state = EscalationState(row.state)
        is_over = (
            state is not EscalationState.STOPPED
            and get_next_state(state, EscalationEvent.RAISED) is not state
        )
        if chosen is not None and (is_over or (row.next_at and chosen != row.policy_id)):
            found.add(row.alert_id)
    return found


def _release_critical_pages(alert_ids: Collection[int], *, session: Session, now: datetime) -> None:
    """Release pages delayed by quiet hours if their alerts have become critical."""
    alerts = find_pageable_alerts(alert_ids, session=session)
    critical = [number for number, alert in alerts.items() if alert.is_critical]
    if critical:
        release_critical_pages(critical, session=session, now=now)


def stop_escalations(alert_ids: Collection[int], *, session: Session, now: datetime) -> None:
    """End the locked escalations of closed alerts and cancel their unsent pages."""
    if not alert_ids:
        return
    under_way = find_states_before(EscalationEvent.OVER, EscalationState.STOPPED)
    session.execute(
        build_bulk_update(Escalation)
        .where(Escalation.alert_id.in_(alert_ids), Escalation.state.in_(under_way))
        .values(state=EscalationState.STOPPED.value, next_at=None, ended_at=now, decided_at=now)
    )
    cancel_pages(sorted(alert_ids), session=session, now=now)


def start_escalations(
    alert_ids: Collection[int],
    *,
    session: Session,
    now: datetime,
    escalation_settings: EscalationSettings,
    raised: Collection[int] = (),
) -> None:
    """Choose policies for triggered alerts, and take the steps that are due immediately.

    Existing escalations of the alerts start again. `raised` contains the alerts whose severity
    increased. A new alert may resume the escalation of an earlier alert with the same fingerprint.
    """
    alerts = find_pageable_alerts(alert_ids, session=session)
    triggered = {number: alert for number, alert in alerts.items() if alert.is_triggered}
    if not triggered:
        return
    labels = find_alert_labels(triggered, session=session, reading=escalation_settings.reading)
    routing = load_routing({each.project_id for each in triggered.values()}, session=session)
    former = session.scalars(select(Escalation).where(Escalation.alert_id.in_(triggered))).all()
    begun = {row.alert_id: row for row in former}
    # Escalations that were created in the `stopped` state have not run yet.
    ran = {row.alert_id for row in former if not _was_created_as_stopped(row)}
    new = {number: triggered[number].project_id for number in sorted(triggered.keys() - ran)}
    stories = find_previous_progress(new, session=session, now=now)
    rows = [
        _build_escalation(alert, routing[alert.project_id].choose_policy(labels[number]), now=now)
        for number, alert in triggered.items()
        if number in labels
    ]
    session.execute(
        delete(Escalation)
        .where(Escalation.alert_id.in_(triggered))
        .execution_options(synchronize_session="fetch")
    )
    for row in rows:
        _copy_previous_escalation(row, begun.get(row.alert_id))
    session.add_all(rows)
    session.flush()  # Page keys contain the IDs of escalations.
    running = [row for row in rows if row.next_at is not None]
    escalated = {
        row.alert_id: row
        for row in former
        if EscalationState(row.state) is EscalationState.ESCALATED
    }
    beginnings = StartReasons(
        previous_progress=stories, severity_increased=frozenset(raised), escalated=escalated
    )
    paging = escalation_settings.paging
    batch = _EscalationBatch(triggered, labels, beginnings, paging, session, now)
    batch.take_steps(running)


def _was_created_as_stopped(row: Escalation) -> bool:
    return EscalationState(row.state) is EscalationState.STOPPED and row.started_at == row.ended_at


def _copy_previous_escalation(row: Escalation, escalation: Escalation | None) -> None:
    """Copy the time of the last page, and the user to page first, from the previous escalation."""
    if escalation is None:
        return
    row.last_paged_at = escalation.last_paged_at
    if EscalationState(escalation.state) is EscalationState.LAPSED and row.next_at is not None:
        row.answered_by_id = escalation.answered_by_id


def _build_escalation(alert: PageableAlert, choice: PolicyChoice, *, now: datetime) -> Escalation:
    begin = build_initial_progress(now)
    pages = choice.policy_id is not None
    return Escalation(
        alert_id=alert.id,
        project_id=alert.project_id,
        state=(EscalationState.RUNNING if pages else EscalationState.NO_POLICY).value,
        policy_id=choice.policy_id,
        route_id=choice.route_id,
        round=begin.round,
        step=begin.step,
        round_began_at=begin.began_at,
        next_at=now if pages else None,
        has_reached=False,
        started_at=now,
        ended_at=None if pages else now,
        decided_at=now,
    )


def process_page_outcomes(*, session: Session, now: datetime) -> int:
    """Process the outcomes of a batch of pages.

    Escalations that wait for these outcomes become due immediately. Return the number of pages.
    """
    ids = session.scalars(
        select(Page.id).where(Page.has_news).order_by(Page.id).limit(_OUTCOME_BATCH_SIZE)
    ).all()
    concerned = select(EscalationPage.escalation_id).join(Page, Page.key == EscalationPage.page_key)
    # Escalations are locked before their pages, as in transactions that end escalations. A worker
    # that has locked an escalation is already evaluating the pages that it can see.
    schedule_escalations_now(
        Escalation.id.in_(concerned.where(Page.id.in_(ids))),
        Escalation.state == EscalationState.RUNNING.value,
        Escalation.judge_at.is_not(None),
        session=session,
        now=now,
    )
    news = session.execute(
        select(Page.id, Page.key, Page.outcome)
        .where(Page.id.in_(ids), Page.has_news)
        .order_by(Page.id)
        .with_for_update(skip_locked=True)
    ).all()
    by_outcome: dict[str, dict[int, str]] = {}
    for row in news:
        by_outcome.setdefault(row.outcome, {})[row.id] = row.key
    for outcome, keys in sorted(by_outcome.items()):
        of_news = EscalationPage.page_key.in_(keys.values())
        session.execute(build_bulk_update(EscalationPage).where(of_news).values(outcome=outcome))
        session.execute(build_bulk_update(Page).where(Page.id.in_(keys)).values(has_news=False))
    return len(news)


def find_due_escalations(
    *, session: Session, now: datetime, limit: int = ESCALATION_BATCH_SIZE
) -> Sequence[int]:
    """Return the IDs of escalations that are due.

    An escalation is due if it must take its next step, evaluate its pages, or check whether paging
    is still held back. Escalations of the most severe alerts come first, then the escalations that
    have waited longest. This order matters after downtime or in an alert storm, when many
    escalations are due at the same time. This function does not write to the database.
    """
    first = Alert.severity, Escalation.next_at, Escalation.id
    return session.scalars(
        select(Escalation.id)
        .join(Alert, Alert.id == Escalation.alert_id)
        .where(_is_due(now))
        .order_by(*first)
        .limit(limit)
    ).all()


def _is_due(now: Moment) -> ColumnElement[bool]:
    latest = build_time_from_now(now, CLOCK_TOLERANCE)
    is_ahead = and_(Escalation.decided_at > latest, Escalation.next_at.is_not(None))
    return or_(Escalation.next_at <= now, is_ahead)


#: Condition that is true if an escalation is due.
STEPS_ARE_DUE = exists().where(_is_due(NOW))


def find_earliest_due_time(*, session: Session) -> datetime | None:
    """Return the earliest time at which an escalation is due, or None if nothing is scheduled."""
    return session.scalar(
        select(func.min(Escalation.next_at)).where(Escalation.next_at.is_not(None))
    )


def take_due_steps(
    ids: Sequence[int], *, session: Session, now: datetime, escalation_settings: EscalationSettings
) -> int:
    """Take the steps of escalations that are still due.

    Other workers skip the escalations that this worker has locked. Return the number of
    escalations.
    """
    rows = session.scalars(
        select(Escalation)
        .where(Escalation.id.in_(ids), _is_due(now))
        .order_by(Escalation.next_at, Escalation.id)
        .with_for_update(skip_locked=True)
    ).all()
    alerts = find_pageable_alerts([row.alert_id for row in rows], session=session)
    retrigger_expired_alerts(
        [row for row in rows if is_waiting_for_end_time(row)], session=session, now=now
    )
    escalated = {
        row.alert_id for row in rows if EscalationState(row.state) is EscalationState.ESCALATED
    }
    under_way = [
        row
        for row in rows
        if row.next_at and not is_waiting_for_end_time(row) and row.alert_id not in escalated
    ]
    live = [row for row in under_way if alerts[row.alert_id].is_triggered]
    over = [row.alert_id for row in under_way if not alerts[row.alert_id].is_triggered]
    # The worker will soon process the changes that closed these alerts. Until then, nobody must be
    # paged for these alerts.
    stop_escalations(over, session=session, now=now)
    labels = find_alert_labels(
        [row.alert_id for row in live], session=session, reading=escalation_settings.reading
    )
    paging = escalation_settings.paging
    _EscalationBatch(alerts, labels, StartReasons(), paging, session, now).take_steps(live)
    count = len(rows)
    start_escalations(escalated, session=session, now=now, escalation_settings=escalation_settings)
    return count


def schedule_retry(escalation_id: int, *, session: Session, now: datetime) -> None:
    """Schedule a retry of a failed step, so that other escalations can run in the meantime."""
    session.execute(
        build_bulk_update(Escalation)
        .where(Escalation.id == escalation_id, Escalation.next_at.is_not(None))
        .values(next_at=now + _RETRY_DELAY, decided_at=now)
    )


@dataclass(frozen=True)
class _EscalationBatch:
    """Locked escalations that are processed together, with their data by alert ID."""

    alerts: Mapping[int, PageableAlert]
    labels: Mapping[int, AlertLabels]
    beginnings: StartReasons
    paging: PagingSettings
    session: Session
    now: datetime
    results: DecisionChanges = field(default_factory=DecisionChanges)

    def take_steps(self, rows: Sequence[Escalation]) -> None:
        """Decide the next actions of active escalations, whose rows the session has locked."""
        if not rows:
            return
        session, now, results = self.session, self.now, self.results
        planned, plans = self._load_plans(rows)
        recipients = self._load_recipients(planned, plans)
        mutes = find_mutes(list(self.labels.values()), moment=now, session=session)
        pages = _find_current_round_pages(planned, session=session)
        for row in planned:
            alert = self.alerts[row.alert_id]
            one = EscalationEvaluator(row, alert, plans[row.policy_id], recipients, results, now)
            one.start_escalation(self.beginnings)
            one.take_due_actions(mutes.get(row.alert_id), pages.get(row.id, ()))
            row.decided_at = now
        self._store_changes()

    def _load_plans(
        self, rows: Sequence[Escalation]
    ) -> tuple[Sequence[Escalation], Mapping[int | None, NamedPlan]]:
        """Return the escalations to process, and their plans by policy ID.

        An escalation whose policy no longer applies starts again with another policy, or ends.
        """
        session = self.session
        policies = _load_policies({row.policy_id for row in rows}, session=session)
        of_groups = {each.id for each in policies.values() if each.group_id is not None}
        concerned = {row.project_id for row in rows if row.policy_id in of_groups}
        used = find_group_chains(concerned, session=session) if concerned else {}
        gone = [
            row
            for row in rows
            if row.policy_id not in policies
            or (
                row.policy_id in of_groups
                and not _is_policy_inherited(used.get(row.project_id), row, policies)
            )
        ]
        if gone:
            restarted = self._choose_new_policies(gone)
            policies |= _load_policies({row.policy_id for row in restarted}, session=session)
            rows = [*(row for row in rows if row not in gone), *restarted]
        return rows, {each.id: NamedPlan(each.name, build_plan(each)) for each in policies.values()}

    def _load_recipients(
        self, rows: Sequence[Escalation], plans: Mapping[int | None, NamedPlan]
    ) -> RecipientLookup:
        session, sends_mail = self.session, self.paging.sends_mail
        wanted: dict[tuple[Namespace, bool], set[EscalationPlan]] = {}
        for row in rows:
            alert = self.alerts[row.alert_id]
            key = alert.project, alert.is_critical
            wanted.setdefault(key, set()).add(plans[row.policy_id].plan)
            if row.answered_by_id is not None:
                wanted[key].add(EscalationPlan((build_immediate_step(row.answered_by_id),)))
        found = load_recipients(wanted, sends_mail=sends_mail, session=session, now=self.now)
        own = {row.policy_id: plans[row.policy_id].plan for row in rows}
        return replace(found, turns=lock_round_robin_turns(own, session=session))

    def _choose_new_policies(self, rows: Sequence[Escalation]) -> Sequence[Escalation]:
        """Choose policies for escalations without a policy, and return the restarted escalations.

        Restarted escalations are new rows, since pages of the previous policy do not count for
        steps of the new policy.
        """
        session, results, restarted = self.session, self.results, list[Escalation]()
        routing = load_routing({row.project_id for row in rows}, session=session)
        for row in rows:
            alert = self.alerts[row.alert_id]
            if EscalationState(row.state) is EscalationState.EXHAUSTED:
                # All steps were taken, and the time to respond is over.
                ended = get_next_state(EscalationState.EXHAUSTED, EscalationEvent.NO_ANSWER)
                row.state, row.next_at = ended.value, None
                results.unanswered.append(alert)
                continue
            labels = self.labels.get(row.alert_id)
            choice = routing[row.project_id].choose_policy(labels) if labels else PolicyChoice()
            restarted.append(_restart_escalation(row, alert, choice, now=self.now))
            note = _NEW_POLICY_NOTE if choice.policy_id else _NO_POLICY_NOTE
            results.add_note(row.alert_id, note)
            if choice.policy_id is None:
                results.unreached.append(alert)
            session.delete(row)
        session.flush()  # An alert can have only one escalation, so delete the old rows first.
        session.add_all(restarted)
        session.flush()  # Page keys contain the IDs of escalations.
        return [row for row in restarted if row.policy_id is not None]

    def _store_changes(self) -> None:
        session, now, results, paging = self.session, self.now, self.results, self.paging
        session.flush()  # Store the rows before statements that bypass the session's objects.
        queue_pages(results.pages, session=session, now=now)
        if results.paged:
            session.execute(build_bulk_insert(EscalationPage), results.paged)
        add_activity_entries(results.entries, session=session, now=now)
        for alerts, failure in (
            (results.unreached, NOBODY_REACHED),
            (results.unanswered, NOBODY_RESPONDED),
        ):
            notify_of_paging_failure(alerts, failure, paging, session=session, now=now)


def _is_policy_inherited(
    group_chain: GroupChain | None, row: Escalation, policies: Mapping[int | None, EscalationPolicy]
) -> bool:
    """Return whether the policy belongs to a group that still contains the escalation's project."""
    return group_chain is not None and group_chain.owns_row(policies[row.policy_id])


def _load_policies(
    ids: Collection[int | None], *, session: Session
) -> dict[int | None, EscalationPolicy]:
    found = session.scalars(select(EscalationPolicy).where(EscalationPolicy.id.in_(ids)))
    return {each.id: each for each in found}


def _find_current_round_pages(
    rows: Sequence[Escalation], *, session: Session
) -> Mapping[int, Sequence[EscalationPage]]:
    """Return the pages of each escalation's current round, by escalation ID."""
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


def _restart_escalation(
    escalation: Escalation, alert: PageableAlert, choice: PolicyChoice, *, now: datetime
) -> Escalation:
    row = _build_escalation(alert, choice, now=now)
    row.started_at, row.last_paged_at = escalation.started_at, escalation.last_paged_at
    row.answered_by_id = escalation.answered_by_id
    if choice.policy_id is not None:
        row.state = get_next_state(
            EscalationState(escalation.state), EscalationEvent.POLICY_GONE
        ).value
    return row
