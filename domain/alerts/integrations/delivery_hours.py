"""Shows which integrations of a project received deliveries in each of the last 24 hours."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, text
from sqlalchemy.orm import Session

from models import Delivery

SHOWN_HOURS = 24
#: Query for the first accepted and the first rejected delivery of each integration in each hour.
#: Deliveries have no index on their time. Their IDs increase with the time, so a binary search
#: finds the first ID of each hour, and the cost hardly depends on the number of deliveries.
_QUERY = """
WITH RECURSIVE search (hour, since, low, high) AS (
  SELECT hour, since, CAST(0 AS BIGINT), (SELECT coalesce(max(id), 0) + 1 FROM deliveries)
  FROM ({starts}) AS starts
  UNION ALL
  SELECT hour, since, CASE WHEN {is_earlier} THEN (low + high) / 2 + 1 ELSE low END,
    CASE WHEN {is_earlier} THEN high ELSE (low + high) / 2 END
  FROM search WHERE low < high
), hours AS (
  SELECT hour, low AS first, coalesce(lead(low) OVER (ORDER BY hour),
    (SELECT max(id) + 1 FROM deliveries)) AS following
  FROM search WHERE low = high
)
SELECT integrations.id,
  (SELECT deliveries.id FROM deliveries WHERE {inside} AND is_test IS FALSE AND status_code < 300
    ORDER BY integration_id, deliveries.id LIMIT 1) IS NOT NULL AS received,
  (SELECT deliveries.id FROM deliveries WHERE {inside} AND is_test IS FALSE AND status_code >= 300
    ORDER BY integration_id, deliveries.id LIMIT 1) IS NOT NULL AS rejected
FROM integrations CROSS JOIN hours WHERE project_id = :project_id ORDER BY integrations.id, hour
"""
_STARTS = " UNION ALL ".join(
    f"SELECT {hour} AS hour, :since_{hour} AS since" for hour in range(SHOWN_HOURS)
)
_IS_EARLIER = """(SELECT received_at FROM deliveries WHERE id >= (low + high) / 2
  ORDER BY id LIMIT 1) < since"""
#: Conditions by dialect. For pairs in this order, Postgres can only use the indexes that begin with
#: the integration.
_INSIDE = {
    "postgresql": "(integration_id, deliveries.id) >= (integrations.id, first) AND "
    "(integration_id, deliveries.id) < (integrations.id, following)",
    "sqlite": "integration_id = integrations.id AND deliveries.id >= first AND "
    "deliveries.id < following",
}


class DeliveryHour(NamedTuple):
    """An hour of an integration."""

    #: True if a delivery was accepted.
    received: bool
    #: True if a delivery was rejected.
    rejected: bool


def find_delivery_hours(
    project_id: int, *, session: Session, now: datetime
) -> Mapping[int, tuple[DeliveryHour, ...]]:
    """Return the last 24 hours of each integration of a project, oldest first, without tests."""
    inside = _INSIDE[session.get_bind().dialect.name]
    statement = _QUERY.format(starts=_STARTS, is_earlier=_IS_EARLIER, inside=inside)
    times = (
        bindparam(
            f"since_{hour}", now - timedelta(hours=SHOWN_HOURS - hour), Delivery.received_at.type
        )
        for hour in range(SHOWN_HOURS)
    )
    rows = session.execute(text(statement).bindparams(*times), {"project_id": project_id})
    found: dict[int, tuple[DeliveryHour, ...]] = {}
    for row in rows:
        hour = DeliveryHour(bool(row.received), bool(row.rejected))
        found[row.id] = (*found.get(row.id, ()), hour)
    return found
