"""Tests that SQLite's write-ahead log is truncated as soon as no reader prevents it."""

import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import pytest

from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell
from web.database.sqlite import KEPT_WAL_BYTES, MAX_WAL_BYTES, get_wal_bytes, truncate_wal

_SECONDS = 60
_LARGE = "x" * 200_000


def file_of(live: LiveGatebell) -> Path:
    return Path(live.database_url.removeprefix("sqlite:///"))


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Read for the duration of the block, so that the log cannot be restarted."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM users").fetchall()
        yield


@pytest.mark.long
def test_a_long_log_is_truncated_when_no_reader_prevents_it(start: Start) -> None:
    live = start("sqlite")
    endpoint, file = connect(live), file_of(live)
    with reading(file), closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA busy_timeout = 60000")
        writer.execute("CREATE TABLE large (bytes)")
        while get_wal_bytes(file) <= 2 * MAX_WAL_BYTES:
            writer.execute("INSERT INTO large VALUES (?)", (bytes(2**20),))
        assert endpoint.send(title="large", more=_LARGE).status_code == 200
    deadline = monotonic() + _SECONDS
    while get_wal_bytes(file) > MAX_WAL_BYTES:
        assert monotonic() < deadline, get_wal_bytes(file)
        sleep(0.2)
    assert endpoint.send(title="after").status_code == 200


def measure_hindered_truncation(file: Path) -> float:
    began = monotonic()
    assert not truncate_wal(file)
    return monotonic() - began


def test_truncation_does_not_wait_for_readers(tmp_path: Path) -> None:
    file = tmp_path / "some.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE users (name)")
        assert not truncate_wal(file)
        connection.execute("INSERT INTO users VALUES (?)", (bytes(MAX_WAL_BYTES),))
        with reading(file):
            connection.execute("INSERT INTO users VALUES (?)", ("later",))
            # While a reader hinders the truncation of a short log, writers hardly wait.
            assert min(measure_hindered_truncation(file) for _ in range(5)) < 0.2
        assert truncate_wal(file)
        assert get_wal_bytes(file) == 0
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (2,)


@pytest.mark.faults_full
@pytest.mark.fault("eight other clients send bodies of 200 kB for 60 s")
def test_concurrent_senders_do_not_make_the_log_grow(start: Start) -> None:
    live = start("sqlite", WEB_CONCURRENCY="3")
    endpoint, file, end = connect(live), file_of(live), Event()
    with ThreadPoolExecutor(8) as senders, load_on(endpoint) as answers:
        for name in range(8):
            senders.submit(_send_large, endpoint, name, end)
        longest, until = 0, monotonic() + 60
        while monotonic() < until:
            longest = max(longest, get_wal_bytes(file))
            sleep(0.05)
        end.set()
    account = assert_nothing_was_lost(live, endpoint, answers)
    sys.stdout.write(f"the longest log had {longest / 2**20:.0f} MB\n")
    assert set(account.answered) <= {200, 503}
    assert longest < 8 * KEPT_WAL_BYTES


def _send_large(endpoint: Endpoint, name: int, end: Event) -> None:
    number = 0
    while not end.is_set():
        number += 1
        endpoint.send(title=f"large {name} {number}", more=_LARGE)
