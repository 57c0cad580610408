"""Shows which integrations of a project received deliveries in each of the last 24 hours."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import case, func, literal, select, text, true, tuple_, union_all
from sqlalchemy.orm import Session

from domain.alerts.deliveries import MIN_REJECTED_STATUS
from models import Delivery, Integration

SHOWN_HOURS = 24
#: SQL condition with a literal, since Postgres would not use the index on rejected deliveries with
#: a parameter.
_IS_REJECTED = text(f"deliveries.status_code >= {MIN_REJECTED_STATUS}")


class DeliveryHour(NamedTuple):
    """An hour of an integration."""

    #: True if a delivery was accepted.
    received: bool
    #: True if a delivery was rejected.
    rejected: bool


def find_delivery_hours(
    project_id: int, *, session: Session, now: datetime
) -> Mapping[int, tuple[DeliveryHour, ...]]:
    """Return the last 24 hours of each integration of a project, oldest first, without tests.

    Deliveries have no index on their time. Their IDs increase with the time, so a binary search
    finds the first ID of each hour, and the cost hardly depends on the number of deliveries.
    """
    time = Delivery.received_at.type
    starts = union_all(
        *(
            select(
                literal(hour).label("hour"),
                literal(now - timedelta(hours=SHOWN_HOURS - hour), time).label("since"),
            )
            for hour in range(SHOWN_HOURS)
        )
    ).subquery()
    newest = select(func.coalesce(func.max(Delivery.id), 0)).scalar_subquery()
    search = select(
        starts.c.hour,
        starts.c.since,
        literal(0, Delivery.id.type).label("low"),
        (newest + 1).label("high"),
    ).cte(recursive=True)
    middle = (search.c.low + search.c.high) // 2
    received_at = (
        select(Delivery.received_at)
        .where(Delivery.id >= middle)
        .order_by(Delivery.id)
        .limit(1)
        .scalar_subquery()
    )
    is_earlier = received_at < search.c.since
    search = search.union_all(
        select(
            search.c.hour,
            search.c.since,
            case((is_earlier, middle + 1), else_=search.c.low),
            case((is_earlier, search.c.high), else_=middle),
        ).where(search.c.low < search.c.high)
    )
    next_low = func.lead(search.c.low).over(order_by=search.c.hour)
    hours = (
        select(
            search.c.hour,
            search.c.low.label("first"),
            func.coalesce(next_low, newest + 1).label("following"),
        )
        .where(search.c.low == search.c.high)
        .subquery()
    )
    first, following = hours.c.first, hours.c.following
    inside = [
        Delivery.integration_id == Integration.id,
        Delivery.id >= first,
        Delivery.id < following,
    ]
    if session.get_bind().dialect.name == "postgresql":
        # For these pairs, Postgres can only use the indexes that begin with the integration.
        place = tuple_(Delivery.integration_id, Delivery.id)
        inside = [
            place >= tuple_(Integration.id, first),
            place < tuple_(Integration.id, following),
        ]
    found_id = (
        select(Delivery.id)
        .where(*inside, Delivery.is_test.is_(False))
        .order_by(Delivery.integration_id, Delivery.id)
        .limit(1)
    )
    is_accepted = Delivery.status_code < MIN_REJECTED_STATUS
    rows = session.execute(
        select(
            Integration.id,
            found_id.where(is_accepted).scalar_subquery().is_not(None),
            found_id.where(_IS_REJECTED).scalar_subquery().is_not(None),
        )
        .join(hours, true())
        .where(Integration.project_id == project_id)
        .order_by(Integration.id, hours.c.hour)
    )
    found: dict[int, tuple[DeliveryHour, ...]] = {}
    for integration_id, received, rejected in rows:
        hour = DeliveryHour(bool(received), bool(rejected))
        found[integration_id] = (*found.get(integration_id, ()), hour)
    return found
