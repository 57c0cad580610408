"""Difference between this host's clock and the database's clock, which all hosts share.

A host validates values that another host issued, such as codes and nonces. If their clocks differ
too much, hosts reject each other's values.
"""

import logging
from datetime import datetime

from sqlalchemy import Connection, text

from domain.core.clock import Clock, read_system_clock

_log = logging.getLogger("gatebell.clock")
#: Tolerated difference in milliseconds, which is harmless and may be caused by a slow response.
_MAX_DIFFERENCE_MS = 2_000
_CLOCK_QUERY = text("SELECT clock_timestamp()")


def measure_clock_offset_ms(
    connection: Connection, *, clock: Clock = read_system_clock
) -> int | None:
    """Return the number of milliseconds by which this host is ahead of the database.

    Return None on SQLite, which uses this host's clock.
    """
    if connection.dialect.name != "postgresql":
        return None
    before = clock()
    theirs: datetime = connection.execute(_CLOCK_QUERY).scalar_one()
    # The server's time is assumed to be in the middle of the round trip.
    ours = before + (clock() - before) / 2
    return round((ours - theirs).total_seconds() * 1000)


def is_clock_offset_harmful(lead_ms: int | None) -> bool:
    """Return whether a clock difference makes hosts reject the values of other hosts."""
    return lead_ms is not None and abs(lead_ms) > _MAX_DIFFERENCE_MS


def describe_clock_offset(lead_ms: int) -> str:
    """Return a message that describes a clock difference."""
    where = "ahead of" if lead_ms > 0 else "behind"
    return f"The clock of this host is {abs(lead_ms) / 1000:.1f} s {where} the database's clock."


def warn_of_clock_offset(lead_ms: int | None) -> None:
    """Log a warning if the clocks differ too much."""
    if lead_ms is not None and is_clock_offset_harmful(lead_ms):
        _log.warning(
            describe_clock_offset(lead_ms),
            extra={"event": "clock.out_of_sync", "clock_lead_ms": lead_ms},
        )
