"""The bars and days of the chart of a schedule."""

from datetime import date, timedelta
from itertools import pairwise

import pytest

from domain.paging.on_call.lanes import (
    Lane,
    LaneKind,
    build_day_period,
    build_day_ticks,
    build_lanes,
    choose_colors,
    find_now_offset,
    find_rotation_cycle,
)
from domain.paging.on_call.schedule_plans import (
    Cadence,
    Period,
    Restriction,
    SchedulePlan,
    TurnUnit,
)
from tests.domain.paging.on_call.plans import (
    ALICE,
    BERLIN,
    BOB,
    CAROL,
    DAILY,
    at,
    berlin,
    override,
    plan,
    rotation,
)

WEEK = Period(berlin("2026-11-02"), berlin("2026-11-09"))


def draw(asked: SchedulePlan, period: Period = WEEK) -> dict[str, Lane]:
    lanes = build_lanes(asked, period, gaps_from=period.start)
    return {each.name or each.kind.value: each for each in lanes}


def bars(lane: Lane) -> list[tuple[int | None, str, str]]:
    return [
        (
            each.duty.user_id if each.duty else None,
            f"{each.start.astimezone(BERLIN):%d %H:%M}",
            f"{each.end.astimezone(BERLIN):%d %H:%M}",
        )
        for each in lane.bars
    ]


def test_a_turn_is_one_bar_and_the_time_before_the_first_turn_is_a_gap() -> None:
    lanes = draw(plan(rotation(ALICE, BOB)))
    assert bars(lanes["final"]) == [
        (None, "02 00:00", "02 09:00"),
        (ALICE, "02 09:00", "09 00:00"),
    ]
    assert bars(lanes["Rotation 1"]) == [(ALICE, "02 09:00", "09 00:00")]
    gap, turn = lanes["final"].bars
    assert gap.offset == 0
    assert turn.offset == pytest.approx(9 / 168)
    assert turn.offset + turn.length == pytest.approx(1)


def test_time_before_the_schedule_existed_is_not_drawn_as_a_gap() -> None:
    start = berlin("2026-11-02T08:00")
    (lane,) = build_lanes(plan(), WEEK, gaps_from=start)
    assert [each.start for each in lane.bars] == [start]
    (lane,) = build_lanes(plan(), WEEK, gaps_from=WEEK.end)
    assert (lane.bars, lane.rows) == ((), 1)


def test_overrides_have_a_lane_of_their_own_and_the_rotation_shows_what_they_replace() -> None:
    short = override(CAROL, "2026-11-03T12:00", "2026-11-03T12:20")
    lanes = draw(plan(rotation(ALICE, BOB), overrides=(short,)))
    assert bars(lanes["changes"]) == [(CAROL, "03 12:00", "03 12:20")]
    assert bars(lanes["final"])[1:] == [
        (ALICE, "02 09:00", "03 12:00"),
        (CAROL, "03 12:00", "03 12:20"),
        (ALICE, "03 12:20", "09 00:00"),
    ]
    assert bars(lanes["Rotation 1"]) == [(ALICE, "02 09:00", "09 00:00")]
    assert [each.is_changed for each in lanes["final"].bars] == [False, False, True, False]


def test_users_who_are_on_call_together_are_drawn_below_each_other() -> None:
    both = plan(rotation(ALICE, BOB), rotation(CAROL, id=2, name="Second"))
    final = draw(both)["final"]
    assert final.rows == 2
    assert {each.row for each in final.bars if each.duty} == {0, 1}
    for row in (0, 1):
        ordered = [each for each in final.bars if each.row == row]
        assert all(a.end <= b.start for a, b in pairwise(ordered))


def test_versions_of_a_rotation_share_a_lane_and_a_turn_continues_over_them() -> None:
    change = berlin("2026-11-04T15:00")
    old = rotation(ALICE, BOB, valid_until=change)
    new = rotation(ALICE, BOB, id=7, valid_from=change)
    lanes = draw(plan(old, new))
    assert set(lanes) == {"final", "Rotation 1"}
    assert bars(lanes["Rotation 1"]) == [(ALICE, "02 09:00", "09 00:00")]


def test_the_highest_layer_is_the_first_of_the_rotations() -> None:
    lanes = build_lanes(
        plan(rotation(ALICE), rotation(BOB, id=2, name="Days", layer=2)), WEEK, gaps_from=WEEK.start
    )
    assert [(each.kind, each.layer) for each in lanes] == [
        (LaneKind.FINAL, 0),
        (LaneKind.ROTATION, 2),
        (LaneKind.ROTATION, 1),
    ]


def test_hourly_turns_of_thirty_users_fill_the_lane_without_overlaps() -> None:
    users = range(1, 31)
    hourly = rotation(*users, cadence=Cadence(unit=TurnUnit.HOURS, every=1))
    lane = draw(plan(hourly))["Rotation 1"]
    assert lane.rows == 1
    assert len(lane.bars) == 7 * 24 - 9
    assert {each.duty.user_id for each in lane.bars if each.duty} == set(users)
    assert sum(each.length for each in lane.bars) == pytest.approx(1 - 9 / 168)


def test_too_many_turns_are_merged_and_gaps_are_kept() -> None:
    hourly = rotation(ALICE, BOB, cadence=Cadence(unit=TurnUnit.HOURS, every=1))
    lanes = draw(plan(hourly), Period(berlin("2026-11-02"), berlin("2026-11-16")))
    assert bars(lanes["final"]) == [(None, "02 00:00", "02 09:00")]
    for lane in (lanes["final"], lanes["Rotation 1"]):
        (merged,) = lane.merged
        assert (merged.start, merged.end) == (berlin("2026-11-02T09:00"), berlin("2026-11-16"))
        assert merged.offset + merged.length == pytest.approx(1)
    assert bars(lanes["Rotation 1"]) == []


@pytest.mark.parametrize(
    ("day", "hours"), [("2027-03-28", 23), ("2026-10-25", 25), ("2026-11-02", 24)]
)
def test_a_day_is_as_long_as_it_lasts_when_the_clocks_change(day: str, hours: int) -> None:
    changed = date.fromisoformat(day)
    period = build_day_period(changed - timedelta(days=1), changed, "Europe/Berlin")
    assert period.end - period.start == timedelta(hours=24 + hours)
    before, tick = build_day_ticks(period, "Europe/Berlin")
    assert (before.offset, tick.day) == (0, changed)
    assert tick.length == pytest.approx(hours / (24 + hours))
    lanes = draw(plan(rotation(ALICE, BOB, cadence=DAILY, starts_on=date(2026, 1, 1))), period)
    # The handoff is drawn at nine o'clock on the local clock.
    handoff = max(each.offset for each in lanes["Rotation 1"].bars)
    assert handoff == pytest.approx((24 + hours - 15) / (24 + hours))


def test_long_periods_have_fewer_days_with_labels() -> None:
    year = build_day_period(date(2026, 1, 1), date(2026, 12, 31), "Europe/Berlin")
    ticks = build_day_ticks(year, "Europe/Berlin")
    assert 12 <= len(ticks) <= 14
    assert all(each.skips_days for each in ticks)
    assert sum(each.length for each in ticks) == pytest.approx(1)
    assert not any(each.is_weekend for each in ticks)
    assert len(build_day_ticks(WEEK, "Europe/Berlin")) == 7


def test_the_current_time_is_shown_only_within_the_period() -> None:
    assert find_now_offset(berlin("2026-11-05T12:00"), WEEK) == pytest.approx(0.5)
    assert find_now_offset(WEEK.end, WEEK) is None
    assert find_now_offset(WEEK.start - timedelta(seconds=1), WEEK) is None


def test_colors_differ_as_long_as_there_are_enough() -> None:
    assert choose_colors([9, 4, 9, 7], 10) == {9: 0, 4: 1, 7: 2}
    assert len(set(choose_colors(range(30), 10).values())) == 10


@pytest.mark.parametrize(
    ("cadence", "end"),
    [
        (Cadence(unit=TurnUnit.WEEKS), "2026-11-23T09:00"),
        (Cadence(unit=TurnUnit.WEEKS, weekdays=(0, 3)), "2026-11-12T09:00"),
        (DAILY, "2026-11-06T09:00"),
        (Cadence(unit=TurnUnit.HOURS, every=1), "2026-11-03T15:00"),
    ],
)
def test_a_full_turn_ends_when_each_user_had_a_turn(cadence: Cadence, end: str) -> None:
    edited = rotation(ALICE, BOB, CAROL, cadence=cadence)
    now = berlin("2026-11-03T12:00")
    assert find_rotation_cycle(edited, now) == Period(now, berlin(end))


def test_a_full_turn_of_a_later_rotation_starts_with_its_first_day() -> None:
    later = rotation(ALICE, BOB, cadence=DAILY, starts_on=date(2026, 12, 1))
    expected = Period(berlin("2026-12-01T09:00"), berlin("2026-12-03T09:00"))
    assert find_rotation_cycle(later, berlin("2026-11-03T12:00")) == expected
    weekdays = rotation(
        ALICE, cadence=DAILY, restrictions=(Restriction(start=at(9), end=at(17), weekdays=(0, 1)),)
    )
    found = find_rotation_cycle(weekdays, berlin("2026-11-03T12:00"))
    assert found.end - found.start == timedelta(days=7)
    long = rotation(*range(1, 101), cadence=Cadence(unit=TurnUnit.DAYS, every=366))
    found = find_rotation_cycle(long, berlin("2026-11-03T12:00"))
    assert found.end - found.start == timedelta(days=400)


def test_absences_divide_the_bars_of_the_result_only() -> None:
    absent = {
        ALICE: [Period(berlin("2026-11-02 12:00"), berlin("2026-11-02 18:00"))],
        BOB: [Period(berlin("2026-10-01"), berlin("2026-11-30"))],
    }
    asked = plan(rotation(ALICE, BOB))
    lanes = build_lanes(asked, WEEK, gaps_from=WEEK.start, absences=absent)
    final, turns = lanes[0], lanes[-1]
    assert [(*each, bar.is_absent) for each, bar in zip(bars(final), final.bars, strict=True)][
        1:5
    ] == [
        (ALICE, "02 09:00", "02 12:00", False),
        (ALICE, "02 12:00", "02 18:00", True),
        (ALICE, "02 18:00", "09 00:00", False),
    ]
    assert not any(each.is_absent for each in turns.bars)
