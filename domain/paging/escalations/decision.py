"""Decides the next actions of an escalation: hold it, evaluate its pages, take steps, or end it.

All state changes follow the table in `domain/paging/escalations/state.py`. Changes are collected in
a `DecisionChanges` object and stored later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from domain.alerts.formats.base import ParserSettings
from domain.alerts.handling.activity import ActivityEntryKind, NewActivityEntry
from domain.core.clock import format_message_time
from domain.core.durations import format_duration
from domain.paging.escalations.decision_inputs import (
    NamedPlan,
    PageableAlert,
    PreviousProgress,
    StartReasons,
    compute_clock_lead,
    get_progress,
    store_progress,
)
from domain.paging.escalations.policy_steps import (
    EscalationProgress,
    Step,
    advance_after_failed_round,
    advance_after_failure,
    advance_after_round,
    advance_after_step,
    build_immediate_step,
    build_initial_progress,
    find_next_due_time,
    format_mute_reason,
    shift_escalation_progress,
)
from domain.paging.escalations.recipients import NamedUser, RecipientLookup, StepRecipients
from domain.paging.escalations.round_robin import parse_stored_target, serialize_target
from domain.paging.escalations.state import EscalationEvent, EscalationState, get_next_state
from domain.paging.notifications.batching import UserReachability
from domain.paging.notifications.page_queue import NewPage
from domain.paging.notifications.paging_settings import PagingSettings
from domain.paging.notifications.states import PageState
from domain.paging.silences.active_mutes import Mute
from models import Escalation, EscalationPage

#: Time after which pages without a result count as failed. It is longer than the batching delay of
#: a user's pages plus one attempt to send them.
_EVALUATE_PAGES_AFTER = timedelta(seconds=90)
#: Shortest and longest interval between checks of an archived project. The interval is a tenth of
#: the time since the hold started.
_MIN_ARCHIVED_CHECK_INTERVAL, _MAX_ARCHIVED_CHECK_INTERVAL = (
    timedelta(seconds=30),
    timedelta(minutes=30),
)
#: Time that a user has to respond after their acknowledgement expires, before other users are
#: paged.
_ACKNOWLEDGER_RESPONSE_TIME = timedelta(minutes=5)
_ARCHIVED_REASON = "the project is archived"
_ANSWERED_BY = "The user who acknowledged the alert"
#: Suffix that marks the keys of repeated pages.
_REPEATED_PAGE_SUFFIX = ", again"


@dataclass(frozen=True, kw_only=True)
class EscalationSettings:
    """Service settings that escalations depend on."""

    reading: ParserSettings
    paging: PagingSettings


@dataclass
class DecisionChanges:
    """Changes that result from decisions and are stored together."""

    pages: list[NewPage] = field(default_factory=list)
    paged: list[dict[str, Any]] = field(default_factory=list)
    entries: list[NewActivityEntry] = field(default_factory=list)
    #: Alerts for which a whole round reached nobody, and alerts to which nobody responded.
    unreached: list[PageableAlert] = field(default_factory=list)
    unanswered: list[PageableAlert] = field(default_factory=list)

    def add_note(self, alert_id: int, text: str) -> None:
        """Add an entry to the activity of an alert."""
        self.entries.append(
            NewActivityEntry(alert_id=alert_id, kind=ActivityEntryKind.ESCALATION, text=text)
        )


class EscalationEvaluator:
    """Decides the next actions of one escalation at a given time."""

    def __init__(
        self,
        row: Escalation,
        alert: PageableAlert,
        policy: NamedPlan,
        recipients: RecipientLookup,
        results: DecisionChanges,
        now: datetime,
    ) -> None:
        self._row = row
        self._alert = alert
        self._policy = policy
        self._plan = policy.plan
        self._recipients = recipients
        self._results = results
        self._now = now

    @property
    def _state(self) -> EscalationState:
        return EscalationState(self._row.state)

    def _apply_event(self, event: EscalationEvent) -> None:
        self._row.state = get_next_state(self._state, event).value

    @property
    def _progress(self) -> EscalationProgress:
        return get_progress(self._row)

    @property
    def _is_round_over(self) -> bool:
        return self._row.step >= len(self._plan.steps)

    def start_escalation(self, beginnings: StartReasons) -> None:
        """Set the initial progress of an escalation, and log why it starts.

        An escalation of a recurring alert resumes the progress of the previous escalation.
        """
        row = self._row
        story = beginnings.previous_progress.get(row.alert_id)
        former = beginnings.escalated.get(row.alert_id)
        if former is not None:
            is_same = former.policy_id == row.policy_id
            self._make_next_step_due(
                get_progress(former) if is_same else build_initial_progress(self._now)
            )
        elif row.alert_id in beginnings.severity_increased:
            self._add_note(f"The alert became more severe. Paging starts with {self._policy.name}.")
        elif story is not None and story.policy_id == row.policy_id:
            self._resume_previous_progress(story)

    def _make_next_step_due(self, progress: EscalationProgress) -> None:
        """Make the next step due immediately.

        After the last step, make step 1 due.
        """
        if progress.step >= len(self._plan.steps):
            progress = build_initial_progress(self._now)
        store_progress(self._row, advance_after_failure(self._plan, progress, now=self._now))

    def _resume_previous_progress(self, story: PreviousProgress) -> None:
        row, waits = self._row, story.again_at > self._now
        row.last_paged_at, row.turns = story.last_paged_at, story.turns
        opened = f"The alert opened again after {format_duration(story.calm)}"
        store_progress(row, story.progress)
        if self._is_round_over and row.round > self._plan.repeats and story.has_reached:
            # All steps had run, so the round starts over and the same users are paged again.
            store_progress(row, build_initial_progress(story.again_at))
            then = f"at {format_message_time(story.again_at)}" if waits else "immediately"
            self._add_note(f"{opened}. All steps had run, so they start again {then}.")
            return
        row.has_reached = story.has_reached
        if story.last_paged_at is None:
            return
        row.again_at = story.again_at
        then = f"at {format_message_time(story.again_at)}" if waits else "now"
        self._add_note(
            f"{opened}. Paging continues. People who were paged before are paged again {then}."
        )

    def take_due_actions(self, mute: Mute | None, pages: Sequence[EscalationPage]) -> None:
        """Take all actions that are due.

        `pages` are the pages of the current round.
        """
        self._correct_clock_difference()
        if self._state is EscalationState.EXHAUSTED:
            self._check_for_response(mute)
            return
        hold = self._find_hold(mute)
        if hold is not None:
            self._hold_escalation(*hold)
            return
        self._end_hold()
        self._evaluate_pages(pages)
        self._page_acknowledger()
        self._repeat_pages()
        self._take_due_steps()

    def _correct_clock_difference(self) -> None:
        """Correct the escalation's stored times if they were recorded by a clock that was ahead."""
        row = self._row
        ahead = compute_clock_lead(row, self._now)
        if not ahead:
            return
        self._apply_event(EscalationEvent.CLOCK_SET_BACK)
        store_progress(row, shift_escalation_progress(self._progress, -ahead))
        for name in ("next_at", "judge_at", "again_at", "held_since", "last_paged_at"):
            moment = getattr(row, name)
            if moment is not None:
                setattr(row, name, moment - ahead)
        row.started_at = min(row.started_at, self._now)

    def _check_for_response(self, mute: Mute | None) -> None:
        row = self._row
        if row.next_at is None or row.next_at > self._now:
            return
        hold = self._find_hold(mute)
        if hold is not None:
            self._apply_event(EscalationEvent.HOLD)
            row.held_by, row.held_until, row.next_at = hold
            row.held_since = row.held_since or self._now
            return
        if row.held_since is not None:
            self._apply_event(EscalationEvent.RELEASE)
            row.held_since = row.held_by = row.held_until = None
            row.next_at = self._now + self._plan.pause
            return
        self._apply_event(EscalationEvent.NO_ANSWER)
        row.next_at = None
        pause = format_duration(self._plan.pause)
        self._add_note(
            f"Nobody answered within {pause} after the last step. The maintainers are notified."
        )
        self._results.unanswered.append(self._alert)

    def _find_hold(self, mute: Mute | None) -> tuple[str, datetime | None, datetime] | None:
        """Return the reason for a hold, the end of the hold, and the time of the next check.

        Return None if the escalation is not held.
        """
        if self._alert.is_archived:
            since = self._row.held_since or self._now
            pause = min(
                max((self._now - since) / 10, _MIN_ARCHIVED_CHECK_INTERVAL),
                _MAX_ARCHIVED_CHECK_INTERVAL,
            )
            return _ARCHIVED_REASON, None, self._now + pause
        # A flapping alert delays only repeated pages (`again_at`); its steps run as usual.
        if mute is None or not mute.holds_every_page:
            return None
        return format_mute_reason(mute), mute.until, mute.look_again_at

    def _hold_escalation(self, words: str, until: datetime | None, look_again_at: datetime) -> None:
        row = self._row
        if row.held_by != words:
            end = f" until {format_message_time(until)}" if until else ""
            self._add_note(f"Paging is held back{end}: {words}.")
        self._apply_event(EscalationEvent.HOLD)
        row.held_by, row.held_until = words, until
        row.held_since = row.held_since or self._now
        row.next_at = look_again_at

    def _end_hold(self) -> None:
        row = self._row
        if row.held_since is None:
            return
        self._apply_event(EscalationEvent.RELEASE)
        self._add_note(f"Paging continues. It was held back: {row.held_by}.")
        store_progress(row, shift_escalation_progress(self._progress, self._now - row.held_since))
        row.held_since = row.held_by = row.held_until = None
        if row.judge_at is not None:
            # Pages that could not be sent during the hold are sent within half a minute after the
            # hold ends.
            row.judge_at = max(row.judge_at, self._now + _EVALUATE_PAGES_AFTER)

    def _evaluate_pages(self, pages: Sequence[EscalationPage]) -> None:
        """Process the outcomes of pages in this round.

        If the last step failed, the next step is due immediately.
        """
        row = self._row
        taken = [each for each in pages if each.step]
        row.has_reached = row.has_reached or any(map(_is_accepted_page, taken))
        if row.judge_at is None:
            return
        own = [each for each in pages if not _is_repeated_page(each)]
        number = max((each.step for each in own), default=row.step)
        last = [each for each in own if each.step == number]
        if any(map(_is_accepted_page, last)):
            row.judge_at = None
            return
        if row.judge_at > self._now and any(each.outcome is None for each in last):
            return
        row.judge_at = None
        self._apply_event(EscalationEvent.FAILED)
        step = f"Step {number} of {self._policy.name}" if number else _ANSWERED_BY
        what = "reached nobody" if number else "was not reached"
        self._add_note_unless_retrying(
            f"{step} {what}: no contact accepted the pages{self._next_step_suffix}."
        )
        store_progress(row, advance_after_failure(self._plan, self._progress, now=self._now))

    @property
    def _next_step_suffix(self) -> str:
        return "" if self._is_round_over else ", so the next step runs immediately"

    def _page_acknowledger(self) -> None:
        """Page the user whose acknowledgement expired.

        This page is sent before the first step is taken.
        """
        row, user_id = self._row, self._row.answered_by_id
        if user_id is None:
            return
        row.answered_by_id = None
        found = self._find_recipients(build_immediate_step(user_id))
        if not found.reaches_anyone:
            self._add_note(f"{_ANSWERED_BY} cannot be reached, so paging starts again immediately.")
            self._log_unreached_users(found.unreached)
            return
        self._queue_pages(_list_recipient_keys(found), 0, f"escalation {row.id}, asked first")
        store_progress(row, build_initial_progress(self._now + _ACKNOWLEDGER_RESPONSE_TIME))
        row.judge_at = self._now + _EVALUATE_PAGES_AFTER
        pause = format_duration(_ACKNOWLEDGER_RESPONSE_TIME)
        self._add_note(
            f"{_ANSWERED_BY} is paged first. Without an answer, paging starts again in {pause}."
        )

    def _repeat_pages(self) -> None:
        """Repeat the pages that were sent before the alert was resolved and recurred."""
        row = self._row
        if row.again_at is None or row.again_at > self._now:
            return
        row.again_at = None
        taken = self._plan.steps if row.round > 1 else self._plan.steps[: row.step]
        seen: set[tuple[int | None, int | None]] = set()
        for number, step in enumerate(taken, 1):
            found = (
                self._find_current_round_robin_recipients(step, number)
                if step.takes_turns
                else self._find_recipients(step)
            )
            new = [each for each in _list_recipient_keys(found) if each not in seen]
            seen.update(new)
            self._queue_pages(new, number, f"escalation {row.id}{_REPEATED_PAGE_SUFFIX}")

    def _take_due_steps(self) -> None:
        row, due = self._row, self._now
        while True:
            if self._is_round_over:
                if row.judge_at is not None:
                    break
                if not self._start_next_round():
                    return
            due = find_next_due_time(self._plan, self._progress) or self._now
            if due > self._now:
                break
            self._take_next_step()
        waited_for = (None if self._is_round_over else due, row.judge_at, row.again_at)
        row.next_at = min(each for each in waited_for if each is not None)

    def _start_next_round(self) -> bool:
        """Start the next round, or end the escalation.

        Return whether another round was started.
        """
        row, now = self._row, self._now
        following: EscalationProgress | None
        if row.has_reached:
            following = advance_after_round(self._plan, self._progress, now=now)
        else:
            following = advance_after_failed_round(
                self._plan, self._progress, started_at=row.started_at, now=now
            )
            self._results.unreached.append(self._alert)
            self._add_note_unless_retrying(
                "No step reached anybody. All steps are retried at "
                f"{format_message_time(following.began_at)}, and then until somebody is reached."
            )
        if following is None:
            self._apply_event(EscalationEvent.ALL_TAKEN)
            self._add_note(f"All steps of {self._policy.name} have run. Nobody else is paged.")
            row.next_at, row.ended_at = now + self._plan.pause, now
            return False
        self._apply_event(EscalationEvent.ROUND_OVER)
        store_progress(row, following)
        row.has_reached = False
        return True

    def _take_next_step(self) -> None:
        """Take the next step and page its recipients."""
        row = self._row
        self._apply_event(EscalationEvent.STEP_DUE)
        step, number = self._plan.steps[row.step], row.step + 1
        found = (
            self._find_next_round_robin_recipients(step, number)
            if step.takes_turns
            else self._find_recipients(step)
        )
        self._queue_pages(
            _list_recipient_keys(found),
            number,
            f"escalation {row.id}, round {row.round}, step {number}",
        )
        store_progress(row, advance_after_step(self._plan, self._progress, now=self._now))
        self._log_unreached_recipients(found, number)
        if found.reaches_anyone:
            row.judge_at = self._now + _EVALUATE_PAGES_AFTER
        else:
            store_progress(row, advance_after_failure(self._plan, self._progress, now=self._now))

    def _find_recipients(self, step: Step) -> StepRecipients:
        alert = self._alert
        return self._recipients.find_step_recipients(
            alert.project, step, is_critical=alert.is_critical
        )

    def _find_next_round_robin_recipients(self, step: Step, number: int) -> StepRecipients:
        """Return the recipients of the next reachable target in the rotation."""
        row, skipped = self._row, list[str]()
        for target in self._recipients.turns.order_targets(row.policy_id, number, step):
            found = self._find_recipients(replace(step, targets=(target,)))
            if found.reaches_anyone:
                self._recipients.turns.store_last_target(row.policy_id, number, target)
                row.turns = {**(row.turns or {}), str(number): serialize_target(target)}
                found.gaps[:0] = [f"{each}, so the next target was paged" for each in skipped]
                return found
            skipped += found.reasons
        # Nobody can be reached now. As in other steps, pages to users in quiet hours wait.
        return self._find_recipients(step)

    def _find_current_round_robin_recipients(self, step: Step, number: int) -> StepRecipients:
        """Return the recipients of the target that was paged before, or of the next target.

        The next target is used if the previous target is no longer part of the step.
        """
        stored = (self._row.turns or {}).get(str(number))
        target = parse_stored_target(stored) if stored else None
        if target not in step.targets:
            return self._find_next_round_robin_recipients(step, number)
        return self._find_recipients(replace(step, targets=(target,)))

    def _queue_pages(
        self, keys: Sequence[tuple[int | None, int | None]], number: int, prefix: str
    ) -> None:
        row = self._row
        for user_id, channel_id in keys:
            recipient = f"user {user_id}" if channel_id is None else f"channel {channel_id}"
            page = NewPage(
                key=f"{prefix}, {recipient}",
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
                    "step": number,
                    "paged_at": self._now,
                    "escalation_id": row.id,
                    "page_key": page.key,
                    "project_id": row.project_id,
                    "policy_id": row.policy_id,
                    "route_id": row.route_id,
                }
            )
            row.last_paged_at = self._now

    def _log_unreached_recipients(self, recipients: StepRecipients, number: int) -> None:
        """Record in the alert's activity which recipients the step did not reach, and why."""
        step = f"Step {number} of {self._policy.name}"
        gaps = "; ".join(recipients.gaps)
        if not recipients.reaches_anyone:
            self._add_note_unless_retrying(
                f"{step} reached nobody{f': {gaps}' if gaps else ''}{self._next_step_suffix}."
            )
        elif gaps:
            self._add_note_unless_retrying(f"{step}: {gaps}.")
        if not self._is_retry_round:
            quiet = UserReachability.QUIET  # The user is paged when quiet hours end.
            self._log_unreached_users(
                {who: why for who, why in recipients.unreached.items() if why != quiet}
            )

    def _log_unreached_users(self, people: Mapping[NamedUser, UserReachability]) -> None:
        self._results.entries += [
            NewActivityEntry(
                alert_id=self._row.alert_id,
                kind=ActivityEntryKind.PAGE,
                text=f"{reach.value} and was not paged",
                user_id=person.id,
                user_name=person.name,
            )
            for person, reach in people.items()
        ]

    @property
    def _is_retry_round(self) -> bool:
        """True if this round is one of the retries that run until a user is reached."""
        return self._row.round > self._plan.repeats + 1

    def _add_note_unless_retrying(self, text: str) -> None:
        """Add a note to the activity, except in retry rounds."""
        if not self._is_retry_round:
            self._add_note(text)

    def _add_note(self, text: str) -> None:
        self._results.add_note(self._row.alert_id, text)


def _is_repeated_page(page: EscalationPage) -> bool:
    return _REPEATED_PAGE_SUFFIX in (page.page_key or "")


def _is_accepted_page(page: EscalationPage) -> bool:
    return page.outcome == PageState.ACCEPTED.value


def _list_recipient_keys(recipients: StepRecipients) -> list[tuple[int | None, int | None]]:
    """Return the recipients of a step as pairs: a user ID and None, or None and a channel ID."""
    users: list[tuple[int | None, int | None]] = [(each, None) for each in recipients.user_ids]
    return users + [(None, each) for each in recipients.channel_ids]
