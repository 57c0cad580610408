"""By how much the clock of this host is ahead of the database's, which all hosts share.

What one host issues another one checks: a code that lives ten minutes, a proof that is good for
one. Hosts whose clocks differ by more than a moment refuse each other's.
"""

import logging
from datetime import datetime

from sqlalchemy import Connection, text

from domain.clock import Clock, system_clock

_log = logging.getLogger("gatebell.clock")
#: Less does no harm, and a slow answer alone could bring it about.
_TOLERATED_MS = 2_000
_ASK = text("SELECT clock_timestamp()")


def clock_lead_ms(connection: Connection, *, clock: Clock = system_clock) -> int | None:
    """Return it in milliseconds; nothing on SQLite, whose clock is ours."""
    if connection.dialect.name != "postgresql":
        return None
    before = clock()
    theirs: datetime = connection.execute(_ASK).scalar_one()
    # It answered somewhere in between.
    ours = before + (clock() - before) / 2
    return round((ours - theirs).total_seconds() * 1000)


def is_too_much(lead_ms: int | None) -> bool:
    """Tell whether the clocks are so far apart that it does harm."""
    return lead_ms is not None and abs(lead_ms) > _TOLERATED_MS


def in_words(lead_ms: int) -> str:
    """Return the sentence that says so."""
    where = "ahead of" if lead_ms > 0 else "behind"
    return f"The clock of this host is {abs(lead_ms) / 1000:.1f} s {where} the database's."


def warn_of_lead(lead_ms: int | None) -> None:
    """Write a line into the log if the clocks are too far apart."""
    if lead_ms is not None and is_too_much(lead_ms):
        _log.warning(in_words(lead_ms), extra={"clock_lead_ms": lead_ms})
