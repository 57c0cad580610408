"""The scheduler of background work: it looks what is due, and starts the jobs that have work.

Several times a second it asks the database one question: what is due, and of what kind. On SQLite,
where it is told whether anybody has written, it asks once a second while nobody does. The state
of all work is in tables, so nothing is lost with a worker, and several workers share the work. Each
job runs in a thread of its own while it has something to do, so no job holds up another.
"""

import logging
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Event, Lock, Thread
from time import monotonic
from typing import Self

import psycopg
from sqlalchemy import ColumnElement, Engine, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.clock import Clock, system_clock
from domain.core.database.failures import gave_way
from domain.core.hosts import claim_turn
from domain.core.job_results import record_failed_job
from domain.core.schedule_conditions import moments
from web.database.driver_statements import RepeatedQuestion
from web.database.engine import engine_of, open_autocommit_engine, open_engine
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.jobs")
#: Between two questions. A page waits for half of it, on average, twice.
_LOOK_SECONDS = 0.25
#: Between two questions while nothing is written: what becomes due by the clock alone waits for it.
_QUIET_SECONDS = 1.0
_AFTER_FAILURE_SECONDS = 5.0
_OUTAGE_TOLD_EVERY_SECONDS = 60.0
_OUTAGES = (SQLAlchemyError, sqlite3.Error, psycopg.Error)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Job(ABC):
    """A kind of background work.

    `engine` is for what writes; `reading` takes no lock of a writer on SQLite.
    """

    #: The name of the thread, for logs.
    name: str
    #: Whether the job is due, with the parameters of `domain.core.schedule_conditions`; None if the
    #: job only runs at fixed times.
    due: ColumnElement[bool] | None = None
    #: How often it begins, whatever is due.
    every: timedelta | None = None
    #: Whether it begins with the worker as well.
    begins_at_once = False
    #: For how long it is left alone when what is due was not for it: another worker has it.
    pause_seconds = 1.0
    #: Connections to the database.
    connections = 1

    def __init__(self, settings: Settings, *, clock: Clock = system_clock) -> None:
        """Take the settings; the database is opened when there is something to do."""
        self.settings = settings
        self.clock = clock
        self.is_stopped = Event()
        self._thread: Thread | None = None
        self._is_under_way = False
        #: Whether there may be more to do than the last look has seen.
        self._is_asked_again = False
        self._lock = Lock()
        self._rests_until = 0.0
        #: When the current look began; None if there is none.
        self._looks_since: float | None = None
        #: When the last period began.
        self._period_since: datetime | None = None
        #: Called when something was done: it may be work for others.
        self.tell: Callable[[], None] = lambda: None

    @cached_property
    def engine(self) -> Engine:
        """The connections of this job."""
        return open_engine(replace(self.settings, database_pool_size=self.connections))

    @cached_property
    def reading(self) -> Engine:
        """The same connections, for what only reads."""
        return self.engine.execution_options(begin_mode="DEFERRED")

    def has(self, due: ColumnElement[bool]) -> bool:
        """Return whether a condition of `domain.core.schedule_conditions` is true now."""
        with Session(self.reading) as session:
            return bool(session.scalar(select(due), moments(self.clock())))

    def seconds_of_look(self) -> float:
        """Return for how long it has been looking for work and doing it."""
        since = self._looks_since
        return 0.0 if since is None else monotonic() - since

    @abstractmethod
    def run_due(self) -> int:
        """Do what is due now and return how much that was.

        It returns early once `is_stopped` is set.
        """

    def look(self) -> int:
        """Do what is due, in the background; return 0 if there was nothing."""
        return self.run_due()

    def is_new_period(self) -> bool:
        """Return whether a period began since the last call."""
        if self.every is None:
            return False
        now, since = self.clock(), self._period_since
        if since is not None and since <= now < since + self.every:
            return False
        self._period_since = now - (now - _EPOCH) % self.every
        return since is not None or self.begins_at_once

    def period_ends_at(self) -> datetime:
        """Return when the current period ends, if it has one."""
        if self.every is None or self._period_since is None:
            return datetime.max.replace(tzinfo=UTC)
        return self._period_since + self.every

    def begin(self) -> None:
        """Do what is due in the background, unless that is under way."""
        with self._lock:
            if self._is_under_way:
                self._is_asked_again = True
            elif not self.is_stopped.is_set() and monotonic() >= self._rests_until:
                self._is_under_way = True
                self._thread = Thread(target=self._run, name=self.name, daemon=True)
                self._thread.start()

    def __enter__(self) -> Self:
        """Return the job, which has not begun."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Let the work under way finish, and close the database."""
        self.stop()

    def stop(self) -> None:
        """Let the work under way finish; the rest stays for the next worker."""
        self.is_stopped.set()
        if self._thread is not None:
            self._thread.join(self.settings.graceful_timeout_seconds)
        if "engine" in self.__dict__:
            self.engine.dispose()

    def _run(self) -> None:
        rest = self.pause_seconds
        while True:
            self._is_asked_again = False
            self._looks_since = monotonic()
            count = self._look()
            self._looks_since = None
            if count is None:
                rest = _AFTER_FAILURE_SECONDS
            elif count:
                rest = 0.0
                self.tell()
            with self._lock:
                if self.is_stopped.is_set() or not (count or (self._is_asked_again and not rest)):
                    self._rests_until = monotonic() + rest
                    self._is_under_way = False
                    return

    def _look(self) -> int | None:
        """Look once; return None if that failed, and is to be tried again later."""
        try:
            return self.look()
        # Unavailable or not migrated, which /readyz reports. Jobs with connections of their own get
        # the errors of the driver.
        except _OUTAGES as error:
            if gave_way(error):  # in a deadlock, whose other side has gone on
                return 1
            _log.debug("nothing done", extra={"job": self.name, "reason": type(error).__name__})
        except Exception as error:  # noqa: BLE001 - what fails today may work later
            _log.exception("a job of the worker failed", extra={"job": self.name})
            self._record_failure(type(error).__name__)
        return None

    def _record_failure(self, reason: str) -> None:
        """Store the failure, which `/metrics`, `gatebell doctor` and `/admin` show."""
        with suppress(*_OUTAGES), Session(self.engine) as session, session.begin():
            record_failed_job(self.name, reason, session=session, now=self.clock())


class JobOfEachWorker(Job):
    """A job that begins with each period."""

    def __init__(
        self,
        name: str,
        every: timedelta,
        work: Callable[[Settings], object],
        settings: Settings,
        *,
        clock: Clock = system_clock,
    ) -> None:
        """Take the work."""
        super().__init__(settings, clock=clock)
        self.name, self.every = name, every
        self._period = every
        self._work = work

    def run_due(self) -> int:
        """Do the work; nothing is due afterwards."""
        self._work(self.settings)
        return 0


class PeriodicJob(JobOfEachWorker):
    """A job that one of all workers begins with each period, by a turn of its name.

    No worker begins while another one is still at it.
    """

    def run_due(self) -> int:
        """Do the work if the turn is ours."""
        if self._claim(self.clock()):
            is_over = Event()
            Thread(target=self._hold, args=(is_over,), name=self.name, daemon=True).start()
            try:
                super().run_due()
            finally:
                is_over.set()
        return 0

    def _claim(self, now: datetime) -> bool:
        with engine_of(self.settings) as engine, Session(engine) as session, session.begin():
            return claim_turn(self.name, period=self._period, session=session, now=now)

    def _hold(self, is_over: Event) -> None:
        """Take the turn of each period that follows, before it begins, until the work is over."""
        half = self._period / 2
        while not is_over.wait(half.total_seconds()):
            with suppress(SQLAlchemyError):
                self._claim(self.clock() + half)


class Scheduler:
    """Looks what is due, and lets the jobs begin."""

    def __init__(
        self, jobs: Sequence[Job], settings: Settings, *, clock: Clock = system_clock
    ) -> None:
        """Take the jobs, which have not begun."""
        self._jobs = jobs
        self._clock = clock
        self._asked = [(job, job.due) for job in jobs if job.due is not None]
        question = select(*(due for _, due in self._asked))
        self._question = RepeatedQuestion(question, open_autocommit_engine(settings))
        #: Between them no period ends.
        self._periods = (_EPOCH, _EPOCH)
        #: Until then, what the last look has seen holds, unless somebody writes.
        self._is_quiet_until = float("-inf")
        self._is_stopped = False
        self._has_news = Event()
        self._told_of_outage_at = float("-inf")
        for job in jobs:
            job.tell = self._has_news.set
        self._thread = Thread(target=self._run, name="scheduler", daemon=True)

    def __enter__(self) -> Self:
        """Begin, in the background."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Let the work under way finish; the rest stays for the next worker."""
        self._is_stopped = True
        self._has_news.set()
        for job in self._jobs:
            job.is_stopped.set()
        for job in self._jobs:
            job.stop()

    def hanging(self, *, longest_seconds: float) -> list[str]:
        """Return the names of the jobs that have not come back for longer."""
        return [job.name for job in self._jobs if job.seconds_of_look() > longest_seconds]

    def _run(self) -> None:
        while not self._is_stopped:
            pause = _LOOK_SECONDS
            try:
                self._look()
            except _OUTAGES as error:
                self._tell_of_outage(error)
                pause = _AFTER_FAILURE_SECONDS
            except Exception:  # noqa: BLE001 - without it, nobody would be paged
                _log.exception("the scheduler failed")
                pause = _AFTER_FAILURE_SECONDS
            self._has_news.wait(pause)
            self._has_news.clear()
        self._question.close()

    def _look(self) -> None:
        now = self._clock()
        seen_at, end = self._periods
        if not seen_at <= now < end:  # or the clock was put back
            for job in self._jobs:
                if job.is_new_period():
                    job.begin()
            self._periods = (now, min(job.period_ends_at() for job in self._jobs))
        if not self._question.may_have_changed() and monotonic() < self._is_quiet_until:
            return
        answers = self._question.ask(moments(now))
        self._is_quiet_until = float("-inf") if any(answers) else monotonic() + _QUIET_SECONDS
        for (job, _), is_due in zip(self._asked, answers, strict=True):
            if is_due:
                job.begin()

    def _tell_of_outage(self, error: Exception) -> None:
        """Log that the database is away, once a minute."""
        if monotonic() - self._told_of_outage_at >= _OUTAGE_TOLD_EVERY_SECONDS:
            self._told_of_outage_at = monotonic()
            _log.error(
                "nothing is done: the database is unavailable",
                extra={"reason": type(error).__name__},
            )
