"""The maintenance windows that take place, for whoever is about to page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.maintenance_windows.recurrence import parse_rule
from domain.maintenance_windows.times import Occurrence, WindowTimes
from models import MaintenanceWindow, User

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class CurrentWindow:
    """A window that takes place at a moment."""

    id: int
    name: str
    #: A user name; empty for the command line.
    created_by: str
    conditions: Conditions
    occurrence: Occurrence


def times_of(row: MaintenanceWindow) -> WindowTimes:
    """Return when the window of a row takes place."""
    return WindowTimes(
        local_start=datetime.fromisoformat(row.local_start),
        length=row.minutes * _MINUTE,
        time_zone=row.time_zone,
        recurrence=parse_rule(row.rule) if row.rule else None,
    )


def find_current(
    project_ids: Sequence[int], *, at: datetime, session: Session
) -> Mapping[int, Sequence[CurrentWindow]]:
    """Return the windows that take place at a moment, by project."""
    rows = session.execute(
        select(MaintenanceWindow, User.username)
        .outerjoin(User, User.id == MaintenanceWindow.created_by_id)
        .where(
            MaintenanceWindow.project_id.in_(project_ids),
            MaintenanceWindow.first_starts_at <= at,
            or_(MaintenanceWindow.last_ends_at.is_(None), MaintenanceWindow.last_ends_at > at),
        )
        .order_by(MaintenanceWindow.id)
    )
    found: dict[int, list[CurrentWindow]] = {}
    for row, author in rows:
        occurrence = times_of(row).at(at)
        if occurrence is not None:
            current = CurrentWindow(
                id=row.id,
                name=row.name,
                created_by=author or "",
                conditions=conditions_from(row.conditions),
                occurrence=occurrence,
            )
            found.setdefault(row.project_id, []).append(current)
    return found
