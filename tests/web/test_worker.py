"""Background work is queued and done on each kind of database."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from huey import Huey
from peewee import OperationalError

from web.settings import Settings
from web.worker import BriefOutages, add_tasks, open_queue


@pytest.fixture
def queue(settings: Settings) -> Iterator[Huey]:
    opened = open_queue(settings)
    yield opened
    opened.storage.close()


def rest() -> None:
    """Do nothing."""


def test_what_is_queued_is_done(queue: Huey) -> None:
    done: list[str] = []

    def prune() -> None:
        done.append("pruned")

    add_tasks(queue, prune=prune, add_up=rest, seal=rest)()
    assert done == []
    queue.execute(queue.dequeue())
    assert done == ["pruned"]


def test_a_queue_survives_the_process_that_filled_it(settings: Settings, queue: Huey) -> None:
    add_tasks(queue, prune=rest, add_up=rest, seal=rest)()
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
    assert record.getMessage() == "Error reading (the database is away)"
    assert record.exc_info is None
