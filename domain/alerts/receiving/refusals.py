"""Logs refused deliveries: a limited number per minute as rows, and the others as a count.

A sender that is refused a thousand times per second must neither fill the disk nor load the
database, so rows are limited per minute, and counts are written at most once per second.
"""

from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from sqlalchemy import bindparam, insert, update

from domain.alerts.reading.parse_warnings import parse_warnings_on
from domain.alerts.storing.inbound_delivery import InboundDelivery, delivery_values
from domain.database.statements import KeptConnection
from domain.errors import DomainError
from models import Delivery

#: The id of the integration and the status code of the response.
RefusalKind = tuple[int | None, int]


@dataclass(slots=True)
class _Tally:
    """The refusals of one kind in this process."""

    minute: int
    seen: int = 0
    #: The row whose count includes refusals without a row.
    delivery_id: int | None = None
    #: Refusals that are not written to the count yet.
    pending: int = 0


class RefusalSampler:
    """Selects the refusals that are logged as rows, and counts the others.

    Counters are per process and flushed by its next request; the last ones are lost on exit.
    """

    def __init__(self) -> None:
        """Start without refusals."""
        self._lock = Lock()
        self._tallies: dict[RefusalKind, _Tally] = {}
        self._with_pending: set[RefusalKind] = set()
        self._flushed_at = 0.0

    def gets_row(self, kind: RefusalKind, *, now: datetime, per_minute: int) -> bool:
        """Return whether this refusal gets a row; count it otherwise."""
        minute = int(now.timestamp() // 60)
        with self._lock:
            tally = self._tallies.setdefault(kind, _Tally(minute))
            if tally.minute != minute:
                tally.minute, tally.seen = minute, 0
            tally.seen += 1
            if tally.seen <= per_minute:
                return True
            tally.pending += 1
            self._with_pending.add(kind)
            return False

    def use_row(self, kind: RefusalKind, delivery_id: int) -> list[tuple[int, int]]:
        """Count later refusals in this row; return the pending count of the row before it."""
        with self._lock:
            tally = self._tallies[kind]
            pending = self._take(kind) if tally.pending and tally.delivery_id else []
            tally.delivery_id = delivery_id
            return pending

    def due(self, *, now: datetime) -> list[tuple[int, int]]:
        """Return the rows with their pending counts; at most once per second, else nothing."""
        if not self._with_pending or abs(now.timestamp() - self._flushed_at) < 1:
            return []
        with self._lock:
            self._flushed_at = now.timestamp()
            return [each for kind in tuple(self._with_pending) for each in self._take(kind)]

    def _take(self, kind: RefusalKind) -> list[tuple[int, int]]:
        tally = self._tallies[kind]
        if tally.delivery_id is None:
            return []
        count, tally.pending = tally.pending, 0
        self._with_pending.discard(kind)
        return [(tally.delivery_id, count)]


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
        "skipped": 0,
    }
    delivery_id: int = connection.all(_INSERT, values)[0][0]
    return delivery_id


def flush(counts: list[tuple[int, int]], *, connection: KeptConnection) -> None:
    """Add the pending counts to the rows that `due` or `use_row` returned."""
    if counts:
        connection.all(_SKIP, [{"of_delivery": row, "more": more} for row, more in counts])
