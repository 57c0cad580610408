"""The only reader of the system clock."""

from collections.abc import Callable
from datetime import UTC, datetime

#: Gives the present moment, aware and in UTC.
Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(tz=UTC)
