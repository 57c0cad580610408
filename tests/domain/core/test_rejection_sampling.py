from datetime import UTC, datetime, timedelta

from domain.core.rejected_request_sampling import RejectedRequestSampler

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WRONG_KEY, NO_JSON = (7, 401), (7, 415)


def refuse(
    sampler: RejectedRequestSampler[tuple[int, int]],
    times: int,
    *,
    now: datetime = NOON,
    kind: tuple[int, int] = WRONG_KEY,
) -> int:
    """Reject deliveries with a limit of two rows per minute; return the number of rows."""
    return sum(sampler.should_store(kind, now=now, per_minute=2) for _ in range(times))


def test_some_of_each_kind_are_kept_each_minute() -> None:
    sampler = RejectedRequestSampler[tuple[int, int]]()
    assert refuse(sampler, 100) == 2
    assert refuse(sampler, 100, kind=NO_JSON) == 2
    assert refuse(sampler, 1, kind=(8, 401)) == 1
    assert refuse(sampler, 100, now=NOON + timedelta(seconds=59)) == 0
    assert refuse(sampler, 100, now=NOON + timedelta(minutes=1)) == 2


def test_the_last_row_of_a_kind_counts_the_others() -> None:
    sampler = RejectedRequestSampler[tuple[int, int]]()
    refuse(sampler, 2)
    assert sampler.set_counter_row(WRONG_KEY, 70) == []
    assert sampler.set_counter_row(WRONG_KEY, 71) == []
    refuse(sampler, 5)
    assert sampler.pop_due_counts(now=NOON) == [(71, 5)]
    assert sampler.pop_due_counts(now=NOON + timedelta(seconds=5)) == []


def test_the_count_is_updated_at_most_once_per_second() -> None:
    sampler = RejectedRequestSampler[tuple[int, int]]()
    refuse(sampler, 3)
    sampler.set_counter_row(WRONG_KEY, 70)
    assert sampler.pop_due_counts(now=NOON) == [(70, 1)]
    refuse(sampler, 4)
    assert sampler.pop_due_counts(now=NOON + timedelta(seconds=0.9)) == []
    assert sampler.pop_due_counts(now=NOON + timedelta(seconds=1)) == [(70, 4)]


def test_a_new_row_does_not_take_over_the_count_of_the_previous_one() -> None:
    sampler = RejectedRequestSampler[tuple[int, int]]()
    refuse(sampler, 1)
    sampler.set_counter_row(WRONG_KEY, 70)
    refuse(sampler, 4)
    assert refuse(sampler, 1, now=NOON + timedelta(minutes=1)) == 1
    assert sampler.set_counter_row(WRONG_KEY, 71) == [(70, 3)]


def test_nothing_is_counted_without_a_row() -> None:
    sampler = RejectedRequestSampler[tuple[int, int]]()
    assert not sampler.should_store(WRONG_KEY, now=NOON, per_minute=0)
    assert sampler.pop_due_counts(now=NOON) == []


def test_past_kinds_are_dropped_if_there_are_too_many() -> None:
    sampler = RejectedRequestSampler[tuple[int, int]]()
    for number in range(10_000):
        refuse(sampler, 1, kind=(number, 401))
    refuse(sampler, 3, kind=(0, 401))
    later = NOON + timedelta(minutes=1)
    assert refuse(sampler, 1, now=later, kind=(10_000, 401)) == 1
    assert len(sampler._tallies) == 2  # noqa: SLF001 - what is kept in memory
    assert sampler.set_counter_row((0, 401), 70) == []
    assert sampler.pop_due_counts(now=later) == [(70, 2)]
