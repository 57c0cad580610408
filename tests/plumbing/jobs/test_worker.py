"""Background work is queued and done on each kind of database."""

import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from huey import Huey
from peewee import OperationalError

from web.jobs.periodic_jobs import once_per_period
from web.jobs.worker import BriefOutages, add_mail_tasks, add_tasks, open_queue
from web.settings.reader import Settings


@pytest.fixture
def queue(settings: Settings) -> Iterator[Huey]:
    opened = open_queue(settings)
    yield opened
    opened.storage.close()


def rest() -> None:
    """Do nothing."""


def test_what_is_queued_is_done(settings: Settings, queue: Huey) -> None:
    done: list[str] = []

    def prune() -> None:
        done.append("pruned")

    add_tasks(queue, settings, prune=prune, add_up=rest, seal=rest)()
    assert done == []
    queue.execute(queue.dequeue())
    assert done == ["pruned"]


def test_a_queue_survives_the_process_that_filled_it(settings: Settings, queue: Huey) -> None:
    add_tasks(queue, settings, prune=rest, add_up=rest, seal=rest)()
    other = open_queue(settings)
    assert other.pending_count() == 1
    other.storage.close()


def test_several_processes_may_open_a_new_queue_at_once(settings: Settings) -> None:
    def open_and_close(_: int) -> int:
        queue = open_queue(settings)
        count = queue.pending_count()
        queue.storage.close()
        return int(count)

    with ThreadPoolExecutor(8) as several:
        assert list(several.map(open_and_close, range(8))) == [0] * 8


def test_an_outage_is_one_line_and_no_traceback() -> None:
    error = OperationalError("connection refused")
    record = logging.makeLogRecord({"msg": "Error reading", "exc_info": (None, error, None)})
    assert BriefOutages().filter(record)
    assert record.getMessage() == "Error reading (the database is unavailable)"
    assert record.exc_info is None


def test_several_workers_do_a_periodic_job_once(settings: Settings) -> None:
    done: Counter[str] = Counter()
    workers = [open_queue(settings) for _ in range(3)]
    for worker in workers:
        jobs = {name: partial(done.update, [name]) for name in ("prune", "add_up", "seal")}
        add_tasks(worker, settings, **jobs)
        add_mail_tasks(worker, settings, write=partial(done.update, ["write"]), send=rest)
    for worker in workers:
        for task in worker.read_periodic(datetime(2026, 1, 1, tzinfo=UTC)):
            worker.execute(task)
        worker.storage.close()
    # One more where a minute or ten were just over.
    assert all(1 <= count <= 2 for count in done.values())
    assert set(done) == {"prune", "add_up", "seal", "write"}


def test_the_next_period_has_a_turn_of_its_own_whatever_others_clocks_say(
    settings: Settings,
) -> None:
    done: list[datetime] = []
    start, minute = datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=1)

    def do(moment: datetime) -> None:
        job = partial(done.append, moment)
        once_per_period("job", minute, job, settings, clock=lambda: moment)()

    moments = [start, start + minute / 2, start + minute, start + minute * 60, start + minute * 2]
    for moment in moments:
        do(moment)
    assert done == [moments[0], moments[2], moments[3], moments[4]]
