"""Stores refused deliveries: those that a `RefusalSampler` selects, and a count of the others."""

from sqlalchemy import bindparam, insert, update

from domain.alerts.reading.parse_warnings import parse_warnings_on
from domain.alerts.storing.inbound_delivery import InboundDelivery, delivery_values
from domain.database.statements import KeptConnection
from domain.errors import DomainError
from models import Delivery

#: The id of the integration and the status code of the response.
RefusalKind = tuple[int | None, int]
#: The length of the column.
_LONGEST_USER_AGENT = 255

_INSERT = insert(Delivery).returning(Delivery.id)

_SKIP = (
    update(Delivery)
    .where(Delivery.id == bindparam("of_delivery"))
    .values(skipped=Delivery.skipped + bindparam("more"))
)


def store_refusal(
    delivery: InboundDelivery, status_code: int, error: DomainError, *, connection: KeptConnection
) -> int:
    """Insert a refused delivery with its reasons and return its id."""
    values = {
        **delivery_values(delivery),
        "status_code": status_code,
        "reason": str(error),
        "opened": 0,
        "joined": 0,
        "resolved": 0,
        "remarks": parse_warnings_on(error),
        "truncated_alerts": 0,
        "dropped": 0,
        "skipped": 0,
        "user_agent": (delivery.user_agent or "")[:_LONGEST_USER_AGENT] or None,
    }
    delivery_id: int = connection.all(_INSERT, values)[0][0]
    return delivery_id


def flush(counts: list[tuple[int, int]], *, connection: KeptConnection) -> None:
    """Add the pending counts to the rows that `due` or `use_row` returned."""
    if counts:
        connection.all(_SKIP, [{"of_delivery": row, "more": more} for row, more in counts])
