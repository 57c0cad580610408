"""Tests of the queue of SQLite writers: their order, and the time until they give up."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from sqlite3 import connect as open_sqlite
from threading import Barrier
from time import monotonic

import pytest
from sqlalchemy import Engine, literal, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from tests.support.service.live import ROOT
from web.database.autocommit_pool import AutocommitPool
from web.database.engine import open_autocommit_engine, open_engine
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")

WRITERS, TURNS = 4, 60
#: Writers that came before, and on a busy machine writers that start before this one has queued.
#: Without a queue, some turns wait for many times this number.
MOST_BEFORE = 10 * WRITERS
COUNT = text("SELECT n FROM numbers")
#: Another process that writes in a loop, with transactions long enough for others to wake up.
GO_ON = """
import sys, time
from web.database.sqlite import DeadlineSqliteConnection
connection = DeadlineSqliteConnection(sys.argv[1], isolation_level=None)
while True:
    connection.cursor().execute("BEGIN IMMEDIATE")
    connection.cursor().execute("UPDATE numbers SET n = n + 1")
    time.sleep(0.003)
    connection.cursor().execute("COMMIT")
"""
PATIENCE_MS = 300


@pytest.fixture
def hasty(settings: Settings) -> Settings:
    return replace(settings, sqlite_busy_timeout_ms=PATIENCE_MS, database_pool_size=WRITERS + 1)


@pytest.fixture
def engine(hasty: Settings) -> Iterator[Engine]:
    opened = open_engine(hasty)
    with opened.begin() as connection:
        connection.execute(text("CREATE TABLE numbers (n INTEGER)"))
        connection.execute(text("INSERT INTO numbers VALUES (0)"))
    yield opened
    opened.dispose()


def test_a_writer_waits_only_for_earlier_writers(engine: Engine) -> None:
    file = make_url(str(engine.url)).database or ""
    command = [sys.executable, "-c", GO_ON, file]
    others = [subprocess.Popen(command, cwd=ROOT) for _ in range(WRITERS)]
    reading = engine.execution_options(begin_mode="DEFERRED")
    waited_for: list[int] = []
    try:
        while (before := count(reading)) < WRITERS * WRITERS or len(waited_for) < TURNS:
            with engine.begin() as connection:
                if before >= WRITERS * WRITERS:  # All writers have started.
                    waited_for.append(connection.execute(COUNT).scalar_one() - before)
    finally:
        for each in others:
            each.kill()
            each.wait()
    assert max(waited_for) <= MOST_BEFORE, waited_for


def count(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(COUNT).scalar_one())


def test_all_waiting_writers_give_up_in_time_while_the_database_is_locked(engine: Engine) -> None:
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
    # The writers do not give up one after the other.
    assert longest < WRITERS / 2 * PATIENCE_MS / 1000


def test_the_lock_holder_can_read_while_all_writer_connections_wait(
    engine: Engine, hasty: Settings
) -> None:
    connections = AutocommitPool(open_autocommit_engine(hasty), size=1, timeout_seconds=0.05)
    with engine.begin(), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(connections.run_transaction, lambda: None)
        while not waiting.done():
            assert connections.execute_statement(select(literal(1)))
    with pytest.raises(OperationalError, match="locked"):
        waiting.result()
    connections.close_idle_connections()
