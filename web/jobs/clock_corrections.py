"""Job that detects a clock that was set back, and stored times in the future.

The job runs every few seconds.
"""

import logging
from datetime import datetime, timedelta
from time import monotonic

from sqlalchemy.orm import Session

from domain.core.clock import CLOCK_TOLERANCE, Clock, read_system_clock
from domain.core.due_time_sql import compute_time_parameters
from domain.housekeeping.clock_corrections import (
    FUTURE_TIMES_QUERY,
    correct_future_times,
    record_wrong_clock,
)
from web.database.compiled_statements import RepeatedQuery
from web.database.engine import open_autocommit_engine
from web.jobs.scheduler import Job
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.clock")


class ClockCorrectionJob(Job):
    """Job that corrects stored times that lie in the future after a clock error."""

    name = "clock"
    every = timedelta(seconds=15)

    def __init__(self, settings: Settings, *, clock: Clock = read_system_clock) -> None:
        """Prepare the query for stored times in the future, and read the clock."""
        super().__init__(settings, clock=clock)
        self._last = self.clock() - _get_monotonic_time()
        self._count = RepeatedQuery(FUTURE_TIMES_QUERY, open_autocommit_engine(settings))

    def finish_current_run(self) -> None:
        """Let the current run finish and close the connection."""
        super().finish_current_run()
        self._count.close_connection()

    def process_all_due_work(self) -> int:
        """Log a message if the clock was set back, and correct stored times in the future.

        Always return 0, so that the scheduler pauses the job.
        """
        now = self.clock()
        set_back = self._measure_clock_setback(now)
        if not set_back and not any(self._count.fetch_first_row(compute_time_parameters(now))):
            return 0
        with Session(self.engine) as session, session.begin():
            found = correct_future_times(session=session, now=now)
            record_wrong_clock(session=session, now=now)
        seconds = {"set_back_seconds": round(set_back.total_seconds(), 1)} if set_back else {}
        _log.warning(
            "Stored times in the future were corrected after a clock error.",
            extra={"event": "clock.times_corrected", **seconds, **found},
        )
        return 0

    def _measure_clock_setback(self, now: datetime) -> timedelta:
        """Return the time by which the clock was set back since the last run, or zero."""
        before, self._last = self._last, now - _get_monotonic_time()
        return before - self._last if before - self._last > CLOCK_TOLERANCE else timedelta(0)


def _get_monotonic_time() -> timedelta:
    """Return the monotonic time, which clock changes do not affect."""
    return timedelta(seconds=monotonic())
