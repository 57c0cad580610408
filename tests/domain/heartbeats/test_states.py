"""States of heartbeats whose pings could not arrive, without a database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.core.hosts import ServerHeartbeats, UnreachablePeriod, find_ended_unreachable_period
from domain.heartbeats.states import (
    AlertAction,
    HeartbeatDecision,
    HeartbeatFacts,
    HeartbeatProblem,
    HeartbeatSchedule,
    HeartbeatState,
    PingKind,
    decide_heartbeat_state,
)
from tests.support.wire.garbage import bounded

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOURLY = HeartbeatFacts(
    schedule=HeartbeatSchedule(every=60 * MINUTE, grace=5 * MINUTE),
    state=HeartbeatState.UP,
    has_alert=False,
    counted_from=NOON,
    started_at=None,
    last_ping_kind=PingKind.SUCCESS,
)


def away(begin: float, end: float | None) -> UnreachablePeriod:
    """Return a time without a receiver, in minutes after noon."""
    ended_at = None if end is None else NOON + end * MINUTE
    return UnreachablePeriod(began_at=NOON + begin * MINUTE, ended_at=ended_at)


def at(
    minutes: float, *unreachable: UnreachablePeriod, facts: HeartbeatFacts = HOURLY
) -> HeartbeatDecision:
    return decide_heartbeat_state(facts, NOON + minutes * MINUTE, unreachable)


def down_since(decision: HeartbeatDecision) -> float | None:
    return None if decision.since is None else (decision.since - NOON) / MINUTE


@pytest.mark.parametrize(
    "unreachable",
    [away(10, 130), away(64, 70), away(59, 61), away(56, 57), away(64.9, 65.1)],
)
def test_a_ping_missed_during_an_interruption_is_due_again_after_it(
    unreachable: UnreachablePeriod,
) -> None:
    decision = at(131, unreachable)
    end = unreachable.ended_at
    assert end is not None
    if end + 65 * MINUTE > NOON + 131 * MINUTE:
        assert (decision.state, decision.action) == (HeartbeatState.UP, AlertAction.NOTHING)
        assert decision.due_at == end + 65 * MINUTE
    else:
        assert decision.since == end + 65 * MINUTE
    assert decision.interruption == unreachable


@pytest.mark.parametrize("unreachable", [away(-60, -1), away(5, 54.9), away(65, 70)])
def test_an_interruption_without_an_expected_ping_is_no_excuse(
    unreachable: UnreachablePeriod,
) -> None:
    decision = at(71, unreachable)
    assert (decision.problem, down_since(decision)) == (HeartbeatProblem.MISSED, 65)
    assert decision.interruption is None


def test_no_ping_is_missed_during_an_interruption() -> None:
    decision = at(70, away(50, None))
    assert (decision.state, decision.interruption) == (HeartbeatState.UP, None)
    assert decision.due_at == NOON + 70 * MINUTE + timedelta(seconds=10)


def test_each_interruption_excuses_its_expected_pings() -> None:
    often = [away(60, 61), away(120, 121), away(180, 181)]
    assert at(182, *often).due_at == NOON + 186 * MINUTE
    assert at(187, *often).due_at == NOON + 246 * MINUTE
    assert down_since(at(247, *often)) == 246


def test_a_run_that_ends_during_an_interruption_is_dropped() -> None:
    running = replace(HOURLY, started_at=NOON + 50 * MINUTE)
    decision = at(60, away(52, 53), facts=running)
    assert (decision.state, decision.due_at) == (HeartbeatState.UP, NOON + 118 * MINUTE)
    assert at(60, away(40, 49), facts=running).problem is HeartbeatProblem.UNFINISHED


def test_a_failure_that_was_reported_is_not_excused() -> None:
    failed = replace(HOURLY, state=HeartbeatState.DOWN, last_ping_kind=PingKind.FAIL)
    assert at(70, away(50, 69), facts=failed).problem is HeartbeatProblem.FAILED


def test_a_cron_schedule_continues_with_the_next_time_after_an_interruption() -> None:
    nightly = replace(HOURLY, schedule=HeartbeatSchedule(cron="30 3 * * *", grace=10 * MINUTE))
    begin, end = 15 * 60, 17 * 60  # From 3:00 to 5:00.
    assert at(end + 1, away(begin, end), facts=nightly).due_at == NOON + (39.5 * 60 + 10) * MINUTE


GAPS = st.lists(st.tuples(st.integers(0, 600), st.integers(1, 200)), max_size=6).map(
    lambda found: sorted((away(begin, begin + length) for begin, length in found), key=_end)
)


def _end(unreachable: UnreachablePeriod) -> datetime:
    assert unreachable.ended_at is not None
    return unreachable.ended_at


@bounded(60)
@given(st.integers(1, 120), st.integers(0, 60), GAPS, st.integers(0, 900))
def test_heartbeats_are_only_down_after_an_interval_with_receivers(
    every: int, grace: int, unreachable: list[UnreachablePeriod], minutes: int
) -> None:
    schedule = HeartbeatSchedule(every=every * MINUTE, grace=grace * MINUTE)
    facts = replace(HOURLY, schedule=schedule)
    past = [each for each in unreachable if _end(each) <= NOON + minutes * MINUTE]
    decision = at(minutes, *past, facts=facts)
    if decision.state is HeartbeatState.DOWN:
        assert decision.since is not None
        begin = decision.since - grace * MINUTE
        assert not any(each.began_at < decision.since and _end(each) > begin for each in past)
    else:
        latest = max([NOON, *map(_end, past)])
        assert decision.due_at is not None
        assert NOON + minutes * MINUTE < decision.due_at <= latest + (every + grace) * MINUTE
    # The excuse ends: an interval and a grace time after the last interruption, it is down.
    end = max([NOON, *map(_end, unreachable)]) + (every + grace) * MINUTE
    assert decide_heartbeat_state(facts, end, unreachable).state is HeartbeatState.DOWN


def test_an_interruption_ends_with_the_next_mark() -> None:
    hour = timedelta(hours=1)
    assert find_ended_unreachable_period(ServerHeartbeats(own=None), NOON) is None
    assert (
        find_ended_unreachable_period(ServerHeartbeats(own=NOON - 10 * timedelta(seconds=1)), NOON)
        is None
    )
    assert find_ended_unreachable_period(ServerHeartbeats(own=NOON - hour), NOON) == away(-60, 0)
    # Another server received all the time, or for the last part of it.
    assert (
        find_ended_unreachable_period(ServerHeartbeats(own=NOON - hour, others=[NOON]), NOON)
        is None
    )
    others = [NOON - hour / 2, NOON - 2 * hour]
    assert find_ended_unreachable_period(
        ServerHeartbeats(own=NOON - hour, others=others), NOON
    ) == away(-30, 0)


def test_a_short_restart_is_an_interruption() -> None:
    last, began = NOON - timedelta(seconds=6), NOON - timedelta(seconds=1)
    assert find_ended_unreachable_period(ServerHeartbeats(own=last, began_at=began), NOON) == away(
        -0.1, 0
    )
    # Another process of the same server has already set a mark.
    assert find_ended_unreachable_period(ServerHeartbeats(own=began, began_at=began), NOON) is None
    assert (
        find_ended_unreachable_period(
            ServerHeartbeats(own=last, others=[last], began_at=began), NOON
        )
        is None
    )


@bounded(60)
@given(
    st.none() | st.integers(-200, 200),
    st.lists(st.integers(-200, 200), max_size=3),
    st.none() | st.integers(-200, 200),
)
def test_marks_of_a_wrong_clock_cause_no_interruption(
    own: int | None, others: list[int], began: int | None
) -> None:
    def moment(seconds: int | None) -> datetime | None:
        return None if seconds is None else NOON + timedelta(seconds=seconds)

    found = [each for each in map(moment, others) if each is not None]
    over = find_ended_unreachable_period(
        ServerHeartbeats(own=moment(own), others=found, began_at=moment(began)), NOON
    )
    if over is not None:
        assert over.ended_at == NOON
        assert over.began_at < NOON
        assert not any(each > over.began_at for each in found)
    if any(each > NOON for each in found):
        assert over is None
