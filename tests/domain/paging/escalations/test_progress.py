"""Order and times of escalation steps, for real and in a dry run."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis.strategies import booleans, integers, lists

from domain.paging.escalations.dry_run import StatusChange, replay, triggered_times
from domain.paging.escalations.steps import (
    LONGEST_UNREACHED,
    Plan,
    Step,
    Target,
    TargetKind,
    after_step,
    after_unreached_round,
    beginning,
    next_due,
    shifted,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def plan(*minutes: int, repeats: int = 0, pause: int = 10) -> Plan:
    targets = (Target(TargetKind.USER, 1),)
    steps = tuple(Step(each * MINUTE, targets) for each in minutes)
    return Plan(steps, repeats=repeats, pause=pause * MINUTE)


def taken(given_plan: Plan, end: int | None = None, *, reached: Sequence[bool] = ()) -> list[float]:
    """Return the minutes at which the steps are taken; `reached` lists whether they page a user."""
    answers = iter(reached)
    during = triggered_times(NOON, [], None if end is None else NOON + end * MINUTE)[0]
    steps = replay(
        given_plan, during, lambda _step, _at: next(answers, True), until=NOON + 10_000 * MINUTE
    )
    return [(each.at - NOON) / MINUTE for each in steps]


def test_delays_count_from_the_beginning_of_a_round() -> None:
    assert taken(plan(0, 5, 5, 15)) == [0, 5, 5, 15]
    assert taken(plan(3)) == [3]


def test_a_round_begins_after_a_pause() -> None:
    assert taken(plan(0, 5, repeats=2)) == [0, 5, 15, 20, 30, 35]
    assert taken(plan(2, repeats=1)) == [2, 14]


def test_no_step_is_taken_after_the_alert_has_ended() -> None:
    assert taken(plan(0, 5, repeats=2), 15) == [0, 5]
    assert taken(plan(1), 1) == []


def test_the_next_step_follows_immediately_if_no_user_was_reached() -> None:
    assert taken(plan(0, 5, 15), reached=[False]) == [0, 0, 10]
    assert taken(plan(0, 5, 15), reached=[True, False]) == [0, 5, 5]
    assert taken(plan(0, 5, repeats=1), reached=[False] * 4) == [0, 0, 10, 10]


def test_a_late_step_moves_those_after_it() -> None:
    given_plan, progress = plan(0, 5, 6), beginning(NOON)
    late = NOON + 60 * MINUTE
    following = after_step(given_plan, progress, now=late)
    assert next_due(given_plan, following) == late + 5 * MINUTE
    # A difference of a second is ignored.
    following = after_step(given_plan, progress, now=NOON + MINUTE / 60)
    assert next_due(given_plan, following) == NOON + 5 * MINUTE


def test_the_time_of_steps_stops_while_an_escalation_is_held() -> None:
    given_plan, progress = plan(0, 5), shifted(beginning(NOON), 30 * MINUTE)
    assert next_due(given_plan, progress) == NOON + 30 * MINUTE


def test_the_pause_after_an_unreached_round_is_at_most_half_an_hour() -> None:
    given_plan, progress = plan(0, pause=60), beginning(NOON)
    pauses = []
    for minutes in (0, 30, 60, 120, 6_000):
        now = NOON + minutes * MINUTE
        following = after_unreached_round(given_plan, progress, started_at=NOON, now=now)
        pauses.append((following.began_at - now) / MINUTE)
    assert pauses == [5, 7.5, 15, 30, 30]
    assert LONGEST_UNREACHED == 30 * MINUTE


@given(
    lists(integers(0, 60), min_size=1, max_size=20).map(sorted),
    integers(0, 9),
    integers(1, 60),
    lists(booleans(), max_size=50),
)
def test_each_step_of_each_round_is_taken_once_and_in_order(
    minutes: list[int], repeats: int, pause: int, reached: list[bool]
) -> None:
    found = taken(plan(*minutes, repeats=repeats, pause=pause), reached=reached)
    assert len(found) == len(minutes) * (repeats + 1)
    assert found == sorted(found)
    latest = (minutes[-1] + pause) * (repeats + 1)
    assert found[-1] <= latest


def at(minutes: int, status: str) -> StatusChange:
    return StatusChange(NOON + minutes * MINUTE, status)


def test_triggered_times_end_with_an_answer_and_start_again() -> None:
    changes = [at(5, "acknowledged"), at(6, "ignored"), at(9, "triggered")]
    found = triggered_times(NOON, changes, NOON + 20 * MINUTE)
    assert [tuple(each) for each in found] == [
        (NOON, NOON + 5 * MINUTE),
        (NOON + 9 * MINUTE, NOON + 20 * MINUTE),
    ]
    assert triggered_times(NOON, [], None) == [(NOON, None)]
    # The sender reported an end before the alert was received.
    assert triggered_times(NOON, [], NOON - MINUTE) == [(NOON, NOON)]
