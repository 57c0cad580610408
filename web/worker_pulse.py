"""Whether somebody works in the background: each worker leaves the time, once a minute."""

import logging
import sqlite3
from datetime import UTC, datetime, timedelta

from huey import Huey, crontab
from huey.constants import EmptyData
from peewee import PeeweeException

from domain.clock import Clock

_log = logging.getLogger("gatebell.worker")
_KEY = "gatebell.pulse"
#: A worker that was not heard of for longer is taken for dead.
SILENCE = timedelta(minutes=3)


def add_pulse(queue: Huey, *, clock: Clock) -> None:
    """Leave the time now, and from now on every minute."""

    def pulse() -> None:
        queue.storage.put_data(_KEY, clock().isoformat().encode())

    queue.periodic_task(crontab(minute="*"), name="pulse")(pulse)
    pulse()


def last_pulse(queue: Huey) -> datetime | None:
    """Return when a worker was last heard of; None if never, or if the queue is away."""
    try:
        kept = queue.storage.peek_data(_KEY)
    except (PeeweeException, sqlite3.Error) as error:
        _log.warning("the queue is away", extra={"reason": type(error).__name__})
        return None
    finally:
        queue.storage.close()
    if kept is EmptyData:
        return None
    return datetime.fromisoformat(bytes(kept).decode()).astimezone(UTC)
