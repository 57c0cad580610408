"""How many messages are sent at once, so that no service slows the others down.

Contacts of one service share a lane. A lane that failed or was slow gets one place until it does
well again, and all such lanes together get half of the places.
"""

from collections import Counter
from threading import Lock

#: Messages under way at once, those to one service, and those to services that do badly.
MOST_AT_ONCE = 32
_MOST_IN_LANE = 4
_MOST_IN_BAD_LANES = 16


class Lanes:
    """The places that are taken, of one worker."""

    def __init__(self) -> None:
        """Begin with no place taken and every lane trusted."""
        self._taken: Counter[str] = Counter()
        self._bad: set[str] = set()
        self._lock = Lock()

    @property
    def free(self) -> int:
        """How many messages more may be under way."""
        return MOST_AT_ONCE - self._taken.total()

    @property
    def full(self) -> list[str]:
        """The lanes of which nothing more may be sent now."""
        with self._lock:
            return [each for each in {*self._taken, *self._bad} if not self._has_place(each)]

    def take(self, lane: str) -> bool:
        """Take a place, or return False if there is none."""
        with self._lock:
            has_place = self.free > 0 and self._has_place(lane)
            if has_place:
                self._taken[lane] += 1
            return has_place

    def leave(self, lane: str, *, did_well: bool | None = None) -> None:
        """Give a place back, and say how it went if something was sent."""
        with self._lock:
            self._taken[lane] -= 1
            if self._taken[lane] <= 0:
                del self._taken[lane]
            if did_well is not None:
                (self._bad.discard if did_well else self._bad.add)(lane)

    def _has_place(self, lane: str) -> bool:
        if lane not in self._bad:
            return self._taken[lane] < _MOST_IN_LANE
        taken = sum(count for each, count in self._taken.items() if each in self._bad)
        return self._taken[lane] < 1 and taken < _MOST_IN_BAD_LANES
