"""When a heartbeat is expected, and what becomes of it; without database."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from domain.core.durations import duration_text
from domain.core.errors import InvalidError
from domain.core.hosts import Unreachable

SHORTEST_EVERY = timedelta(seconds=1)
#: Of an interval and of a grace time.
LONGEST = timedelta(days=366)
LONGEST_CRON = 100
_FIELDS = 5
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
#: While no ping can arrive, whether one can again is looked at so often.
_LOOK_AGAIN = timedelta(seconds=10)
#: However short its interval, an alert that somebody resolved opens again no sooner.
_SHORTEST_REST = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When pings are expected, and how late they may be.

    Raise InvalidError, naming the field, for one that can never be met.
    """

    grace: timedelta
    #: None for a schedule in cron's format.
    every: timedelta | None = None
    cron: str | None = None
    #: The name of a time zone, for cron's format.
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        """Check the values."""
        if (self.every is None) == (self.cron is None):
            raise InvalidError("Give either an interval or a cron expression.", field="every")
        _check_length(self.grace, timedelta(0), "grace", "The grace time is from 0 s")
        _check_zone(self.time_zone)
        if self.every is not None:
            _check_length(self.every, SHORTEST_EVERY, "every", "The interval is from 1 s")
        if self.cron is not None:
            _check_cron(self.cron)

    def expected_after(self, moment: datetime) -> datetime:
        """Return when the next ping is expected after one at this moment."""
        if self.every is not None:
            return moment + self.every
        return _next_of_cron(self.cron or "", self.time_zone, moment)

    def due_after(self, moment: datetime) -> datetime:
        """Return until when the next ping may come after one at this moment."""
        return self.expected_after(moment) + self.grace

    def earlier(self, moment: datetime) -> datetime:
        """Return the moment that is the grace time earlier."""
        return moment - self.grace

    def run_ends_by(self, started_at: datetime) -> datetime | None:
        """Return until when a run may take; None without a grace time: as long as it likes."""
        return started_at + self.grace if self.grace else None

    @property
    def latest(self) -> str:
        """How late a ping may be, as people write it."""
        return duration_text(self.grace)


def _check_length(length: timedelta, least: timedelta, field: str, words: str) -> None:
    if not least <= length <= LONGEST or length.microseconds:
        raise InvalidError(f"{words} to {LONGEST.days} days, in whole seconds.", field=field)


def _check_zone(name: str) -> None:
    if name not in _zones():
        message = f"“{name[:64]}” is not a time zone: use a name such as Europe/Berlin or UTC."
        raise InvalidError(message, field="time_zone")


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _check_cron(expression: str) -> None:
    if len(expression) > LONGEST_CRON or len(expression.split()) != _FIELDS:
        message = (
            "A cron expression has five fields: minute, hour, day of the month, month and day of "
            f"the week, such as 30 3 * * 1-5; at most {LONGEST_CRON} characters."
        )
        raise InvalidError(message, field="cron")
    try:
        next(CronSim(expression, _SOME_DAY))
    except (CronSimError, StopIteration) as error:
        reason = str(error) or "no day ever matches it"
        message = f"The cron expression cannot be read: {reason}."
        raise InvalidError(message, field="cron") from error


def _next_of_cron(expression: str, time_zone: str, moment: datetime) -> datetime:
    """Return the next time; local times are handled as Debian's cron does at clock changes."""
    return next(CronSim(expression, moment.astimezone(ZoneInfo(time_zone)))).astimezone(UTC)


class HeartbeatState(StrEnum):
    """The state of a heartbeat."""

    #: No ping came yet: nothing is expected.
    NEW = "new"
    UP = "up"
    #: Up, and the next ping is overdue within the grace time; never stored.
    LATE = "late"
    DOWN = "down"
    PAUSED = "paused"


class PingKind(StrEnum):
    """What a ping says."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"
    #: An entry of the log, which changes nothing.
    LOG = "log"


class Problem(StrEnum):
    """Why a heartbeat is down."""

    MISSED = "missed"
    FAILED = "failed"
    #: It sent a start, and no end within the grace time.
    UNFINISHED = "unfinished"


class AlertAction(StrEnum):
    """What has to be done about the alert of a heartbeat."""

    NOTHING = "nothing"
    OPEN = "open"
    RESOLVE = "resolve"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the decision about a heartbeat needs."""

    schedule: Schedule
    state: HeartbeatState
    has_alert: bool
    counted_from: datetime | None
    started_at: datetime | None
    last_ping_kind: PingKind | None
    #: Of one that is down: whether its alert has been told of the failure that was reported last.
    is_told: bool = False
    #: When something else than a ping resolved its alert; None while that is open.
    alert_ended_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What becomes of a heartbeat."""

    state: HeartbeatState
    action: AlertAction
    #: When it has to be looked at again; None while nothing can become due.
    due_at: datetime | None
    problem: Problem | None = None
    #: Since when it is down; None if it is not.
    since: datetime | None = None
    #: The time in which the pings that are missing could not arrive: the schedule counts again from
    #: its end, and the run in progress is forgotten.
    unheard: Unreachable | None = None


def decide(facts: Facts, now: datetime, unreachable: Sequence[Unreachable] = ()) -> Decision:
    """Return what becomes of a heartbeat that has to be looked at.

    `unreachable` has the times in which no ping could arrive, in their order.
    """
    if facts.state is HeartbeatState.PAUSED:
        return _without_problem(facts, due_at=None)
    if facts.state is HeartbeatState.DOWN:
        return _still_down(facts, now, unreachable)
    due_at, problem = next_due(facts)
    if due_at is None or due_at > now:
        return _without_problem(facts, due_at=due_at)
    begin = _first_ping_at(facts, problem)
    unheard = [each for each in unreachable if _overlaps(each, begin, due_at)]
    if not unheard:
        return replace(_down(problem, due_at), due_at=_again_at(facts, now))
    return _unheard(facts, unheard[-1], now, unreachable)


def _still_down(facts: Facts, now: datetime, unreachable: Sequence[Unreachable]) -> Decision:
    """Return what becomes of one that is down: a failure is reported at once.

    If somebody resolved the alert and the job still does not report, it opens again.
    """
    problem = Problem.FAILED if facts.last_ping_kind is PingKind.FAIL else Problem.MISSED
    if not facts.is_told:
        return replace(_down(problem, now), due_at=_again_at(facts, now))
    waiting = replace(_down(problem, now), action=AlertAction.NOTHING)
    if facts.alert_ended_at is None:
        return replace(waiting, due_at=_again_at(facts, now))
    if any(each.ended_at is None for each in unreachable):
        return replace(waiting, due_at=now + _LOOK_AGAIN)
    ends = [each.ended_at for each in unreachable if each.ended_at is not None]
    # A time ahead of now comes from a clock that was wrong.
    again_at = _again_at(facts, min(max([facts.alert_ended_at, *ends]), now))
    if again_at > now:
        return replace(waiting, due_at=again_at)
    return replace(_down(problem, again_at), due_at=_again_at(facts, now))


def _again_at(facts: Facts, moment: datetime) -> datetime:
    """Return when an alert that somebody resolved at a moment opens again."""
    return max(facts.schedule.due_after(moment), moment + _SHORTEST_REST)


def _first_ping_at(facts: Facts, problem: Problem) -> datetime:
    """Return from when on the ping that is missing could be sent."""
    if problem is Problem.UNFINISHED or facts.counted_from is None:
        return facts.started_at or _EVER
    # A job may be as early as it may be late.
    expected = facts.schedule.expected_after(facts.counted_from)
    return max(facts.counted_from, facts.schedule.earlier(expected))


def _overlaps(unreachable: Unreachable, begin: datetime, end: datetime) -> bool:
    is_over_before = unreachable.ended_at is not None and unreachable.ended_at <= begin
    return unreachable.began_at < end and not is_over_before


def _unheard(
    facts: Facts, unheard: Unreachable, now: datetime, unreachable: Sequence[Unreachable]
) -> Decision:
    """Return what becomes of one that could not be heard: as if it had just pinged at the end."""
    if unheard.ended_at is None:
        return _without_problem(facts, due_at=now + _LOOK_AGAIN)
    again = replace(facts, counted_from=unheard.ended_at, started_at=None)
    decision = decide(again, now, unreachable)
    return replace(decision, unheard=decision.unheard or unheard)


_EVER = datetime(1970, 1, 1, tzinfo=UTC)


def _down(problem: Problem, since: datetime) -> Decision:
    return Decision(
        state=HeartbeatState.DOWN,
        action=AlertAction.OPEN,
        due_at=None,
        problem=problem,
        since=since,
    )


def _without_problem(facts: Facts, *, due_at: datetime | None) -> Decision:
    action = AlertAction.RESOLVE if facts.has_alert else AlertAction.NOTHING
    return Decision(state=facts.state, action=action, due_at=due_at)


def next_due(facts: Facts) -> tuple[datetime | None, Problem]:
    """Return when an alert is due unless a ping comes before, and what the problem would be."""
    missed = unfinished = None
    if facts.state is HeartbeatState.UP and facts.counted_from is not None:
        missed = facts.schedule.due_after(facts.counted_from)
    if facts.started_at is not None:
        unfinished = facts.schedule.run_ends_by(facts.started_at)
    if unfinished is not None and (missed is None or unfinished < missed):
        return unfinished, Problem.UNFINISHED
    return missed, Problem.MISSED


def shown_state(
    state: HeartbeatState, expected_at: datetime | None, now: datetime
) -> HeartbeatState:
    """Return the state that people see: late while it is up and a ping is overdue."""
    is_late = state is HeartbeatState.UP and expected_at is not None and expected_at < now
    return HeartbeatState.LATE if is_late else state


def milliseconds(moment: datetime) -> int:
    """Return a moment as milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def moment_of(number: int | None) -> datetime | None:
    """Return the moment of so many milliseconds since 1970."""
    if number is None:
        return None
    return datetime.fromtimestamp(number // 1000, tz=UTC) + timedelta(milliseconds=number % 1000)
