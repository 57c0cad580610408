"""The only module that reads the system clock."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

#: Function that returns the current time as a timezone-aware datetime in UTC.
Clock = Callable[[], datetime]
#: Maximum normal difference between the clocks of two hosts.
MAX_HOST_CLOCK_DIFFERENCE = timedelta(seconds=2)
#: Maximum amount by which a valid time may be in the future. Host clocks differ by up to two
#: seconds, and a transaction may use its start time a little later. A later time was written by a
#: host with a wrong clock.
CLOCK_TOLERANCE = MAX_HOST_CLOCK_DIFFERENCE + timedelta(seconds=3)
#: Time within which two identical requests from a web page count as a double submission.
DOUBLE_SUBMISSION_WINDOW = timedelta(seconds=10)


def read_system_clock() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(tz=UTC)


def format_api_time(moment: datetime) -> str:
    """Return a time in the format of the API: UTC, with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_message_time(moment: datetime) -> str:
    """Return a time in the format for messages to several people: `2026-03-03 09:05 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
