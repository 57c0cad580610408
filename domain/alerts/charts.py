"""How many alerts the last days opened, by severity. The days are counted as alerts come."""

from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.alerts.filters import SEVERITIES
from models import AlertDay

DAYS = 14


@dataclass(frozen=True, kw_only=True)
class DayCounts:
    """A day in UTC, and how many alerts of each severity it opened; every severity is a key."""

    day: date
    counts: dict[str, int]

    @property
    def total(self) -> int:
        """How many alerts it opened."""
        return sum(self.counts.values())


def last_days(
    project_id: int, today: date, *, session: Session, environment: str | None = None
) -> tuple[DayCounts, ...]:
    """Return the last 14 days, the oldest first, today included."""
    first = today - timedelta(days=DAYS - 1)
    statement = (
        select(AlertDay.day, AlertDay.severity, func.sum(AlertDay.alerts))
        .where(AlertDay.project_id == project_id, AlertDay.day >= first)
        .group_by(AlertDay.day, AlertDay.severity)
    )
    if environment is not None:
        statement = statement.where(AlertDay.environment == environment)
    found = {(day, severity): int(count) for day, severity, count in session.execute(statement)}
    days = (first + timedelta(days=offset) for offset in range(DAYS))
    return tuple(
        DayCounts(
            day=day,
            counts={severity.value: found.get((day, severity.rank), 0) for severity in SEVERITIES},
        )
        for day in days
    )
