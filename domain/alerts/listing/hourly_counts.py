"""Counts the alerts of each project by hour for the last 24 hours, up to a maximum.

One statement counts all hours of all projects. For each hour of a project, it reads at most
MAX_HOUR_COUNT entries of an index, so that the cost does not depend on the number of alerts.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from sqlalchemy import bindparam, text
from sqlalchemy.orm import Session

from models import Alert

SHOWN_HOURS = 24
#: Maximum number of alerts that are counted in an hour.
MAX_HOUR_COUNT = 10
_STARTS = " UNION ALL ".join(
    f"SELECT {hour} AS hour, :time_{hour} AS since, :time_{hour + 1} AS until"
    for hour in range(SHOWN_HOURS)
)
_QUERY = f"""
SELECT projects.id, starts.hour, (
  SELECT count(*) FROM (
    SELECT 1 FROM alerts WHERE project_id = projects.id AND started_at >= starts.since
      AND started_at < starts.until LIMIT {MAX_HOUR_COUNT}
  ) AS counted_rows
) AS alerts
FROM projects CROSS JOIN ({_STARTS}) AS starts
WHERE projects.id IN :project_ids ORDER BY projects.id, starts.hour
"""  # noqa: S608 - a constant


def count_alerts_by_hour(
    project_ids: Collection[int], *, session: Session, now: datetime
) -> Mapping[int, tuple[int, ...]]:
    """Count the alerts in each of the last 24 hours, by project ID, oldest hour first.

    Each count is at most MAX_HOUR_COUNT.
    """
    if not project_ids:
        return {}
    times = (
        bindparam(f"time_{hour}", now - timedelta(hours=SHOWN_HOURS - hour), Alert.started_at.type)
        for hour in range(SHOWN_HOURS + 1)
    )
    statement = text(_QUERY).bindparams(
        bindparam("project_ids", sorted(project_ids), expanding=True), *times
    )
    found: dict[int, tuple[int, ...]] = {}
    for project_id, _, alerts in session.execute(statement):
        found[project_id] = (*found.get(project_id, ()), int(alerts))
    return found
