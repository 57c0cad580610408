"""Quiet hours: the part of each day in which somebody is not paged."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from domain.errors import InvalidError

_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, kw_only=True)
class QuietHours:
    """From one time of day to another, which may be on the next day, in a time zone."""

    time_zone: str
    #: In minutes after midnight.
    starts: int
    ends: int
    #: Whether pages about critical alerts leave all the same.
    lets_critical_through: bool = True

    def __post_init__(self) -> None:
        """Raise InvalidError for times that are none, or the same."""
        if not (0 <= self.starts < _DAY_MINUTES and 0 <= self.ends < _DAY_MINUTES):
            message = "Enter a time of day such as 22:00."
            raise InvalidError(message, field="quiet_from")
        if self.starts == self.ends:
            message = "Quiet hours must not end at the time at which they start."
            raise InvalidError(message, field="quiet_until")

    def end_at(self, moment: datetime) -> datetime | None:
        """Return when the quiet hours end that a moment is in, or None if it is in none."""
        zone = ZoneInfo(self.time_zone)
        local = moment.astimezone(zone)
        if not self._covers(local.hour * 60 + local.minute):
            return None
        at = time(self.ends // 60, self.ends % 60)
        for day in (local.date(), local.date() + timedelta(days=1)):
            # A time that occurs twice ends them the second time if the first one has passed.
            for fold in (0, 1):
                end = datetime.combine(day, at.replace(fold=fold), zone).astimezone(UTC)
                if end > moment:
                    return end
        return None

    def _covers(self, minute: int) -> bool:
        if self.starts < self.ends:
            return self.starts <= minute < self.ends
        return minute >= self.starts or minute < self.ends


def minutes_of(text: str, *, field: str) -> int:
    """Return the minutes after midnight of a time such as 22:00, or raise InvalidError."""
    hours, colon, minutes = text.strip().partition(":")
    digits = hours.isdecimal() and minutes.isdecimal() and (hours + minutes).isascii()
    if not (colon and digits and len(minutes) == 2 and len(hours) <= 2):  # noqa: PLR2004 - digits
        message = "Enter a time of day such as 22:00."
        raise InvalidError(message, field=field)
    found = int(hours) * 60 + int(minutes)
    if int(minutes) >= 60 or found >= _DAY_MINUTES:  # noqa: PLR2004 - minutes of an hour
        message = "A time of day is between 00:00 and 23:59."
        raise InvalidError(message, field=field)
    return found


def written_time(minutes: int) -> str:
    """Return minutes after midnight as a time such as 22:00."""
    return f"{minutes // 60:02}:{minutes % 60:02}"
