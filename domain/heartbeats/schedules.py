"""When a heartbeat is expected: after an interval, or by a schedule in cron's format."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from domain.errors import InvalidError

SHORTEST_EVERY = timedelta(seconds=1)
#: Of an interval and of a grace time.
LONGEST = timedelta(days=366)
LONGEST_CRON = 100
_FIELDS = 5
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


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
            message = "Give either an interval or a cron expression."
            raise InvalidError(message, field="every")
        if not timedelta(0) <= self.grace <= LONGEST or self.grace.microseconds:
            message = f"The grace time is from 0 s to {LONGEST.days} days, in whole seconds."
            raise InvalidError(message, field="grace")
        _check_zone(self.time_zone)
        if self.every is not None:
            _check_interval(self.every)
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


def _check_interval(every: timedelta) -> None:
    if not SHORTEST_EVERY <= every <= LONGEST or every.microseconds:
        message = f"The interval is from 1 s to {LONGEST.days} days, in whole seconds."
        raise InvalidError(message, field="every")


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
