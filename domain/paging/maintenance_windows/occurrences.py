"""Times of maintenance windows, and the windows that are active at a given time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import AlertConditions, parse_conditions
from domain.core.errors import InvalidError
from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.paging.maintenance_windows.recurrence import Recurrence, parse_recurrence_rule
from domain.paging.maintenance_windows.types import MAX_WINDOW_LENGTH, MIN_WINDOW_LENGTH
from domain.projects.row_ownership import GroupChain, build_used_by_condition, group_rows_by_project
from models import Group, MaintenanceWindow, User

_DAY = timedelta(days=1)
_EARLIEST_START, _LATEST_START = datetime(2000, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001 - local
#: Number of occurrences that are checked for overlaps.
_MAX_COMPARED_OCCURRENCES = 60
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class WindowPeriod:
    """An occurrence of a window, in UTC."""

    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class WindowTimes:
    """The times of a maintenance window, in the local time of its time zone.

    A window from 22:00 to 06:00 is therefore an hour longer or shorter on nights when the clocks
    change.
    """

    #: Earliest local start, without a time zone.
    local_start: datetime
    #: Length in local time.
    length: timedelta
    time_zone: str
    recurrence: Recurrence | None = None

    def find_occurrences_ending_after(self, moment: datetime) -> Iterator[WindowPeriod]:
        """Yield the occurrences that end after a given time, in order."""
        place = get_zone(self.time_zone)
        # Start two days earlier to allow for clock changes.
        earliest = convert_to_local(moment, place) - self.length - 2 * _DAY
        for local in self._generate_starts(earliest):
            found = self._build_occurrence(local)
            if found.ends_at > moment:
                yield found

    def find_occurrence_at(self, moment: datetime) -> WindowPeriod | None:
        """Return the occurrence at a given time, or None."""
        found = next(self.find_occurrences_ending_after(moment), None)
        return found if found is not None and found.starts_at <= moment else None

    @property
    def first_starts_at(self) -> datetime:
        """Start of the first occurrence.

        Raise InvalidError if there is no occurrence.
        """
        place = get_zone(self.time_zone)
        first = next(
            self.find_occurrences_ending_after(convert_to_utc(self.local_start, place)), None
        )
        if first is None:
            message = "The window never occurs because its rule ends before the window starts."
            raise InvalidError(message, field="rule")
        return first.starts_at

    @property
    def last_ends_at(self) -> datetime | None:
        """A time after which no occurrence ends, or None if the recurrence has no end."""
        if self.recurrence is None:
            return self._build_occurrence(self.local_start).ends_at
        until = self.recurrence.until
        if until is None:
            return None
        # The last occurrence can start at any time on the `until` date. An extra day is added as a
        # margin.
        midnight = self.local_start.replace(
            year=until.year, month=until.month, day=until.day, hour=0, minute=0
        )
        return convert_to_utc(midnight + _DAY + self.length, get_zone(self.time_zone)) + _DAY

    def check_times(self) -> None:
        """Check that the times are in range, and that occurrences do not overlap.

        Raise InvalidError otherwise.
        """
        if not _EARLIEST_START <= self.local_start < _LATEST_START:
            message = "The start must be between the years 2000 and 2099."
            raise InvalidError(message, field="starts_at")
        if not MIN_WINDOW_LENGTH <= self.length <= MAX_WINDOW_LENGTH:
            raise InvalidError("A window can last from one minute to seven days.", field="duration")
        starts = islice(self._generate_starts(self.local_start), _MAX_COMPARED_OCCURRENCES)
        if any(later - earlier < self.length for earlier, later in pairwise(starts)):
            message = "The window is longer than the time until it recurs. Use a shorter duration."
            raise InvalidError(message, field="duration")

    def _generate_starts(self, after: datetime) -> Iterator[datetime]:
        if self.recurrence is None:
            return iter([self.local_start])
        return self.recurrence.generate_starts(self.local_start, after=after)

    def _build_occurrence(self, local_time: datetime) -> WindowPeriod:
        place = get_zone(self.time_zone)
        starts_at = convert_to_utc(local_time, place)
        ends_at = convert_to_utc(local_time + self.length, place)
        # A short window that starts in a skipped hour would otherwise end before it starts.
        return WindowPeriod(
            starts_at=starts_at, ends_at=ends_at if ends_at > starts_at else starts_at + self.length
        )


def convert_to_wall_time(moment: datetime, time_zone: str) -> datetime:
    """Convert a time to local time in a time zone.

    A local time that occurs twice, because clocks are set back, always means the first occurrence.
    Raise InvalidError if `moment` is the second occurrence, or OverflowError if it is out of range.
    """
    place = get_zone(time_zone)
    local = convert_to_local(moment, place)
    if convert_to_utc(local, place) != moment:
        message = (
            f"{local:%H:%M} occurs twice in {time_zone} on that day, and a window can only start "
            "the first time. Choose an earlier or later start."
        )
        raise InvalidError(message, field="starts_at")
    return local


@dataclass(frozen=True, kw_only=True)
class CurrentWindow:
    """A maintenance window that is active at a given time."""

    id: int
    #: Owner of the window, and the path of the group if a group owns the window.
    project_id: int | None
    group_id: int | None
    group: str | None
    name: str
    #: Username of the creator. Empty if the window was created on the command line.
    created_by: str
    conditions: AlertConditions
    occurrence: WindowPeriod


def build_window_times(row: MaintenanceWindow) -> WindowTimes:
    """Build the times of a stored window."""
    return WindowTimes(
        local_start=datetime.fromisoformat(row.local_start),
        length=row.minutes * _MINUTE,
        time_zone=row.time_zone,
        recurrence=parse_recurrence_rule(row.rule) if row.rule else None,
    )


def find_current_windows(
    group_chains: Mapping[int, GroupChain], *, moment: datetime, session: Session
) -> Mapping[int, Sequence[CurrentWindow]]:
    """Return the active windows of projects and of their ancestor groups, by project ID."""
    rows = session.execute(
        select(MaintenanceWindow, User.username, Group.path)
        .outerjoin(User, User.id == MaintenanceWindow.created_by_id)
        .outerjoin(Group, Group.id == MaintenanceWindow.group_id)
        .where(
            build_used_by_condition(MaintenanceWindow, group_chains.values()),
            MaintenanceWindow.first_starts_at <= moment,
            or_(MaintenanceWindow.last_ends_at.is_(None), MaintenanceWindow.last_ends_at > moment),
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
            conditions=parse_conditions(row.conditions),
            occurrence=occurrence,
        )
        for row, author, group in rows
        if (occurrence := build_window_times(row).find_occurrence_at(moment)) is not None
    ]
    return group_rows_by_project(current, group_chains)
