"""Job that opens and resolves the alerts of heartbeats."""

import logging
from datetime import timedelta

from domain.core.clock import Clock, system_clock
from domain.core.database.failures import is_of_database
from domain.heartbeats.evaluation import (
    HEARTBEATS_ARE_DUE,
    due_heartbeats,
    postpone,
    settle_if_free,
)
from web.database.connections import KeptConnections
from web.database.engine import open_autocommit_engine
from web.jobs.scheduler import Job
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.heartbeats")
_BATCH = 200
_AFTER_FAILURE = timedelta(minutes=1)


class Heartbeats(Job):
    """Job that evaluates the heartbeats that are due."""

    name = "heartbeats"
    due = HEARTBEATS_ARE_DUE

    def __init__(self, settings: Settings, *, clock: Clock = system_clock) -> None:
        """Open the database."""
        super().__init__(settings, clock=clock)
        self._kept = KeptConnections(
            open_autocommit_engine(settings),
            size=1,
            patience=settings.database_connect_timeout_seconds,
        )

    def stop(self) -> None:
        """Let the current run finish, and leave the rest to the next worker."""
        super().stop()
        self._kept.close()

    def run_due(self) -> int:
        """Evaluate the heartbeats that are due and return their number."""
        due = due_heartbeats(connection=self._kept, now=self.clock(), most=_BATCH)
        return sum(self._settle(heartbeat_id) for heartbeat_id in due)

    def _settle(self, heartbeat_id: int) -> int:
        """Evaluate a heartbeat and return 1, or 0 if another worker has evaluated it."""
        if self.is_stopped.is_set():
            return 0
        try:
            return int(
                settle_if_free(heartbeat_id, connection=self._kept, now=self.clock()) is not None
            )
        except Exception as error:
            if is_of_database(error):
                raise  # a database error does not mean that the heartbeat is faulty
            # A failing heartbeat must not delay the others.
            _log.exception(
                "Heartbeat evaluation failed; the worker retries.",
                extra={"event": "heartbeat.evaluation_failed", "heartbeat_id": heartbeat_id},
            )
            until = self.clock() + _AFTER_FAILURE
            postpone(heartbeat_id, connection=self._kept, until=until)
            return 0


def run_due(settings: Settings, *, clock: Clock = system_clock) -> int:
    """Evaluate all heartbeats that are due at the clock's time and return their number."""
    with Heartbeats(settings, clock=clock) as loop:
        settled = 0
        while count := loop.run_due():
            settled += count
        return settled
