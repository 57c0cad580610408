"""The counts of rate limits that a process keeps by itself."""

from datetime import UTC, datetime, timedelta

import pytest
from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter

from web import limit_storage
from web.limit_storage import ProcessStorage, storage_configuration

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
    monkeypatch.setattr(limit_storage, "system_clock", made)
    return made


@pytest.fixture
def storage(clock: Clock) -> ProcessStorage:
    del clock
    made = storage_from_string(storage_configuration("memory://")["RATELIMIT_STORAGE_URI"])
    assert isinstance(made, ProcessStorage)
    return made


def test_a_window_ends_with_the_clock_and_not_with_the_first_request(
    storage: ProcessStorage, clock: Clock
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


def test_what_has_expired_is_removed_by_later_requests(
    storage: ProcessStorage, clock: Clock
) -> None:
    for number in range(100):
        storage.incr(f"{number}", 60)
    clock.now += timedelta(minutes=2)
    storage.incr("a later one", 60)
    assert storage.reset() == 1


def test_a_count_can_be_removed(storage: ProcessStorage) -> None:
    storage.incr("a", 60, amount=3)
    storage.incr("b", 60)
    storage.clear("a")
    assert (storage.get("a"), storage.get("b")) == (0, 1)
    assert storage.get_expiry("a") == NOON.timestamp()
    assert storage.check()
