"""Counts the alerts that were opened on each of the last 14 days, by severity.

Database triggers count new alerts. On SQLite, a trigger updates the row for the day. On Postgres, a
trigger inserts one row for each alert. Once a minute, `add_new_alerts_to_daily_counts` adds these
rows to the row for the day.
"""

from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import Select, func, select, text, union_all
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import SEVERITIES
from models import ALERT_DAY_ADDITIONS, AlertDay

CHART_DAYS = 14


@dataclass(frozen=True, kw_only=True)
class DayCounts:
    """The number of alerts that were opened on a day (UTC), by severity."""

    day: date
    counts: dict[str, int]

    @property
    def total(self) -> int:
        """Total number of alerts."""
        return sum(self.counts.values())


def count_alerts_by_day(
    projects: int | Select[int], today: date, *, session: Session, environment: str | None = None
) -> tuple[DayCounts, ...]:
    """Return the counts for the last 14 days, including today, oldest first.

    `projects` is the ID of a project, or a query for the IDs of several projects.
    """
    first = today - timedelta(days=CHART_DAYS - 1)
    parts = []
    for table in (AlertDay.__table__.c, ALERT_DAY_ADDITIONS.c):
        is_inside = (
            table.project_id == projects
            if isinstance(projects, int)
            else table.project_id.in_(projects)
        )
        part = select(table.day, table.severity, table.alerts).where(is_inside, table.day >= first)
        wanted = environment is not None
        parts.append(part.where(table.environment == environment) if wanted else part)
    counted = union_all(*parts).subquery()
    statement = select(counted.c.day, counted.c.severity, func.sum(counted.c.alerts)).group_by(
        counted.c.day, counted.c.severity
    )
    found = {(day, severity): int(count) for day, severity, count in session.execute(statement)}
    days = (first + timedelta(days=offset) for offset in range(CHART_DAYS))
    return tuple(
        DayCounts(
            day=day,
            counts={severity.value: found.get((day, severity.rank), 0) for severity in SEVERITIES},
        )
        for day in days
    )


_ADD_UP_COUNTS = text(
    """
WITH gone AS (
  DELETE FROM alert_day_additions
  WHERE pg_try_advisory_xact_lock(hashtext('alert_day_additions')) RETURNING *
)
INSERT INTO alert_days (project_id, day, environment, severity, alerts)
SELECT project_id, day, environment, severity, sum(alerts)
FROM gone JOIN projects ON projects.id = gone.project_id
GROUP BY project_id, day, environment, severity
ON CONFLICT (project_id, day, environment, severity)
DO UPDATE SET alerts = alert_days.alerts + excluded.alerts
"""
)


def add_new_alerts_to_daily_counts(*, session: Session) -> None:
    """Add the rows for new alerts to the daily counts.

    Nothing happens if another process is already adding the rows.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(_ADD_UP_COUNTS)
