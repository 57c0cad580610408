"""Schedules and states of heartbeats, and decisions about their alerts, without a database."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from cronsim import CronSim, CronSimError

from domain.core.durations import format_duration
from domain.core.errors import InvalidError
from domain.core.hosts import UnreachablePeriod
from domain.core.time_zones import get_zone

MIN_INTERVAL = timedelta(seconds=1)
#: Maximum length of an interval or a grace time.
MAX_SCHEDULE_DURATION = timedelta(days=366)
MAX_CRON_LENGTH = 100
_CRON_FIELD_COUNT = 5
_REFERENCE_TIME = datetime(2024, 1, 1, tzinfo=UTC)
#: Interval between checks for the end of an interruption during which no pings could arrive.
_RECHECK_INTERVAL = timedelta(seconds=10)
#: Minimum delay before a manually resolved alert is opened again, for heartbeats with very short
#: intervals.
_MIN_REOPEN_DELAY = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class HeartbeatSchedule:
    """The times at which pings are expected, and how late they may be.

    Raise InvalidError, which names the field, for a schedule that can never be met.
    """

    grace: timedelta
    #: Interval between pings, or None for a cron expression.
    every: timedelta | None = None
    cron: str | None = None
    #: Name of the time zone for the cron expression.
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        """Validate the interval or cron expression, and the grace time.

        Raise InvalidError if a value is invalid.
        """
        if (self.every is None) == (self.cron is None):
            raise InvalidError("Use either an interval or a cron expression.", field="every")
        _check_duration(self.grace, timedelta(0), "grace", "grace time")
        if self.every is not None:
            _check_duration(self.every, MIN_INTERVAL, "every", "interval")
        if self.cron is not None:
            _check_cron(self.cron)

    def get_expected_time(self, moment: datetime) -> datetime:
        """Return the time at which a ping is expected after a ping at `moment`."""
        if self.every is not None:
            return moment + self.every
        # Clock changes are handled as in Debian's cron.
        local = moment.astimezone(get_zone(self.time_zone))
        return next(CronSim(self.cron or "", local)).astimezone(UTC)

    def get_due_time(self, moment: datetime) -> datetime:
        """Return the latest time at which the next ping may arrive after a ping at `moment`."""
        return self.get_expected_time(moment) + self.grace

    def subtract_grace(self, moment: datetime) -> datetime:
        """Return `moment` minus the grace time."""
        return moment - self.grace

    @property
    def grace_text(self) -> str:
        """Grace time as text for display."""
        return format_duration(self.grace)


def _check_duration(length: timedelta, minimum: timedelta, field: str, name: str) -> None:
    if not minimum <= length <= MAX_SCHEDULE_DURATION or length.microseconds:
        message = (
            f"The {name} must be a whole number of seconds from {minimum.seconds} s to "
            f"{MAX_SCHEDULE_DURATION.days} days."
        )
        raise InvalidError(message, field=field)


def _check_cron(expression: str) -> None:
    if len(expression) > MAX_CRON_LENGTH or len(expression.split()) != _CRON_FIELD_COUNT:
        message = (
            "A cron expression must have five fields (minute, hour, day of the month, month and "
            f"day of the week), such as 30 3 * * 1-5, and at most {MAX_CRON_LENGTH} characters."
        )
        raise InvalidError(message, field="cron")
    try:
        next(CronSim(expression, _REFERENCE_TIME))
    except (CronSimError, StopIteration) as error:
        reason = str(error) or "it never matches a day"
        message = f"The cron expression is invalid: {reason}."
        raise InvalidError(message, field="cron") from error


class HeartbeatState(StrEnum):
    """The state of a heartbeat. `late` is only displayed, never stored."""

    #: State before the first ping, in which no ping is expected yet.
    NEW = "new"
    UP = "up"
    #: State of a heartbeat whose ping is overdue within the grace time. This state is never stored.
    #: UP is stored instead.
    LATE = "late"
    DOWN = "down"
    PAUSED = "paused"


class PingKind(StrEnum):
    """The event that a ping reports: the start of a run, its result, or a log entry."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"
    #: Log entry that does not change the state.
    LOG = "log"


class HeartbeatProblem(StrEnum):
    """The reason why a heartbeat is down."""

    MISSED = "missed"
    FAILED = "failed"
    #: Run that started, but did not end within the grace time.
    UNFINISHED = "unfinished"


class AlertAction(StrEnum):
    """The action that is required for the alert of a heartbeat."""

    NOTHING = "nothing"
    OPEN = "open"
    RESOLVE = "resolve"


@dataclass(frozen=True, kw_only=True)
class HeartbeatFacts:
    """The schedule, state and ping data that determine the next state of a heartbeat."""

    schedule: HeartbeatSchedule
    state: HeartbeatState
    has_alert: bool
    counted_from: datetime | None
    started_at: datetime | None
    last_ping_kind: PingKind | None
    #: True if the alert of a heartbeat that is down already includes the last reported failure.
    is_failure_reported: bool = False
    #: Time at which something other than a ping resolved the alert, or None while it is open.
    alert_ended_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class HeartbeatDecision:
    """The result of evaluating a heartbeat: its new state, and the action for its alert."""

    state: HeartbeatState
    action: AlertAction
    #: Time of the next evaluation, or None if nothing can become due.
    due_at: datetime | None
    problem: HeartbeatProblem | None = None
    #: Time since which the heartbeat has been down, or None if it is not down.
    since: datetime | None = None
    #: Interruption during which the missing pings could not arrive. The schedule restarts at the
    #: end of the interruption, and the current run is discarded.
    interruption: UnreachablePeriod | None = None


def decide_heartbeat_state(
    facts: HeartbeatFacts, now: datetime, unreachable_periods: Sequence[UnreachablePeriod] = ()
) -> HeartbeatDecision:
    """Decide the state of a heartbeat that is due for evaluation, and the action for its alert.

    `unreachable_periods` contains the interruptions during which no ping could arrive, in order.
    """
    if facts.state is HeartbeatState.PAUSED:
        return _build_decision_without_problem(facts, due_at=None)
    if facts.state is HeartbeatState.DOWN:
        return _decide_state_while_down(facts, now, unreachable_periods)
    due_at, problem = get_next_due_time(facts)
    if due_at is None or due_at > now:
        return _build_decision_without_problem(facts, due_at=due_at)
    begin = _get_earliest_ping_time(facts, problem)
    unheard = [
        each
        for each in unreachable_periods
        if each.began_at < due_at and (each.ended_at is None or each.ended_at > begin)
    ]
    if not unheard:
        return _build_down_decision(problem, due_at, _get_reopen_time(facts, now))
    return _decide_state_after_interruption(facts, unheard[-1], now, unreachable_periods)


def _decide_state_while_down(
    facts: HeartbeatFacts, now: datetime, unreachable_periods: Sequence[UnreachablePeriod]
) -> HeartbeatDecision:
    """Decide the state of a heartbeat that is down. A failure is reported immediately.

    If a user resolved the alert and the job still sends no ping, the alert is opened again.
    """
    problem = (
        HeartbeatProblem.FAILED
        if facts.last_ping_kind is PingKind.FAIL
        else HeartbeatProblem.MISSED
    )
    reported = _build_down_decision(problem, now, _get_reopen_time(facts, now))
    if not facts.is_failure_reported:
        return reported
    waiting = replace(reported, action=AlertAction.NOTHING)
    if facts.alert_ended_at is None:
        return waiting
    if any(each.ended_at is None for each in unreachable_periods):
        return replace(waiting, due_at=now + _RECHECK_INTERVAL)
    ends = [each.ended_at for each in unreachable_periods if each.ended_at is not None]
    # Limit the time to `now`, since a wrong clock may have set a time in the future.
    again_at = _get_reopen_time(facts, min(max([facts.alert_ended_at, *ends]), now))
    if again_at > now:
        return replace(waiting, due_at=again_at)
    return replace(reported, since=again_at)


def _get_reopen_time(facts: HeartbeatFacts, moment: datetime) -> datetime:
    """Return the time at which an alert that was resolved at `moment` is opened again."""
    return max(facts.schedule.get_due_time(moment), moment + _MIN_REOPEN_DELAY)


def _get_earliest_ping_time(facts: HeartbeatFacts, problem: HeartbeatProblem) -> datetime:
    """Return the earliest time at which the missing ping could have been sent."""
    if problem is HeartbeatProblem.UNFINISHED or facts.counted_from is None:
        return facts.started_at or datetime(1970, 1, 1, tzinfo=UTC)
    # A ping may be early by as much as it may be late.
    expected = facts.schedule.get_expected_time(facts.counted_from)
    return max(facts.counted_from, facts.schedule.subtract_grace(expected))


def _decide_state_after_interruption(
    facts: HeartbeatFacts,
    unheard: UnreachablePeriod,
    now: datetime,
    unreachable_periods: Sequence[UnreachablePeriod],
) -> HeartbeatDecision:
    """Decide the state of a heartbeat as if a ping had arrived at the end of an interruption."""
    if unheard.ended_at is None:
        return _build_decision_without_problem(facts, due_at=now + _RECHECK_INTERVAL)
    again = replace(facts, counted_from=unheard.ended_at, started_at=None)
    decision = decide_heartbeat_state(again, now, unreachable_periods)
    return replace(decision, interruption=decision.interruption or unheard)


def _build_down_decision(
    problem: HeartbeatProblem, since: datetime, due_at: datetime
) -> HeartbeatDecision:
    return HeartbeatDecision(
        state=HeartbeatState.DOWN,
        action=AlertAction.OPEN,
        due_at=due_at,
        problem=problem,
        since=since,
    )


def _build_decision_without_problem(
    facts: HeartbeatFacts, *, due_at: datetime | None
) -> HeartbeatDecision:
    action = AlertAction.RESOLVE if facts.has_alert else AlertAction.NOTHING
    return HeartbeatDecision(state=facts.state, action=action, due_at=due_at)


def get_next_due_time(facts: HeartbeatFacts) -> tuple[datetime | None, HeartbeatProblem]:
    """Return the time at which an alert is due unless a ping arrives, and the alert's reason."""
    missed = unfinished = None
    if facts.state is HeartbeatState.UP and facts.counted_from is not None:
        missed = facts.schedule.get_due_time(facts.counted_from)
    if facts.started_at is not None and facts.schedule.grace:
        unfinished = facts.started_at + facts.schedule.grace
    if unfinished is not None and (missed is None or unfinished < missed):
        return unfinished, HeartbeatProblem.UNFINISHED
    return missed, HeartbeatProblem.MISSED


def convert_to_unix_ms(moment: datetime) -> int:
    """Convert a time to milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def convert_from_unix_ms(number: int | None) -> datetime | None:
    """Convert milliseconds since 1970 to a time."""
    if number is None:
        return None
    return datetime.fromtimestamp(number // 1000, tz=UTC) + timedelta(milliseconds=number % 1000)
