"""Refused deliveries: some of each kind go into the log, and the rest is counted there.

A sender that is refused a thousand times a second must not fill the disk, nor keep the database
busy: rows are limited by the minute, and counts are written at most once a second.
"""

from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from sqlalchemy import bindparam, insert, update

from domain.alerts.reading.parse_warnings import parse_warnings_on
from domain.alerts.storing.inbound_delivery import InboundDelivery, delivery_values
from domain.database.statements import HotConnection
from domain.errors import DomainError
from models import Delivery

#: The integration and the status of the answer: what makes refusals alike.
Kind = tuple[int, int]


@dataclass(slots=True)
class _Tally:
    """What this process knows of one kind of refusal."""

    minute: int
    seen: int = 0
    #: The row that tells of those that have none.
    delivery_id: int | None = None
    untold: int = 0


class RefusalSampler:
    """Lets so many refusals of a kind into the log each minute, and counts the rest.

    In each process for itself. What was counted last is told with the next request that comes to
    this process, or never if it ends before.
    """

    def __init__(self) -> None:
        """Start with nothing refused."""
        self._lock = Lock()
        self._tallies: dict[Kind, _Tally] = {}
        self._untold: set[Kind] = set()
        self._told_at = 0.0

    def is_kept(self, kind: Kind, *, now: datetime, per_minute: int) -> bool:
        """Tell whether this refusal gets a row; count it if not."""
        minute = int(now.timestamp() // 60)
        with self._lock:
            tally = self._tallies.setdefault(kind, _Tally(minute))
            if tally.minute != minute:
                tally.minute, tally.seen = minute, 0
            tally.seen += 1
            if tally.seen <= per_minute:
                return True
            tally.untold += 1
            self._untold.add(kind)
            return False

    def remember(self, kind: Kind, delivery_id: int) -> list[tuple[int, int]]:
        """Let this row tell of refusals to come; return what the one before has still to tell."""
        with self._lock:
            tally = self._tallies[kind]
            late = self._take(kind) if tally.untold and tally.delivery_id else []
            tally.delivery_id = delivery_id
            return late

    def due(self, *, now: datetime) -> list[tuple[int, int]]:
        """Return which rows have to tell of how many more; nothing if that was just asked."""
        if not self._untold or abs(now.timestamp() - self._told_at) < 1:
            return []
        with self._lock:
            self._told_at = now.timestamp()
            return [told for kind in tuple(self._untold) for told in self._take(kind)]

    def _take(self, kind: Kind) -> list[tuple[int, int]]:
        tally = self._tallies[kind]
        if tally.delivery_id is None:
            return []
        count, tally.untold = tally.untold, 0
        self._untold.discard(kind)
        return [(tally.delivery_id, count)]


_INSERT = insert(Delivery).returning(Delivery.id)

_SKIP = (
    update(Delivery)
    .where(Delivery.id == bindparam("of_delivery"))
    .values(skipped=Delivery.skipped + bindparam("more"))
)


def store_refusal(
    delivery: InboundDelivery, status_code: int, error: DomainError, *, hot: HotConnection
) -> int:
    """Write a refused delivery with its reasons into the log and return its id."""
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
    delivery_id: int = hot.all(_INSERT, values)[0][0]
    return delivery_id


def tell(counts: list[tuple[int, int]], *, hot: HotConnection) -> None:
    """Write into the log how many more refusals there were like these."""
    if counts:
        hot.all(_SKIP, [{"of_delivery": row, "more": more} for row, more in counts])
