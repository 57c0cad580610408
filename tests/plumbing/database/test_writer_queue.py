"""Who waits to write to SQLite has a turn after those who came before, and gives up in time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from sqlite3 import connect as open_sqlite
from threading import Barrier, Event
from time import monotonic

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from web.database.engine import open_engine
from web.settings.reader import Settings

pytestmark = pytest.mark.one_database("sqlite")

WRITERS, TURNS = 6, 30
#: Those who came before are as many as there are; on a busy machine others write before we have
#: even asked. Without a queue it is some hundreds.
MOST_BEFORE = 15 * WRITERS
WRITE = text("UPDATE numbers SET n = n + 1")
PATIENCE_MS = 300


@pytest.fixture
def engine(settings: Settings) -> Iterator[Engine]:
    hasty = replace(settings, sqlite_busy_timeout_ms=PATIENCE_MS, database_pool_size=WRITERS + 1)
    opened = open_engine(hasty)
    with opened.begin() as connection:
        connection.execute(text("CREATE TABLE numbers (n INTEGER)"))
        connection.execute(text("INSERT INTO numbers VALUES (0)"))
    yield opened
    opened.dispose()


def test_a_writer_waits_for_those_who_came_before_and_not_for_others(engine: Engine) -> None:
    written: list[None] = []
    waited_for: list[int] = []
    end = Event()

    def go_on() -> None:
        while not end.is_set():
            with engine.begin() as connection:
                connection.execute(WRITE)
                written.append(None)

    with ThreadPoolExecutor(WRITERS) as pool:
        others = [pool.submit(go_on) for _ in range(WRITERS)]
        try:
            while len(written) < WRITERS * WRITERS or len(waited_for) < TURNS:
                before = len(written)
                with engine.begin():
                    waited_for.append(len(written) - before)
        finally:
            end.set()
    for each in others:
        each.result()
    assert max(waited_for) <= MOST_BEFORE, waited_for


def test_all_who_wait_give_up_in_time_while_another_program_has_the_lock(engine: Engine) -> None:
    together = Barrier(WRITERS)

    def wait_in_vain() -> float:
        together.wait()
        began = monotonic()
        with pytest.raises(OperationalError, match="locked"), engine.begin():
            pass
        return monotonic() - began

    file = make_url(str(engine.url)).database or ""
    with closing(open_sqlite(file, isolation_level=None)) as locker:
        locker.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(WRITERS) as pool:
            waits = [pool.submit(wait_in_vain) for _ in range(WRITERS)]
        longest = max(each.result() for each in waits)
    # Not one after the other.
    assert longest < WRITERS / 2 * PATIENCE_MS / 1000
