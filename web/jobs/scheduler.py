"""Scheduler that checks which background jobs are due and starts them.

Several times a second, the scheduler runs one query that returns which kinds of work are due. On
SQLite, it can detect writes, so it queries only once a second while nothing is written. The state
of all work is stored in tables. Therefore, no work is lost if a worker stops, and several workers
can share the work. Each job runs in its own thread while it has work, so no job delays another.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Event, Lock, Thread
from time import monotonic
from typing import Self

from sqlalchemy import ColumnElement, Engine, select
from sqlalchemy.orm import Session

from domain.core.clock import Clock, read_system_clock
from domain.core.database.failures import is_conflict
from domain.core.due_time_sql import compute_time_parameters
from domain.core.hosts import claim_job_run
from domain.core.job_results import record_failed_job
from web.database.compiled_statements import RepeatedQuery
from web.database.engine import open_autocommit_engine, open_engine, use_engine
from web.database.errors import SQLAlchemyError, list_database_errors
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.jobs")
#: Seconds between two queries. On average, due work waits for half of this time.
_QUERY_INTERVAL_SECONDS = 0.25
#: Seconds between two queries while nothing is written. This is the maximum delay of work that
#: becomes due at a certain time.
_QUIET_QUERY_INTERVAL_SECONDS = 1.0
_RETRY_SECONDS = 5.0
_OUTAGE_LOG_INTERVAL_SECONDS = 60.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Job(ABC):
    """A kind of background work.

    `engine` is for transactions that write. `reading_engine` does not take SQLite's write lock.
    """

    #: Name of the job and its thread, which appears in logs.
    name: str
    #: Condition under which the job is due, with the parameters of
    #: `domain.core.due_time_sql`. It is None if the job only runs at fixed times.
    due: ColumnElement[bool] | None = None
    #: Interval at which the job starts regardless of due work.
    every: timedelta | None = None
    #: `True` if the job also starts when the worker starts.
    starts_immediately = False
    #: Pause in seconds after a run that found nothing, because another worker has claimed the work.
    pause_seconds = 1.0
    #: Number of database connections.
    connections = 1

    def __init__(self, settings: Settings, *, clock: Clock = read_system_clock) -> None:
        """Store the settings. The database is opened when there is work."""
        self.settings = settings
        self.clock = clock
        self.is_stopped = Event()
        self._thread: Thread | None = None
        self._is_under_way = False
        #: `True` if more work may have become due since the start of the last run.
        self._is_asked_again = False
        self._lock = Lock()
        self._rests_until = 0.0
        #: Monotonic time at which the current run began, or None between runs.
        self._looks_since: float | None = None
        #: Time at which the current period began.
        self._period_since: datetime | None = None
        #: Function to call after a run, because its results may cause work for other jobs.
        self.notify_scheduler: Callable[[], None] = lambda: None

    @cached_property
    def engine(self) -> Engine:
        """Database engine of this job."""
        return open_engine(replace(self.settings, database_pool_size=self.connections))

    @cached_property
    def reading_engine(self) -> Engine:
        """Engine with the same connections, for transactions that only read."""
        return self.engine.execution_options(begin_mode="DEFERRED")

    def is_due(self, due: ColumnElement[bool]) -> bool:
        """Return whether a condition from `domain.core.due_time_sql` is met now."""
        with Session(self.reading_engine) as session:
            return bool(session.scalar(select(due), compute_time_parameters(self.clock())))

    def get_run_seconds(self) -> float:
        """Return the duration of the current run in seconds, or 0 between runs."""
        since = self._looks_since
        return 0.0 if since is None else monotonic() - since

    @abstractmethod
    def process_all_due_work(self) -> int:
        """Process all due work, and return the number of processed items.

        Implementations return early once `is_stopped` is set.
        """

    def process_due_work(self) -> int:
        """Process due work in the background, and return 0 if no work was due."""
        return self.process_all_due_work()

    def is_new_period(self) -> bool:
        """Return whether a new period has begun since the last call.

        The first call returns `starts_immediately`.
        """
        if self.every is None:
            return False
        now, since = self.clock(), self._period_since
        if since is not None and since <= now < since + self.every:
            return False
        self._period_since = now - (now - _EPOCH) % self.every
        return since is not None or self.starts_immediately

    def get_period_end(self) -> datetime:
        """Return the end of the current period, or the latest possible time if there is none."""
        if self.every is None or self._period_since is None:
            return datetime.max.replace(tzinfo=UTC)
        return self._period_since + self.every

    def start_run(self) -> None:
        """Start a run in the background, unless one is in progress."""
        with self._lock:
            if self._is_under_way:
                self._is_asked_again = True
            elif not self.is_stopped.is_set() and monotonic() >= self._rests_until:
                self._is_under_way = True
                self._thread = Thread(target=self._run_in_background, name=self.name, daemon=True)
                self._thread.start()

    def __enter__(self) -> Self:
        """Return the job without starting it."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Let the current run finish and close the database."""
        self.finish_current_run()

    def finish_current_run(self) -> None:
        """Let the current run finish, and leave the remaining work to the next worker."""
        self.is_stopped.set()
        if self._thread is not None:
            self._thread.join(self.settings.graceful_timeout_seconds)
        if "engine" in self.__dict__:
            self.engine.dispose()

    def _run_in_background(self) -> None:
        rest = self.pause_seconds
        while True:
            self._is_asked_again = False
            self._looks_since = monotonic()
            count = self._process_and_count()
            self._looks_since = None
            if count is None:
                rest = _RETRY_SECONDS
            elif count:
                rest = 0.0
                self.notify_scheduler()
            with self._lock:
                if self.is_stopped.is_set() or not (count or (self._is_asked_again and not rest)):
                    self._rests_until = monotonic() + rest
                    self._is_under_way = False
                    return

    def _process_and_count(self) -> int | None:
        """Run once, and return the number of processed items, or None if the run failed."""
        try:
            return self.process_due_work()
        # The database is unavailable or not migrated, which /readyz reports. Jobs with their own
        # connections receive the driver's errors.
        except list_database_errors() as error:
            if is_conflict(error):  # the other transaction in the deadlock has continued
                return 1
            _log.debug(
                "Job stopped because the database was unavailable.",
                extra={
                    "event": "job.interrupted",
                    "job": self.name,
                    "reason": type(error).__name__,
                },
            )
        except Exception as error:  # noqa: BLE001 - a later run may succeed
            _log.exception("Job failed.", extra={"event": "job.failed", "job": self.name})
            self._record_failure(type(error).__name__)
        return None

    def _record_failure(self, reason: str) -> None:
        """Store the failure for `/metrics`, `gatebell doctor` and `/admin`."""
        with suppress(*list_database_errors()), Session(self.engine) as session, session.begin():
            record_failed_job(self.name, reason, session=session, now=self.clock())


class PerWorkerJob(Job):
    """Job that runs once per period in every worker."""

    def __init__(
        self,
        name: str,
        every: timedelta,
        work: Callable[[Settings], object],
        settings: Settings,
        *,
        clock: Clock = read_system_clock,
    ) -> None:
        """Store the name, the period and the function to call."""
        super().__init__(settings, clock=clock)
        self.name, self.every = name, every
        self._period = every
        self._work = work

    def process_all_due_work(self) -> int:
        """Call the function and return 0, because no work is due afterwards."""
        self._work(self.settings)
        return 0


class PeriodicJob(PerWorkerJob):
    """Job that runs once per period in a single worker, which claims the job.

    No worker starts the job while another worker still runs it.
    """

    def process_all_due_work(self) -> int:
        """Call the function if this worker claims the job first."""
        if self._claim_job(self.clock()):
            is_over = Event()
            Thread(target=self._extend_claim, args=(is_over,), name=self.name, daemon=True).start()
            try:
                super().process_all_due_work()
            finally:
                is_over.set()
        return 0

    def _claim_job(self, now: datetime) -> bool:
        with use_engine(self.settings) as engine, Session(engine) as session, session.begin():
            return claim_job_run(self.name, period=self._period, session=session, now=now)

    def _extend_claim(self, is_over: Event) -> None:
        """Claim the job for each following period in advance, until the run ends."""
        half = self._period / 2
        while not is_over.wait(half.total_seconds()):
            with suppress(SQLAlchemyError):
                self._claim_job(self.clock() + half)


class Scheduler:
    """Scheduler that queries which jobs are due and starts them."""

    def __init__(
        self, jobs: Sequence[Job], settings: Settings, *, clock: Clock = read_system_clock
    ) -> None:
        """Store the jobs without starting them."""
        self._jobs = jobs
        self._clock = clock
        self._asked = [(job, job.due) for job in jobs if job.due is not None]
        question = select(*(due for _, due in self._asked))
        self._question = RepeatedQuery(question, open_autocommit_engine(settings))
        #: Time span within which no period ends.
        self._periods = (_EPOCH, _EPOCH)
        #: Monotonic time until which the last query result is valid, unless data is written.
        self._is_quiet_until = float("-inf")
        self._is_stopped = False
        self._has_news = Event()
        self._told_of_outage_at = float("-inf")
        for job in jobs:
            job.notify_scheduler = self._has_news.set
        self._thread = Thread(target=self._start_due_jobs, name="scheduler", daemon=True)

    def __enter__(self) -> Self:
        """Start scheduling in the background."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Let active jobs finish, and leave the remaining work to the next worker."""
        self._is_stopped = True
        self._has_news.set()
        for job in self._jobs:
            job.is_stopped.set()
        for job in self._jobs:
            job.finish_current_run()

    def list_hanging_jobs(self, *, longest_seconds: float) -> list[str]:
        """Return the names of the jobs whose current run exceeds `longest_seconds`."""
        return [job.name for job in self._jobs if job.get_run_seconds() > longest_seconds]

    def _start_due_jobs(self) -> None:
        while not self._is_stopped:
            pause = _QUERY_INTERVAL_SECONDS
            try:
                self._query_due_jobs()
            except list_database_errors() as error:
                self._log_outage(error)
                pause = _RETRY_SECONDS
            except Exception:  # noqa: BLE001 - without the scheduler, nobody would be paged
                _log.exception("Scheduler failed.", extra={"event": "worker.scheduler_failed"})
                pause = _RETRY_SECONDS
            self._has_news.wait(pause)
            self._has_news.clear()
        self._question.close_connection()

    def _query_due_jobs(self) -> None:
        now = self._clock()
        seen_at, end = self._periods
        if not seen_at <= now < end:  # this also applies if the clock was set back
            for job in self._jobs:
                if job.is_new_period():
                    job.start_run()
            self._periods = (now, min(job.get_period_end() for job in self._jobs))
        if not self._question.may_result_have_changed() and monotonic() < self._is_quiet_until:
            return
        answers = self._question.fetch_first_row(compute_time_parameters(now))
        self._is_quiet_until = (
            float("-inf") if any(answers) else monotonic() + _QUIET_QUERY_INTERVAL_SECONDS
        )
        for (job, _), is_due in zip(self._asked, answers, strict=True):
            if is_due:
                job.start_run()

    def _log_outage(self, error: Exception) -> None:
        """Log, at most once a minute, that the database is unavailable."""
        if monotonic() - self._told_of_outage_at >= _OUTAGE_LOG_INTERVAL_SECONDS:
            self._told_of_outage_at = monotonic()
            _log.error(
                "No jobs were started because the database was unavailable.",
                extra={
                    "event": "worker.database_unavailable",
                    "reason": type(error).__name__,
                },
            )
