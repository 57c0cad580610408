"""Tests of the rate limit counters that the web processes of a host share."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter

from tests.support.service.live import ROOT
from web import rate_limit_storage
from web.rate_limit_storage import HostStorage, build_storage_configuration

RATE = parse("2/minute")
NOON = datetime(2026, 1, 1, 12, 0, 45, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(rate_limit_storage, "read_system_clock", made)
    return made


@pytest.fixture
def storage(clock: Clock) -> HostStorage:
    del clock
    made = storage_from_string(build_storage_configuration("memory://")["RATELIMIT_STORAGE_URI"])
    assert isinstance(made, HostStorage)
    return made


def test_a_window_is_aligned_to_the_clock_not_to_the_first_request(
    storage: HostStorage, clock: Clock
) -> None:
    limiter = FixedWindowRateLimiter(storage)
    assert [limiter.hit(RATE, "alice") for _ in range(3)] == [True, True, False]
    assert limiter.hit(RATE, "bob")
    end = NOON.timestamp() + 15
    assert limiter.get_window_stats(RATE, "alice") == (end, 0)
    assert limiter.get_window_stats(RATE, "bob") == (end, 1)

    clock.now += timedelta(seconds=15)

    assert limiter.get_window_stats(RATE, "alice") == (end, 2)
    assert limiter.hit(RATE, "alice")
    assert limiter.get_window_stats(RATE, "alice") == (end + 60, 1)


def test_expired_counters_are_removed(storage: HostStorage, clock: Clock) -> None:
    for number in range(100):
        storage.incr(f"{number}", 60)
    clock.now += timedelta(minutes=2)
    storage.incr("a later one", 60)
    assert storage.reset() == 1


def test_a_full_storage_keeps_the_highest_counters(
    storage: HostStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limit_storage, "_SLOT_COUNT", 64)
    storage.incr("a flood", 60, amount=1_000)
    for number in range(10_000):
        storage.incr(f"visitor {number}", 60)
    assert storage.get("a flood") == 1_000


def run_forked(script: str) -> str:
    """Run a script whose forked processes share `storage`, and return its output."""
    begin = """
import os, time
from web import rate_limit_storage
storage = rate_limit_storage.HostStorage()
"""
    done = subprocess.run(
        [sys.executable, "-c", begin + script],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    return done.stdout.strip()


@pytest.mark.long
def test_forked_processes_share_a_counter() -> None:
    # The processes start together and run long enough to overlap. The lock timeout is long because
    # a busy machine can pause a process during a count.
    script = """
rate_limit_storage._LOCK_TIMEOUT_SECONDS = 30.0
ready, go = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        os.close(go)
        os.read(ready, 1)
        for number in range(3_000):
            storage.incr("alice", 86_400)
            if number % 40 == 0:
                storage.incr(f"visitor {number}", 86_400)
        os._exit(0)
os.close(go)
for _ in range(4):
    os.wait()
print(storage.get("alice"), storage.get("visitor 2960"))
"""
    assert run_forked(script).split() == ["12000", "4"]


@pytest.mark.long
def test_a_process_that_hangs_or_dies_while_counting_does_not_block_others() -> None:
    script = """
import signal
child = os.fork()
if child == 0:
    while not storage._lock_table():
        pass
    time.sleep(600)
while storage._lock_table():
    rate_limit_storage.lockf(storage._lock_file, rate_limit_storage.LOCK_UN)
began = time.monotonic()
print(storage.incr("alice", 86_400), time.monotonic() - began < 5, storage._lock_table())
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
storage._next_lock_at = 0.0
print(storage._lock_table())
"""
    assert run_forked(script).split() == ["1", "True", "False", "True"]


def test_a_count_can_be_removed(storage: HostStorage) -> None:
    storage.incr("a", 60, amount=3)
    storage.incr("b", 60)
    storage.clear("a")
    assert (storage.get("a"), storage.get("b")) == (0, 1)
    assert storage.get_expiry("a") == NOON.timestamp()
    assert storage.check()
