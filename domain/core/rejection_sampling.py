"""Selects the refused requests that are stored as rows, and counts the others.

A sender that is refused a thousand times per second must neither fill the disk nor load the
database, so rows are limited per minute, and counts are written at most once per second.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Generic, TypeVar

Kind = TypeVar("Kind", bound=Hashable)
#: Kinds of past minutes are forgotten when there are more.
_MOST_KINDS = 10_000


@dataclass(slots=True)
class _Tally:
    """The refusals of one kind in this process."""

    minute: int
    seen: int = 0
    #: The row whose count includes refusals without a row.
    row_id: int | None = None
    #: Refusals that are not written to the count yet.
    pending: int = 0


class RefusalSampler(Generic[Kind]):
    """Limits the rows of each kind of refusal; the caller says what makes a kind.

    Counters are per process and flushed by its next request; the last ones are lost on exit.
    """

    def __init__(self) -> None:
        """Start without refusals."""
        self._lock = Lock()
        self._tallies: dict[Kind, _Tally] = {}
        self._with_pending: set[Kind] = set()
        self._flushed_at = 0.0

    def gets_row(self, kind: Kind, *, now: datetime, per_minute: int) -> bool:
        """Return whether this refusal gets a row; count it otherwise."""
        minute = int(now.timestamp() // 60)
        with self._lock:
            tally = self._tally(kind, minute)
            if tally.minute != minute:
                tally.minute, tally.seen = minute, 0
            tally.seen += 1
            if tally.seen <= per_minute:
                return True
            tally.pending += 1
            self._with_pending.add(kind)
            return False

    def _tally(self, kind: Kind, minute: int) -> _Tally:
        if kind not in self._tallies and len(self._tallies) >= _MOST_KINDS:
            self._tallies = {
                known: tally
                for known, tally in self._tallies.items()
                if tally.minute == minute or tally.pending
            }
        return self._tallies.setdefault(kind, _Tally(minute))

    def use_row(self, kind: Kind, row_id: int) -> list[tuple[int, int]]:
        """Count later refusals in this row; return the pending count of the row before it."""
        with self._lock:
            tally = self._tallies[kind]
            pending = self._take(kind) if tally.pending and tally.row_id else []
            tally.row_id = row_id
            return pending

    def due(self, *, now: datetime) -> list[tuple[int, int]]:
        """Return the rows with their pending counts; at most once per second, else nothing."""
        if not self._with_pending or abs(now.timestamp() - self._flushed_at) < 1:
            return []
        with self._lock:
            self._flushed_at = now.timestamp()
            return [each for kind in tuple(self._with_pending) for each in self._take(kind)]

    def _take(self, kind: Kind) -> list[tuple[int, int]]:
        tally = self._tallies[kind]
        if tally.row_id is None:
            return []
        count, tally.pending = tally.pending, 0
        self._with_pending.discard(kind)
        return [(tally.row_id, count)]
