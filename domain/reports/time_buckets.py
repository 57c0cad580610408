"""Divides the period of a report into hours, days or weeks in the time zone of the reader."""

from bisect import bisect_right
from datetime import datetime, time, timedelta

from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.paging.on_call.schedule_values import Period
from domain.reports.types import TrendUnit

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


class TimeBuckets:
    """The hours, days or weeks of a period. A day lasts 23 to 25 hours when clocks change."""

    def __init__(self, period: Period, time_zone: str) -> None:
        """Divide a period. Weeks start with the first day of the period."""
        length, place = period.end - period.start, get_zone(time_zone)
        self.starts: list[datetime] = []
        if length <= 2 * _DAY:
            self.unit, start = (
                TrendUnit.HOUR,
                period.start.replace(minute=0, second=0, microsecond=0),
            )
            while start < period.end:
                self.starts.append(start)
                start += _HOUR
            return
        self.unit = TrendUnit.DAY if length <= 35 * _DAY else TrendUnit.WEEK
        day = datetime.combine(convert_to_local(period.start, place).date(), time())
        while (start := convert_to_utc(day, place)) < period.end:
            self.starts.append(start)
            day += _DAY if self.unit is TrendUnit.DAY else 7 * _DAY

    def find_index(self, moment: datetime) -> int:
        """Return the index of the bucket that contains a time."""
        return max(bisect_right(self.starts, moment) - 1, 0)
