"""Tests of the scheduler of background jobs: due jobs start, and jobs do not block each other."""

import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from queue import SimpleQueue
from threading import Event
from time import monotonic, sleep

import psycopg
import pytest
from sqlalchemy import exists, select, text
from sqlalchemy.orm import Session

from domain.core.due_time_sql import NOW, compute_time_parameters
from domain.core.hosts import find_last_job_run, record_job_run
from domain.core.job_results import list_failed_jobs
from models import JobTurn
from tests.support.database.databases import ON_POSTGRES
from web.database.compiled_statements import RepeatedQuery
from web.database.engine import open_autocommit_engine, use_engine
from web.jobs.job_intervals import build_jobs
from web.jobs.scheduler import Job, PeriodicJob, PerWorkerJob, Scheduler
from web.settings.environment import Settings

START, MINUTE = datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=1)
#: Number of seconds that is enough on a busy machine; no test waits for all of it.
PATIENCE = 30


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class Work(Job):
    """Performs one turn of a named job at each check."""

    def __init__(
        self, name: str, settings: Settings, do: Callable[[], None], **more: Clock
    ) -> None:
        super().__init__(settings, **more)
        self.name = name
        self._is_due = exists().where(JobTurn.name == name, JobTurn.taken_at <= NOW)
        self.due = self._is_due
        self._do = do

    def process_all_due_work(self) -> int:
        if not self.is_due(self._is_due):
            return 0
        self._do()
        with Session(self.engine) as session, session.begin():
            session.delete(session.get_one(JobTurn, self.name))
        return 1


def wait_for(event: Event) -> None:
    event.wait(PATIENCE)


def store(name: str, settings: Settings, *, at: datetime = START) -> None:
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        record_job_run(name, session=session, now=at)


def turn(name: str, settings: Settings) -> datetime | None:
    with use_engine(settings) as engine, Session(engine) as session:
        return find_last_job_run(name, session=session)


def test_a_due_job_starts_while_another_job_is_slow(settings: Settings) -> None:
    goes_on, is_done = Event(), Event()
    slow = Work("slow", settings, lambda: wait_for(goes_on))
    quick = Work("quick", settings, is_done.set)
    with Scheduler([slow, quick], settings):
        store("slow", settings)
        store("quick", settings)
        assert is_done.wait(PATIENCE)
        assert not goes_on.is_set()
        goes_on.set()


@pytest.mark.long
def test_a_job_starts_when_it_becomes_due(settings: Settings) -> None:
    clock, is_done = Clock(), Event()
    store("later", settings, at=START + MINUTE)
    looks = Counter[str]()

    class Counted(Work):
        def process_all_due_work(self) -> int:
            looks[self.name] += 1
            return super().process_all_due_work()

    with Scheduler([Counted("later", settings, is_done.set, clock=clock)], settings, clock=clock):
        assert not is_done.wait(1)
        assert not looks
        clock.now += MINUTE
        assert is_done.wait(PATIENCE)


def test_a_failing_job_is_logged_and_does_not_delay_others(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    is_done = Event()

    def fail() -> None:
        raise ValueError

    store("broken", settings)
    with Scheduler([Work("broken", settings, fail), Work("well", settings, is_done.set)], settings):
        store("well", settings)
        assert is_done.wait(PATIENCE)
    told = [each for each in caplog.records if vars(each).get("event") == "job.failed"]
    assert [each.__dict__["job"] for each in told] == ["broken"]
    with use_engine(settings) as engine, Session(engine) as session:
        (failed,) = list_failed_jobs(session=session)
    assert (failed.name, failed.reason) == ("broken", "ValueError")


def test_a_lost_driver_connection_is_an_outage_not_a_job_failure(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    is_done = Event()
    errors: list[Exception] = [psycopg.OperationalError("lost"), sqlite3.OperationalError("lost")]

    def lose() -> None:
        if errors:
            raise errors.pop()
        is_done.set()

    store("lossy", settings)
    with Scheduler([Work("lossy", settings, lose)], settings):
        assert is_done.wait(PATIENCE)
    assert "job.failed" not in [vars(each).get("event") for each in caplog.records]


@pytest.mark.long
def test_an_outage_is_logged_in_one_line_without_a_traceback(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.jobs.scheduler._RETRY_SECONDS", 0.01)
    looks, is_back = Counter[str](), Event()
    job = Work("any", settings, is_back.set)

    def away(*_: object) -> None:
        looks["away"] += 1
        if looks["away"] == 3:
            monkeypatch.undo()
            store("any", settings)
        raise_from_the_database(settings)

    monkeypatch.setattr("web.database.compiled_statements.RepeatedQuery.fetch_first_row", away)
    with caplog.at_level(logging.INFO), Scheduler([job], settings):
        assert is_back.wait(PATIENCE)
    (told,) = [
        each for each in caplog.records if vars(each).get("event") == "worker.database_unavailable"
    ]
    assert told.exc_info is None


@pytest.mark.one_database("sqlite")
def test_an_idle_scheduler_rarely_queries_and_notices_a_write_immediately(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.jobs.scheduler._QUERY_INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr("web.jobs.scheduler._QUIET_QUERY_INTERVAL_SECONDS", 2 * PATIENCE)
    calls: Counter[str] = Counter()
    has_looked, is_done = Event(), Event()

    def counted(name: str, do: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            calls[name] += 1
            if calls["may_result_have_changed"] == 5:
                has_looked.set()
            return do(*given)

        return call

    for name in ("fetch_first_row", "may_result_have_changed"):
        monkeypatch.setattr(RepeatedQuery, name, counted(name, getattr(RepeatedQuery, name)))
    with Scheduler([Work("any", settings, is_done.set)], settings):
        assert has_looked.wait(PATIENCE)
        assert calls["fetch_first_row"] == 1
        store("any", settings)
        assert is_done.wait(PATIENCE)


def raise_from_the_database(settings: Settings) -> None:
    with open_autocommit_engine(settings).connect() as connection:
        connection.exec_driver_sql("SELECT * FROM nothing")


@pytest.mark.long
def test_an_idle_worker_logs_and_starts_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [each for each in build_jobs(settings) if each.due is not None]
    with use_engine(settings) as engine, Session(engine) as session:
        values = compute_time_parameters(datetime.now(UTC))
        for job in jobs:
            assert job.due is not None
            assert not session.scalar(select(job.due), values), job.name
    with caplog.at_level(logging.INFO), Scheduler(jobs, settings) as scheduler:
        Event().wait(1)
        assert scheduler.list_hanging_jobs(longest_seconds=0) == []
    assert caplog.records == []


def test_several_workers_do_a_periodic_job_once(settings: Settings) -> None:
    done: Counter[str] = Counter()
    clock = Clock()
    jobs = [
        PeriodicJob("once", MINUTE, lambda _: done.update(["once"]), settings, clock=clock)
        for _ in range(3)
    ] + [
        PerWorkerJob("each", MINUTE, lambda _: done.update(["each"]), settings, clock=clock)
        for _ in range(3)
    ]
    with ThreadPoolExecutor(len(jobs)) as workers:
        for _ in range(2):
            list(workers.map(lambda job: job.process_all_due_work(), jobs))
            clock.now += MINUTE
    assert done == {"once": 2, "each": 6}


def test_a_period_starts_once_in_spite_of_clock_changes(settings: Settings) -> None:
    clock = Clock()
    job = PeriodicJob("job", MINUTE, lambda _: None, settings, clock=clock)
    begun = []
    for seconds in (0, 30, 60, 61, 3600, 120, 121):
        clock.now = START + timedelta(seconds=seconds)
        if job.is_new_period():
            begun.append(seconds)
    # The job does not start with the worker, but it starts after the clock was set back.
    assert begun == [60, 3600, 120]


@pytest.mark.long
def test_the_next_period_has_its_own_turn_in_spite_of_clock_changes(
    settings: Settings,
) -> None:
    done: list[datetime] = []
    clock = Clock()
    job = PeriodicJob("job", MINUTE, lambda _: done.append(clock.now), settings, clock=clock)
    moments_of_looks = [START + MINUTE * each for each in (0, 0.5, 1, 60, 2)]
    for moment in moments_of_looks:
        clock.now = moment
        job.process_all_due_work()
    assert done == [moments_of_looks[each] for each in (0, 2, 3, 4)]


def test_a_job_that_runs_in_one_worker_is_not_started_by_another(settings: Settings) -> None:
    """Show that turns act as a lock: a running worker takes the next turn before it starts."""
    clock, done, is_over = Clock(), Counter[str](), Event()
    # The period uses the clock of the test, while turns are held in real time.
    period = timedelta(seconds=0.2)

    def work(name: str, _settings: Settings) -> None:
        done[name] += 1
        if name == "long":
            wait_for(is_over)

    long, other = (
        PeriodicJob("job", period, partial(work, name), settings, clock=clock)
        for name in ("long", "other")
    )
    long.start_run()
    for number in (1, 2, 3):
        following = START + number * period
        clock.now = following - period / 4
        deadline = monotonic() + PATIENCE
        while turn("job", settings) != following:
            assert monotonic() < deadline
            sleep(0.02)
        clock.now = following
        other.process_all_due_work()
    is_over.set()
    for job in (long, other):
        job.finish_current_run()
    assert done == {"long": 1}


def test_the_turn_of_a_killed_worker_is_taken_by_another(settings: Settings) -> None:
    clock, done = Clock(), Counter[str]()
    # The turn is taken ahead of the next period, and never taken again.
    store("job", settings, at=START + MINUTE)
    job = PeriodicJob("job", MINUTE, lambda _: done.update(["job"]), settings, clock=clock)
    for _ in range(3):
        job.process_all_due_work()
        clock.now += MINUTE
    assert done == {"job": 1}


@pytest.mark.one_database("sqlite")  # PostgreSQL has no useful plan without statistics.
def test_due_work_is_found_by_index(settings: Settings) -> None:
    """Allow scans only of tables with few rows, or with due rows only."""
    due = [each.due for each in build_jobs(settings) if each.due is not None]
    with use_engine(settings) as engine, engine.connect() as connection:
        question = str(select(*due).compile(engine))
        values = len(re.findall(r"\?", question)) * ("",)
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {question}", values).all()
    read_wholly = {line.detail.split()[1] for line in plan if line.detail.startswith("SCAN ")}
    assert read_wholly - {"CONSTANT"} == {
        *("webhook_endpoints", "audit_streams", "webhook_incident_changes", "pages")
    }
    assert {line.detail for line in plan if "SCAN pages" in line.detail} == {
        "SCAN pages USING INDEX ix_pages_news"
    }


def test_a_job_starts_in_each_period_of_a_clock_that_can_be_set_back(settings: Settings) -> None:
    clock, began = Clock(), SimpleQueue[datetime]()
    job = PerWorkerJob("minutely", MINUTE, lambda _: began.put(clock()), settings, clock=clock)
    job.starts_immediately = True
    job.pause_seconds = 0.0
    idle = Work("idle", settings, lambda: None)
    with Scheduler([job, idle], settings, clock=clock):
        for moment in (START, START + MINUTE, START + 2 * MINUTE, START - MINUTE, START):
            clock.now = moment
            assert began.get(timeout=PATIENCE) == moment


class Locker(Job):
    """Locks two turns; the first time, another session waits for the first one."""

    name = "locker"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.has_first, self.is_done = Event(), Event()

    def process_all_due_work(self) -> int:
        with Session(self.engine) as session, session.begin():
            lock("first", session)
            if not self.has_first.is_set():
                self.has_first.set()
                while not session.scalar(WAITING):
                    session.execute(text("SELECT pg_stat_clear_snapshot()"))
            session.execute(text("SET LOCAL deadlock_timeout = '10ms'"))
            lock("second", session)
        self.is_done.set()
        return 0


#: Number of the database's sessions that wait for a lock.
WAITING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


def lock(name: str, session: Session) -> None:
    session.scalars(select(JobTurn).where(JobTurn.name == name).with_for_update()).one()


@ON_POSTGRES
def test_a_job_is_retried_immediately_after_a_deadlock(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.jobs.scheduler._RETRY_SECONDS", 10.0 * PATIENCE)
    store("first", settings)
    store("second", settings)
    with use_engine(settings) as engine, Locker(settings) as job:
        with Session(engine) as session, session.begin():
            # PostgreSQL cancels the session that checks for a deadlock first.
            session.execute(text("SET LOCAL deadlock_timeout = '1min'"))
            lock("second", session)
            job.start_run()
            wait_for(job.has_first)
            lock("first", session)
        assert job.is_done.wait(PATIENCE)
