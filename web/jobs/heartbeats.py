"""Job that opens and resolves heartbeat alerts."""

import logging
from datetime import timedelta

from domain.core.clock import Clock, read_system_clock
from domain.core.database.failures import is_database_failure
from domain.heartbeats.evaluation import (
    HEARTBEATS_ARE_DUE,
    UNLOCKED_HEARTBEAT_QUERY,
    evaluate_heartbeat,
    find_due_heartbeats,
    postpone_evaluation,
)
from web.database.autocommit_pool import AutocommitPool
from web.database.engine import open_autocommit_engine
from web.jobs.scheduler import Job
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.heartbeats")
_BATCH_SIZE = 200
_RETRY_DELAY = timedelta(minutes=1)


class HeartbeatJob(Job):
    """Job that evaluates the heartbeats that are due."""

    name = "heartbeats"
    due = HEARTBEATS_ARE_DUE

    def __init__(self, settings: Settings, *, clock: Clock = read_system_clock) -> None:
        """Store the settings, and create a pool for a single connection."""
        super().__init__(settings, clock=clock)
        self._kept = AutocommitPool(
            open_autocommit_engine(settings),
            size=1,
            timeout_seconds=settings.database_connect_timeout_seconds,
        )

    def finish_current_run(self) -> None:
        """Let the current run finish, and leave the remaining work to the next worker."""
        super().finish_current_run()
        self._kept.close_idle_connections()

    def process_all_due_work(self) -> int:
        """Evaluate the heartbeats that are due, and return the number of evaluated heartbeats."""
        due = find_due_heartbeats(connection=self._kept, now=self.clock(), maximum=_BATCH_SIZE)
        return sum(self._evaluate_heartbeat(heartbeat_id) for heartbeat_id in due)

    def _evaluate_heartbeat(self, heartbeat_id: int) -> int:
        """Evaluate a heartbeat and return 1, or 0 if another worker has evaluated it."""
        if self.is_stopped.is_set():
            return 0
        try:
            return int(
                evaluate_heartbeat(
                    heartbeat_id,
                    connection=self._kept,
                    now=self.clock(),
                    query=UNLOCKED_HEARTBEAT_QUERY,
                )
                is not None
            )
        except Exception as error:
            if is_database_failure(error):
                raise  # a database error does not mean that the heartbeat is faulty
            # A failing heartbeat must not delay the others.
            _log.exception(
                "Heartbeat evaluation failed; the worker will retry.",
                extra={"event": "heartbeat.evaluation_failed", "heartbeat_id": heartbeat_id},
            )
            until = self.clock() + _RETRY_DELAY
            postpone_evaluation(heartbeat_id, connection=self._kept, until=until)
            return 0


def process_all_due_work(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Evaluate all heartbeats that are due, and return the number of evaluated heartbeats."""
    with HeartbeatJob(settings, clock=clock) as loop:
        settled = 0
        while count := loop.process_all_due_work():
            settled += count
        return settled
