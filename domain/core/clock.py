"""The only reader of the system clock."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

#: Gives the present moment, aware and in UTC.
Clock = Callable[[], datetime]
#: Largest difference between the clocks of two hosts that counts as normal.
HOST_CLOCK_DIFFERENCE = timedelta(seconds=2)
#: What was written further ahead of now than this was written by a clock that was wrong. Hosts
#: agree within two seconds, and a transaction may wait a moment with the time of its beginning.
CLOCK_TOLERANCE = HOST_CLOCK_DIFFERENCE + timedelta(seconds=3)
#: Two equal requests that a person sends from a page within this time are a double tap.
DOUBLE_TAP = timedelta(seconds=10)


def system_clock() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(tz=UTC)


def written(moment: datetime) -> str:
    """Return a time as the API writes all of them: in UTC, with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def date_and_time(moment: datetime) -> str:
    """Return a moment as messages to several people write it: `2026-03-03 09:05 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
