"""Order and times of escalation steps, for real and in a dry run."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis.strategies import booleans, integers, lists

from domain.paging.escalations.policy_steps import (
    MAX_UNREACHED_PAUSE,
    EscalationPlan,
    Step,
    Target,
    TargetKind,
    advance_after_failed_round,
    advance_after_step,
    build_initial_progress,
    find_next_due_time,
    shift_escalation_progress,
)
from domain.paging.escalations.reporting.dry_run import (
    PastStatusChange,
    find_triggered_periods,
    simulate_steps,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def plan(*minutes: int, repeats: int = 0, pause: int = 10) -> EscalationPlan:
    targets = (Target(TargetKind.USER, 1),)
    steps = tuple(Step(each * MINUTE, targets) for each in minutes)
    return EscalationPlan(steps, repeats=repeats, pause=pause * MINUTE)


def taken(
    given_plan: EscalationPlan, end: int | None = None, *, reached: Sequence[bool] = ()
) -> list[float]:
    """Return the minutes at which the steps are taken; `reached` lists whether they page a user."""
    answers = iter(reached)
    during = find_triggered_periods(NOON, [], None if end is None else NOON + end * MINUTE)[0]
    steps = simulate_steps(
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
    given_plan, progress = plan(0, 5, 6), build_initial_progress(NOON)
    late = NOON + 60 * MINUTE
    following = advance_after_step(given_plan, progress, now=late)
    assert find_next_due_time(given_plan, following) == late + 5 * MINUTE
    # A difference of a second is ignored.
    following = advance_after_step(given_plan, progress, now=NOON + MINUTE / 60)
    assert find_next_due_time(given_plan, following) == NOON + 5 * MINUTE


def test_the_time_of_steps_stops_while_an_escalation_is_held() -> None:
    given_plan, progress = (
        plan(0, 5),
        shift_escalation_progress(build_initial_progress(NOON), 30 * MINUTE),
    )
    assert find_next_due_time(given_plan, progress) == NOON + 30 * MINUTE


def test_the_pause_after_an_unreached_round_is_at_most_half_an_hour() -> None:
    given_plan, progress = plan(0, pause=60), build_initial_progress(NOON)
    pauses = []
    for minutes in (0, 30, 60, 120, 6_000):
        now = NOON + minutes * MINUTE
        following = advance_after_failed_round(given_plan, progress, started_at=NOON, now=now)
        pauses.append((following.began_at - now) / MINUTE)
    assert pauses == [5, 7.5, 15, 30, 30]
    assert MAX_UNREACHED_PAUSE == 30 * MINUTE


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


def at(minutes: int, status: str) -> PastStatusChange:
    return PastStatusChange(NOON + minutes * MINUTE, status)


def test_triggered_times_end_with_an_answer_and_start_again() -> None:
    changes = [at(5, "acknowledged"), at(6, "ignored"), at(9, "triggered")]
    found = find_triggered_periods(NOON, changes, NOON + 20 * MINUTE)
    assert [tuple(each) for each in found] == [
        (NOON, NOON + 5 * MINUTE),
        (NOON + 9 * MINUTE, NOON + 20 * MINUTE),
    ]
    assert find_triggered_periods(NOON, [], None) == [(NOON, None)]
    # The sender reported an end before the alert was received.
    assert find_triggered_periods(NOON, [], NOON - MINUTE) == [(NOON, NOON)]
