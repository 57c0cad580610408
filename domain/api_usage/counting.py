"""Counts calls in memory by consumer and shape, until they are stored.

A call holds no value of a parameter and no token. Counting waits for nothing and takes about a
microsecond; `web/releases/flushing.py` stores the counts now and then.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

#: Shapes of one consumer that are kept apart until the next flush; further ones lose their names.
MOST_SHAPES = 100
#: Counts that are kept until the next flush; calls beyond them are dropped.
MOST_COUNTS = 5_000
#: Stands for names that neither an operation nor the schedule knows.
UNKNOWN_NAME = "…"


class Consumer(NamedTuple):
    """Who calls: the token or application, not the address."""

    user_id: int | None
    #: client_id of an OAuth application.
    application_uid: str | None
    #: Of a personal, project or group access token.
    personal_token_id: int | None


#: Calls without a token.
ANONYMOUS = Consumer(None, None, None)


class Shape(NamedTuple):
    """What calls have in common."""

    method: str
    #: A path with `:name` for each variable.
    route: str
    #: Sorted names of parameters.
    parameters: tuple[str, ...]
    #: Ids of scheduled changes that concern the call, as far as its values tell.
    changes: tuple[str, ...]

    @property
    def without_names(self) -> "Shape":
        """Return the same with one name that stands for all."""
        return self._replace(parameters=(UNKNOWN_NAME,))


@dataclass(slots=True)
class Count:
    """How often, when and from where calls were made."""

    calls: int
    first_at: datetime
    last_at: datetime
    #: The IP address of the last one.
    last_address: str | None

    def add(self, other: "Count") -> None:
        """Add calls of the same shape and consumer, of any time."""
        self.calls += other.calls
        self.first_at = min(self.first_at, other.first_at)
        if other.last_at >= self.last_at:
            self.last_at, self.last_address = other.last_at, other.last_address


@dataclass(frozen=True, slots=True)
class Counted:
    """The calls of one shape that a consumer made."""

    consumer: Consumer
    shape: Shape
    count: Count


class CallCounter:
    """The counts of a process.

    It needs no lock: greenlets take turns only where they wait, and it waits nowhere.
    """

    def __init__(self) -> None:
        """Start without calls."""
        self._counts: dict[Consumer, dict[Shape, Count]] = {}
        self._size = 0
        self._dropped = 0

    def count(
        self, consumer: Consumer, shape: Shape, *, address: str | None, now: datetime
    ) -> None:
        """Count a call."""
        own = self._counts.get(consumer)
        found = own.get(shape) if own is not None else None
        if found is None:
            self._begin(consumer, shape, Count(1, now, now, address))
            return
        found.calls += 1
        found.last_at = now
        found.last_address = address

    def take(self) -> tuple[list[Counted], int]:
        """Return what was counted and how many calls were dropped, and begin anew."""
        taken, dropped = self._counts, self._dropped
        self._counts, self._size, self._dropped = {}, 0, 0
        calls = [
            Counted(consumer, shape, count)
            for consumer, shapes in taken.items()
            for shape, count in shapes.items()
        ]
        return calls, dropped

    def give_back(self, calls: Iterable[Counted]) -> None:
        """Take back counts that could not be stored, as far as there is room."""
        for each in calls:
            self._begin(each.consumer, each.shape, each.count)

    def _begin(self, consumer: Consumer, shape: Shape, count: Count) -> None:
        own = self._counts.setdefault(consumer, {})
        if shape not in own and len(own) >= MOST_SHAPES:
            shape = shape.without_names
        if shape in own:
            own[shape].add(count)
        elif self._size >= MOST_COUNTS:
            self._dropped += count.calls
        else:
            own[shape] = count
            self._size += 1
