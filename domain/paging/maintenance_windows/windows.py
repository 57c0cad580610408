"""The times of maintenance windows: local times with a recurrence, and current occurrences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.core.errors import InvalidError
from domain.core.time_zones import instant, wall_time, zone
from domain.paging.maintenance_windows.recurrence import Recurrence, parse_rule
from domain.projects.owners import Lineage, by_user, is_used_by
from models import Group, MaintenanceWindow, User

_DAY = timedelta(days=1)
LONGEST = 7 * _DAY
SHORTEST = timedelta(minutes=1)
_EARLIEST, _LATEST = datetime(2000, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001 - local times
#: Number of occurrences that are checked for overlaps.
_COMPARED = 60
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    """An occurrence of a window, in UTC."""

    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class WindowTimes:
    """The times of a window, in local time of its time zone.

    A window from 22:00 to 06:00 is therefore an hour longer or shorter in nights with a clock
    change.
    """

    #: Earliest local start, without a time zone.
    local_start: datetime
    #: Length in local time.
    length: timedelta
    time_zone: str
    recurrence: Recurrence | None = None

    def ending_after(self, moment: datetime) -> Iterator[Occurrence]:
        """Yield the occurrences that end after a given time, in order."""
        place = zone(self.time_zone)
        # Start two days earlier to allow for clock changes.
        earliest = wall_time(moment, place) - self.length - 2 * _DAY
        for local in self._starts(earliest):
            found = self._occurrence(local)
            if found.ends_at > moment:
                yield found

    def at(self, moment: datetime) -> Occurrence | None:
        """Return the occurrence at a given time, or None."""
        found = next(self.ending_after(moment), None)
        return found if found is not None and found.starts_at <= moment else None

    @property
    def first_starts_at(self) -> datetime:
        """Return the start of the first occurrence.

        Raise InvalidError if there is no occurrence.
        """
        place = zone(self.time_zone)
        first = next(self.ending_after(instant(self.local_start, place)), None)
        if first is None:
            message = "The window never occurs because its rule ends before the window starts."
            raise InvalidError(message, field="rule")
        return first.starts_at

    @property
    def last_ends_at(self) -> datetime | None:
        """Return a time after which no occurrence ends; None for an endless recurrence."""
        if self.recurrence is None:
            return self._occurrence(self.local_start).ends_at
        until = self.recurrence.until
        if until is None:
            return None
        # The last occurrence can start until the end of the day `until`. A day is added as a
        # margin.
        midnight = self.local_start.replace(
            year=until.year, month=until.month, day=until.day, hour=0, minute=0
        )
        return instant(midnight + _DAY + self.length, zone(self.time_zone)) + _DAY

    def check(self) -> None:
        """Raise InvalidError if times are out of range or overlap."""
        if not _EARLIEST <= self.local_start < _LATEST:
            message = "The start must be between the years 2000 and 2099."
            raise InvalidError(message, field="starts_at")
        if not SHORTEST <= self.length <= LONGEST:
            raise InvalidError("A window can last from one minute to seven days.", field="duration")
        starts = islice(self._starts(self.local_start), _COMPARED)
        if any(later - earlier < self.length for earlier, later in pairwise(starts)):
            message = "The window is longer than the time until it recurs. Use a shorter duration."
            raise InvalidError(message, field="duration")

    def _starts(self, after: datetime) -> Iterator[datetime]:
        if self.recurrence is None:
            return iter([self.local_start])
        return self.recurrence.starts(self.local_start, after=after)

    def _occurrence(self, local: datetime) -> Occurrence:
        place = zone(self.time_zone)
        starts_at = instant(local, place)
        ends_at = instant(local + self.length, place)
        # A short window that starts in a skipped hour would otherwise end before it starts.
        return Occurrence(
            starts_at=starts_at, ends_at=ends_at if ends_at > starts_at else starts_at + self.length
        )


def wall_time_of(moment: datetime, time_zone: str) -> datetime:
    """Convert a time to local time in a time zone.

    Raise InvalidError for the second pass of an hour that occurs twice, since a local time refers
    to the first pass. Raise OverflowError if the time is out of range.
    """
    place = zone(time_zone)
    local = wall_time(moment, place)
    if instant(local, place) != moment:
        message = (
            f"{local:%H:%M} occurs twice in {time_zone} on that day, and a window can only start "
            "the first time. Choose an earlier or later start."
        )
        raise InvalidError(message, field="starts_at")
    return local


@dataclass(frozen=True, kw_only=True)
class CurrentWindow:
    """A window with an occurrence at a given time."""

    id: int
    #: Owner of the window, and the path of the group if a group is the owner.
    project_id: int | None
    group_id: int | None
    group: str | None
    name: str
    #: User name. Empty for the command line.
    created_by: str
    conditions: Conditions
    occurrence: Occurrence


def times_of(row: MaintenanceWindow) -> WindowTimes:
    """Return the times of the window of a row."""
    return WindowTimes(
        local_start=datetime.fromisoformat(row.local_start),
        length=row.minutes * _MINUTE,
        time_zone=row.time_zone,
        recurrence=parse_rule(row.rule) if row.rule else None,
    )


def find_current(
    used: Mapping[int, Lineage], *, at: datetime, session: Session
) -> Mapping[int, Sequence[CurrentWindow]]:
    """Return the current windows of projects and of the groups above, by project id."""
    rows = session.execute(
        select(MaintenanceWindow, User.username, Group.path)
        .outerjoin(User, User.id == MaintenanceWindow.created_by_id)
        .outerjoin(Group, Group.id == MaintenanceWindow.group_id)
        .where(
            is_used_by(MaintenanceWindow, used.values()),
            MaintenanceWindow.first_starts_at <= at,
            or_(MaintenanceWindow.last_ends_at.is_(None), MaintenanceWindow.last_ends_at > at),
        )
        .order_by(MaintenanceWindow.id)
    )
    current = [
        CurrentWindow(
            id=row.id,
            project_id=row.project_id,
            group_id=row.group_id,
            group=group,
            name=row.name,
            created_by=author or "",
            conditions=conditions_from(row.conditions),
            occurrence=occurrence,
        )
        for row, author, group in rows
        if (occurrence := times_of(row).at(at)) is not None
    ]
    return by_user(current, used)
