"""Outcomes of deliveries in each hour of the last day, and delivery counts by period."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from domain.core.database.time_search import build_time_search
from models import Delivery

SHOWN_HOURS = 24
#: Maximum number of deliveries that are counted per integration and day.
MAX_DAY_COUNT = 10_000
#: Query for the hours in which each integration accepted or rejected deliveries.
_HOURS = """
SELECT integrations.id,
  (SELECT deliveries.id FROM deliveries WHERE {inside} AND is_test IS FALSE AND status_code < 300
    ORDER BY integration_id, deliveries.id LIMIT 1) IS NOT NULL AS received,
  (SELECT deliveries.id FROM deliveries WHERE {inside} AND is_test IS FALSE AND status_code >= 300
    ORDER BY integration_id, deliveries.id LIMIT 1) IS NOT NULL AS rejected
FROM integrations CROSS JOIN parts WHERE project_id = :project_id ORDER BY integrations.id, part
"""
#: Query for the number of all deliveries, and the number of rejected deliveries, in each period. An
#: index provides both numbers, so the rows and their bodies are not read.
_DAYS = """
SELECT part, sum(deliveries) AS deliveries, sum(rejected) AS rejected FROM (
  SELECT part,
    (SELECT count(*) FROM (SELECT deliveries.id FROM deliveries WHERE {inside}
      ORDER BY integration_id, deliveries.id LIMIT :maximum) AS counted_rows) AS deliveries,
    (SELECT count(*) FROM (SELECT deliveries.id FROM deliveries WHERE {inside}
      AND status_code >= 300 ORDER BY integration_id, deliveries.id LIMIT :maximum) AS counted_rows
    ) AS rejected
  FROM integrations JOIN projects ON projects.id = integrations.project_id
    AND projects.deleted_at IS NULL CROSS JOIN parts
) AS counted GROUP BY part ORDER BY part
"""
#: Conditions by SQL dialect. Because the pairs begin with the integration, Postgres can use only
#: indexes that also begin with it.
_INSIDE = {
    "postgresql": "(integration_id, deliveries.id) >= (integrations.id, first) AND "
    "(integration_id, deliveries.id) < (integrations.id, following)",
    "sqlite": "integration_id = integrations.id AND deliveries.id >= first AND "
    "deliveries.id < following",
}


class HourlyDeliveryCounts(NamedTuple):
    """The outcomes of the deliveries that an integration received in an hour."""

    #: True if a delivery was accepted.
    received: bool
    #: True if a delivery was rejected.
    rejected: bool


def count_deliveries_by_hour(
    project_id: int, *, session: Session, now: datetime
) -> Mapping[int, tuple[HourlyDeliveryCounts, ...]]:
    """Return the delivery outcomes in each of the last 24 hours, by integration ID.

    The oldest hour is first. Test alerts are not included.
    """
    starts = [now - timedelta(hours=SHOWN_HOURS - hour) for hour in range(SHOWN_HOURS)]
    found: dict[int, tuple[HourlyDeliveryCounts, ...]] = {}
    for row in _count_by_period(_HOURS, starts, {"project_id": project_id}, session):
        hour = HourlyDeliveryCounts(bool(row.received), bool(row.rejected))
        found[row.id] = (*found.get(row.id, ()), hour)
    return found


class DeliveryCount(NamedTuple):
    """The numbers of accepted and rejected deliveries in a period."""

    accepted: int
    rejected: int


def count_deliveries(starts: Sequence[datetime], *, session: Session) -> list[DeliveryCount]:
    """Count the deliveries to all integrations in the periods that begin at the given times.

    Each period ends at the start of the next period. At most MAX_DAY_COUNT deliveries are counted
    for each integration and period.
    """
    found = {
        row.part: DeliveryCount(int(row.deliveries - row.rejected), int(row.rejected))
        for row in _count_by_period(_DAYS, starts, {"maximum": MAX_DAY_COUNT}, session)
    }
    return [found.get(part, DeliveryCount(0, 0)) for part in range(len(starts))]


def _count_by_period(
    query: str, starts: Sequence[datetime], parameters: Mapping[str, int], session: Session
) -> Iterable[Row[Any]]:
    inside = _INSIDE[session.get_bind().dialect.name]
    parts, times = build_time_search(Delivery.received_at, starts)
    statement = text(parts + query.format(inside=inside)).bindparams(*times)
    return session.execute(statement, parameters)
