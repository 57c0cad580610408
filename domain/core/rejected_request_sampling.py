"""Selects the rejected requests that are stored as rows, and counts the other requests.

A sender with a thousand rejected requests per second must neither fill the disk nor overload the
database. Rows are therefore limited per minute, and counts are written at most once per second.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Generic, TypeVar

Kind = TypeVar("Kind", bound=Hashable)
#: Maximum number of kinds. When the maximum is reached, kinds without rejections in the current
#: minute are removed.
_MAX_KINDS = 10_000


@dataclass(slots=True)
class _RejectionTally:
    """Counters for the rejections of one kind in this process."""

    minute: int
    seen: int = 0
    #: ID of the row that also counts the rejections for which no row is stored.
    row_id: int | None = None
    #: Number of rejections that have not been added to the count of that row yet.
    pending: int = 0


class RejectedRequestSampler(Generic[Kind]):
    """Selects the rejections to store as rows, up to a limit for each kind of rejection.

    Callers define the kinds. Each process has its own counters, and writes them to the database
    during its next request. Counts that are not yet written are lost when the process exits.
    """

    def __init__(self) -> None:
        """Initialize the sampler without rejections."""
        self._lock = Lock()
        self._tallies: dict[Kind, _RejectionTally] = {}
        self._with_pending: set[Kind] = set()
        self._flushed_at = 0.0

    def should_store(self, kind: Kind, *, now: datetime, per_minute: int) -> bool:
        """Return whether to store a rejection as a row, and count it if it is not stored."""
        minute = int(now.timestamp() // 60)
        with self._lock:
            tally = self._get_rejection_tally(kind, minute)
            if tally.minute != minute:
                tally.minute, tally.seen = minute, 0
            tally.seen += 1
            if tally.seen <= per_minute:
                return True
            tally.pending += 1
            self._with_pending.add(kind)
            return False

    def _get_rejection_tally(self, kind: Kind, minute: int) -> _RejectionTally:
        if kind not in self._tallies and len(self._tallies) >= _MAX_KINDS:
            self._tallies = {
                known: tally
                for known, tally in self._tallies.items()
                if tally.minute == minute or tally.pending
            }
        return self._tallies.setdefault(kind, _RejectionTally(minute))

    def set_counter_row(self, kind: Kind, row_id: int) -> list[tuple[int, int]]:
        """Use a stored row to count later rejections of the same kind.

        Return the ID of the previous row with its pending count, or an empty list if no count is
        pending.
        """
        with self._lock:
            tally = self._tallies[kind]
            pending = self._pop_pending_counts(kind) if tally.pending and tally.row_id else []
            tally.row_id = row_id
            return pending

    def pop_due_counts(self, *, now: datetime) -> list[tuple[int, int]]:
        """Return the IDs of rows with their pending counts, at most once per second."""
        if not self._with_pending or abs(now.timestamp() - self._flushed_at) < 1:
            return []
        with self._lock:
            self._flushed_at = now.timestamp()
            return [
                each
                for kind in tuple(self._with_pending)
                for each in self._pop_pending_counts(kind)
            ]

    def _pop_pending_counts(self, kind: Kind) -> list[tuple[int, int]]:
        tally = self._tallies[kind]
        if tally.row_id is None:
            return []
        count, tally.pending = tally.pending, 0
        self._with_pending.discard(kind)
        return [(tally.row_id, count)]
