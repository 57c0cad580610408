"""Takes the steps of escalations that are due, many at once.

What is stored is collected first: rows of escalations, pages, entries of activities, notices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.alerts.handling.activity import NewEntry, NoteKind, add_entries
from domain.alerts.matching.labels import AlertLabels
from domain.clock import date_and_time
from domain.escalations.alerts import AlertInBrief, Surroundings
from domain.escalations.notices import tell_maintainers
from domain.escalations.policies import plan_of
from domain.escalations.progress import Progress, after_round, after_step, held_for, next_due
from domain.escalations.recipients import Reached, Recipients, read_recipients
from domain.escalations.state import State
from domain.escalations.steps import Plan
from domain.notifications.paging import NewPage, queue_pages
from domain.notifications.reach import Reach
from domain.silences.muting import Mute, MuteKind, muted
from models import Escalation, EscalationPage, EscalationPolicy


@dataclass(frozen=True, slots=True)
class NamedPlan:
    """A plan with the name of its policy."""

    name: str
    plan: Plan


@dataclass
class _Results:
    """What is stored in the end."""

    pages: list[NewPage] = field(default_factory=list)
    paged: list[dict[str, Any]] = field(default_factory=list)
    entries: list[NewEntry] = field(default_factory=list)
    #: Alerts for which a whole round reached nobody.
    unreached: list[AlertInBrief] = field(default_factory=list)

    def note(self, alert_id: int, text: str) -> None:
        self.entries.append(NewEntry(alert_id=alert_id, kind=NoteKind.ESCALATION, text=text))


def take_steps(
    rows: Sequence[Escalation],
    alerts: Mapping[int, AlertInBrief],
    labels: Mapping[int, AlertLabels],
    *,
    session: Session,
    now: datetime,
    around: Surroundings,
) -> None:
    """Take the steps of escalations that are due; the session holds their rows."""
    if not rows:
        return
    plans = _read_plans(rows, session=session)
    wanted: dict[tuple[int, bool], set[Plan]] = {}
    for row in rows:
        policy = plans.get(row.policy_id or 0)
        if policy is not None:
            key = row.project_id, alerts[row.alert_id].is_critical
            wanted.setdefault(key, set()).add(policy.plan)
    recipients = read_recipients(wanted, sends_mail=around.sends_mail, session=session, now=now)
    mutes = muted(list(labels.values()), at=now, session=session)
    results = _Results()
    for row in rows:
        stepping = _Stepping(row, alerts[row.alert_id], recipients, results, now)
        stepping.run(plans.get(row.policy_id or 0), mutes.get(row.alert_id))
    _store(results, session=session, now=now)
    if around.sends_mail:
        tell_maintainers(results.unreached, base_url=around.base_url, session=session, now=now)


def _read_plans(rows: Sequence[Escalation], *, session: Session) -> Mapping[int, NamedPlan]:
    ids = {row.policy_id for row in rows}
    found = session.scalars(select(EscalationPolicy).where(EscalationPolicy.id.in_(ids)))
    return {each.id: NamedPlan(each.name, plan_of(each)) for each in found}


class _Stepping:
    """The steps of one escalation that are due now."""

    def __init__(
        self,
        row: Escalation,
        alert: AlertInBrief,
        recipients: Recipients,
        results: _Results,
        now: datetime,
    ) -> None:
        self._row = row
        self._alert = alert
        self._recipients = recipients
        self._results = results
        self._now = now

    def run(self, policy: NamedPlan | None, mute: Mute | None) -> None:
        if policy is None:
            self._end(State.POLICY_DELETED)
        elif mute is not None:
            self._hold(mute)
        else:
            self._release()
            self._take_due(policy)

    def _end(self, state: State) -> None:
        row = self._row
        row.state, row.next_at, row.ended_at = state.value, None, self._now

    def _hold(self, mute: Mute) -> None:
        row, words = self._row, mute_words(mute)
        if row.held_by != words:
            self._note(f"Paging is held back until {date_and_time(mute.until)}: {words}.")
        row.state, row.held_by, row.held_until = State.HELD.value, words, mute.until
        row.held_since = row.held_since or self._now
        row.next_at = mute.look_again_at

    def _release(self) -> None:
        row = self._row
        if row.held_since is None:
            return
        self._note(f"Paging continues. It was held back: {row.held_by}.")
        self._go_to(held_for(self._progress, self._now - row.held_since))
        row.state = State.RUNNING.value
        row.held_since = row.held_by = row.held_until = None

    @property
    def _progress(self) -> Progress:
        return Progress(self._row.round, self._row.step, self._row.round_began_at)

    def _go_to(self, progress: Progress) -> None:
        row = self._row
        row.round, row.step, row.round_began_at = progress.round, progress.step, progress.began_at

    def _take_due(self, policy: NamedPlan) -> None:
        plan, following = policy.plan, self._following(policy.plan, self._progress)
        while following is not None:
            due = next_due(plan, following)
            self._row.next_at = due
            if due is None or due > self._now:
                return
            following = self._following(plan, self._take(policy))
        self._note(f"All steps of {policy.name} were taken. Nobody else is paged.")
        self._end(State.EXHAUSTED)

    def _following(self, plan: Plan, progress: Progress | None) -> Progress | None:
        """Go to a step; a plan that became shorter meanwhile may not have it any more."""
        if progress is not None and progress.step >= len(plan.steps):
            progress = after_round(plan, progress, now=self._now)
        begins_round = progress is None or progress.round > self._row.round
        if begins_round and not self._row.has_reached:
            self._results.unreached.append(self._alert)
        if progress is not None:
            self._row.has_reached = self._row.has_reached and not begins_round
            self._go_to(progress)
        return progress

    def _take(self, policy: NamedPlan) -> Progress | None:
        """Page whom the next step reaches, and return the progress after it."""
        row = self._row
        found = self._recipients.of(
            row.project_id, policy.plan.steps[row.step], is_critical=self._alert.is_critical
        )
        self._page(found)
        self._explain(found, policy)
        row.has_reached = row.has_reached or found.is_somebody
        return after_step(policy.plan, self._progress, now=self._now, has_reached=found.is_somebody)

    def _page(self, found: Reached) -> None:
        row = self._row
        keys = [(each, None) for each in found.user_ids] + [
            (None, each) for each in found.channel_ids
        ]
        for user_id, channel_id in keys:
            recipient = f"user {user_id}" if channel_id is None else f"channel {channel_id}"
            page = NewPage(
                key=f"escalation {row.id}, round {row.round}, step {row.step + 1}, {recipient}",
                project_id=row.project_id,
                alert_id=row.alert_id,
                user_id=user_id,
                channel_id=channel_id,
                is_critical=self._alert.is_critical,
            )
            self._results.pages.append(page)
            self._results.paged.append(
                {
                    "alert_id": row.alert_id,
                    "user_id": user_id,
                    "channel_id": channel_id,
                    "round": row.round,
                    "step": row.step + 1,
                    "paged_at": self._now,
                }
            )

    def _explain(self, found: Reached, policy: NamedPlan) -> None:
        """Write into the activity whom the step did not reach, and why."""
        number = f"Step {self._row.step + 1} of {policy.name}"
        gaps = "; ".join(found.gaps)
        if not found.is_somebody:
            reasons = f": {gaps}" if gaps else ""
            goes_on = (
                ", so the next step follows immediately" if self._has_next(policy.plan) else ""
            )
            self._note(f"{number} reached nobody{reasons}{goes_on}.")
        elif gaps:
            self._note(f"{number}: {gaps}.")
        self._results.entries += [
            NewEntry(
                alert_id=self._row.alert_id,
                kind=NoteKind.PAGE,
                text=f"{reach.value}: not paged",
                user_id=person.id,
                user_name=person.name,
            )
            for person, reach in found.unreached.items()
            if reach is not Reach.QUIET  # paged when they end
        ]

    def _has_next(self, plan: Plan) -> bool:
        return self._row.step + 1 < len(plan.steps)

    def _note(self, text: str) -> None:
        self._results.note(self._row.alert_id, text)


#: Before the name of a mute.
_MUTE_WORDS = {
    MuteKind.SILENCE: "silence “{}”",
    MuteKind.MAINTENANCE: "maintenance window “{}”",
    MuteKind.FLAPPING: "the alert is flapping, {}",
    MuteKind.REOPENED: "the alert {}",
}


def mute_words(mute: Mute) -> str:
    """Return why an alert is muted, as a part of a sentence."""
    return _MUTE_WORDS[mute.kind].format(mute.name.rstrip("."))


def _store(results: _Results, *, session: Session, now: datetime) -> None:
    session.flush()  # The rows, before statements without the session's objects.
    queue_pages(results.pages, session=session, now=now)
    if results.paged:
        session.execute(insert(EscalationPage), results.paged)
    add_entries(results.entries, session=session, now=now)
