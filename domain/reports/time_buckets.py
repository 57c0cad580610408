"""Divides the period of a report into hours, days or weeks in the time zone of the reader."""

from bisect import bisect_right
from datetime import datetime, time, timedelta

from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.paging.on_call.schedule_values import Period
from domain.reports.types import TrendUnit

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
#: Longest periods that are divided into hours, and into days.
_MAX_LENGTH_IN_HOURS, _MAX_LENGTH_IN_DAYS = timedelta(days=2), timedelta(days=35)


class TimeBuckets:
    """The hours, days or weeks of a period. A day lasts 23 to 25 hours when clocks change."""

    def __init__(self, period: Period, time_zone: str) -> None:
        """Divide a period. Weeks start with the first day of the period."""
        length = period.end - period.start
        if length <= _MAX_LENGTH_IN_HOURS:
            self.unit = TrendUnit.HOUR
            self.starts = _list_hours(period)
        else:
            self.unit = TrendUnit.DAY if length <= _MAX_LENGTH_IN_DAYS else TrendUnit.WEEK
            step = _DAY if self.unit is TrendUnit.DAY else 7 * _DAY
            self.starts = _list_midnights(period, time_zone, step)

    def find(self, moment: datetime) -> int:
        """Return the index of the bucket that contains a time."""
        return max(bisect_right(self.starts, moment) - 1, 0)


def _list_hours(period: Period) -> list[datetime]:
    first = period.start.replace(minute=0, second=0, microsecond=0)
    count = -((first - period.end) // _HOUR)
    return [first + number * _HOUR for number in range(max(count, 1))]


def _list_midnights(period: Period, time_zone: str, step: timedelta) -> list[datetime]:
    place = get_zone(time_zone)
    day = datetime.combine(convert_to_local(period.start, place).date(), time())
    starts = []
    while (start := convert_to_utc(day, place)) < period.end:
        starts.append(start)
        day += step
    return starts
