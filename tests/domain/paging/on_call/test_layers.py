"""Precedence of layers, overrides and swaps, and effects of gaps and former members."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from domain.paging.on_call.final_schedule import DutySource, compute_spans
from domain.paging.on_call.schedule_plans import (
    Cadence,
    Override,
    Period,
    Restriction,
    SchedulePlan,
    Swap,
    TurnUnit,
    UserPeriod,
)
from tests.domain.paging.on_call.plans import (
    ALICE,
    BOB,
    CAROL,
    DAILY,
    LONG_AGO,
    MONDAY,
    at,
    berlin,
    local_spans,
    override,
    plan,
    rotation,
    swap,
)
from tests.support.wire.garbage import bounded

NIGHTS = (Restriction(start=at(22), end=at(6)),)
WEEKEND = (Restriction(start=at(0), end=at(0), weekdays=(5, 6)),)


def test_a_higher_layer_takes_precedence_if_it_has_a_user() -> None:
    asked = plan(
        rotation(ALICE, BOB), rotation(CAROL, id=2, layer=2, cadence=DAILY, restrictions=NIGHTS)
    )
    assert local_spans(asked, "2026-11-02 12:00", "2026-11-03 12:00") == [
        ("Mon 02 12:00", "Mon 02 22:00", [ALICE]),
        ("Mon 02 22:00", "Tue 03 06:00", [CAROL]),
        ("Tue 03 06:00", "Tue 03 12:00", [ALICE]),
    ]


def test_rotations_of_one_layer_are_on_call_together() -> None:
    asked = plan(rotation(ALICE), rotation(BOB, CAROL, id=2, cadence=DAILY))
    assert local_spans(asked, "2026-11-02 12:00", "2026-11-04 09:00") == [
        ("Mon 02 12:00", "Tue 03 09:00", [ALICE, BOB]),
        ("Tue 03 09:00", "Wed 04 09:00", [ALICE, CAROL]),
    ]


def test_no_user_is_on_call_before_the_first_day_and_outside_of_restrictions() -> None:
    asked = plan(rotation(ALICE, BOB, restrictions=WEEKEND))
    assert local_spans(asked, "2026-10-31 00:00", "2026-11-09 00:00") == [
        ("Sat 31 00:00", "Sat 07 00:00", []),
        ("Sat 07 00:00", "Mon 09 00:00", [ALICE]),
    ]


def test_the_latest_override_takes_precedence() -> None:
    asked = plan(
        rotation(ALICE),
        overrides=(
            override(BOB, "2026-11-03 10:00", "2026-11-03 20:00", number=1),
            override(CAROL, "2026-11-03 12:00", "2026-11-03 14:00", number=2),
        ),
        swaps=(
            swap(
                (ALICE, "2026-11-03 00:00", "2026-11-04 00:00"),
                (CAROL, "2026-12-03 00:00", "2026-12-04 00:00"),
            ),
        ),
    )
    assert local_spans(asked, "2026-11-02 12:00", "2026-11-04 12:00") == [
        ("Mon 02 12:00", "Tue 03 00:00", [ALICE]),
        ("Tue 03 00:00", "Tue 03 10:00", [CAROL]),  # This is the effect of the swap.
        ("Tue 03 10:00", "Tue 03 12:00", [BOB]),
        ("Tue 03 12:00", "Tue 03 14:00", [CAROL]),
        ("Tue 03 14:00", "Tue 03 20:00", [BOB]),
        ("Tue 03 20:00", "Wed 04 00:00", [CAROL]),
        ("Wed 04 00:00", "Wed 04 12:00", [ALICE]),
    ]


def test_a_swapped_shift_can_be_swapped_again() -> None:
    asked = plan(
        rotation(ALICE, BOB, CAROL, cadence=DAILY),
        swaps=(
            swap(
                (ALICE, "2026-11-02 09:00", "2026-11-03 09:00"),
                (BOB, "2026-11-03 09:00", "2026-11-04 09:00"),
                number=1,
            ),
            swap(
                (BOB, "2026-11-02 09:00", "2026-11-03 09:00"),
                (CAROL, "2026-11-04 09:00", "2026-11-05 09:00"),
                number=2,
            ),
        ),
    )
    assert local_spans(asked, "2026-11-02 09:00", "2026-11-05 09:00") == [
        ("Mon 02 09:00", "Tue 03 09:00", [CAROL]),
        ("Tue 03 09:00", "Wed 04 09:00", [ALICE]),
        ("Wed 04 09:00", "Thu 05 09:00", [BOB]),
    ]


def test_former_members_are_skipped_from_that_day_on() -> None:
    left = {ALICE: (Period(LONG_AGO, datetime(2026, 11, 3, tzinfo=UTC)),)}
    below = plan(rotation(BOB), rotation(ALICE, id=2, layer=2), eligible_periods=left)
    assert local_spans(below, "2026-11-02 12:00", "2026-11-04 12:00") == [
        ("Mon 02 12:00", "Tue 03 01:00", [ALICE]),
        ("Tue 03 01:00", "Wed 04 12:00", [BOB]),
    ]
    alone = replace(below, rotations=below.rotations[1:])
    assert local_spans(alone, "2026-11-02 12:00", "2026-11-04 12:00")[1][2] == []
    # An override for a former member has no effect.
    kept = replace(below, overrides=(override(ALICE, "2026-11-02 12:00", "2026-11-04 12:00"),))
    assert local_spans(kept, "2026-11-02 12:00", "2026-11-04 12:00")[1][2] == [BOB]


def test_a_rotation_applies_only_while_it_is_valid() -> None:
    change = berlin("2026-11-03 12:00")
    asked = plan(rotation(ALICE, valid_until=change), rotation(BOB, id=2, valid_from=change))
    assert local_spans(asked, "2026-11-02 12:00", "2026-11-04 12:00") == [
        ("Mon 02 12:00", "Tue 03 12:00", [ALICE]),
        ("Tue 03 12:00", "Wed 04 12:00", [BOB]),
    ]


def test_a_restriction_ends_in_local_time_when_clocks_change() -> None:
    asked = plan(
        rotation(
            ALICE,
            starts_on=MONDAY.replace(month=1),
            restrictions=(Restriction(start=at(22), end=at(2, 30)),),
        )
    )
    # In October it ends at the first 02:30, in March at 03:30.
    assert local_spans(asked, "2026-10-24 12:00", "2026-10-25 12:00")[1] == (
        "Sat 24 22:00",
        "Sun 25 02:30",
        [ALICE],
    )
    october = compute_spans(asked, berlin("2026-10-24 22:00"), berlin("2026-10-25 12:00"))[0]
    assert october.end == berlin("2026-10-25 02:30", fold=0)
    assert local_spans(asked, "2027-03-27 12:00", "2027-03-28 12:00")[1] == (
        "Sat 27 22:00",
        "Sun 28 03:30",
        [ALICE],
    )


def test_the_end_of_a_century_of_hourly_turns_is_computed_quickly() -> None:
    hourly = Cadence(unit=TurnUnit.HOURS, every=1)
    early = MONDAY.replace(year=2001, day=1)
    asked = plan(rotation(ALICE, BOB, cadence=hourly, starts_on=early))
    found = compute_spans(asked, berlin("2099-06-01 12:00"), berlin("2099-06-01 14:00"))
    assert len(found) == 2


moments = st.integers(0, 60 * 24 * 14).map(
    lambda minutes: datetime(2026, 10, 19, tzinfo=UTC) + timedelta(minutes=minutes)
)
people = st.integers(1, 4)
periods = st.tuples(moments, moments).map(
    lambda both: Period(min(both), max(both) + timedelta(minutes=1))
)
stints = st.builds(UserPeriod, user_id=people, during=periods)
rotations = st.builds(
    rotation,
    st.just(ALICE),
    people,
    people,
    id=st.integers(1, 9),
    layer=st.integers(1, 3),
    cadence=st.sampled_from((DAILY, Cadence(unit=TurnUnit.HOURS, every=7))),
    restrictions=st.sampled_from(((), NIGHTS, WEEKEND)),
    starts_on=st.just(MONDAY.replace(month=10)),
)
plans = st.builds(
    SchedulePlan,
    schedule_id=st.just(1),
    rotations=st.lists(rotations, max_size=4).map(tuple),
    overrides=st.lists(
        st.builds(Override, id=st.integers(1, 9), user_id=people, during=periods), max_size=3
    ).map(tuple),
    swaps=st.lists(
        st.builds(Swap, id=st.integers(1, 9), first=stints, second=stints), max_size=3
    ).map(tuple),
    eligible_periods=st.dictionaries(people, st.lists(periods, max_size=2).map(tuple), max_size=2),
)


@bounded(40)
@given(asked=plans, start=moments, length=st.integers(1, 14 * 24), cut=st.integers(0, 100))
def test_parts_of_a_period_match_the_whole_period(
    asked: SchedulePlan, start: datetime, length: int, cut: int
) -> None:
    end = start + timedelta(hours=length)
    whole = compute_spans(asked, start, end)
    assert (whole[0].start, whole[-1].end) == (start, end)
    assert all(one.end == other.start for one, other in pairwise(whole))
    assert all(one.duties != other.duties for one, other in pairwise(whole))
    middle = start + (end - start) * cut / 100
    for span in (*compute_spans(asked, start, middle), *compute_spans(asked, middle, end)):
        around = [each for each in whole if each.start <= span.start and span.end <= each.end]
        assert [each.duties for each in around] == [span.duties]
    for span in whole:
        users = list(span.user_ids)
        assert len(users) == len(set(users))
        assert all(asked.can_be_on_call(user_id, span.start) for user_id in users)
        present = [
            each
            for each in asked.overrides
            if each.during.start <= span.start < each.during.end
            and asked.can_be_on_call(each.user_id, span.start)
        ]
        if present:
            assert users == [present[-1].user_id]
            assert span.duties[0].source is DutySource.OVERRIDE


def test_an_override_of_one_user_keeps_the_other_users_on_call() -> None:
    pair = (rotation(ALICE), rotation(BOB, id=2))
    cover = replace(override(CAROL, "2026-11-03 09:00", "2026-11-04 09:00"), instead_of_id=ALICE)
    alone = override(BOB, "2026-11-03 12:00", "2026-11-03 15:00", number=2)
    again = replace(
        override(ALICE, "2026-11-03 18:00", "2026-11-03 20:00", number=3), instead_of_id=CAROL
    )
    both = replace(
        override(BOB, "2026-11-03 21:00", "2026-11-03 22:00", number=4), instead_of_id=CAROL
    )
    asked = plan(*pair, overrides=(cover, alone, again, both))
    assert local_spans(asked, "2026-11-03 09:00", "2026-11-04 10:00") == [
        ("Tue 03 09:00", "Tue 03 12:00", [BOB, CAROL]),
        ("Tue 03 12:00", "Tue 03 15:00", [BOB]),
        ("Tue 03 15:00", "Tue 03 18:00", [BOB, CAROL]),
        ("Tue 03 18:00", "Tue 03 20:00", [ALICE, BOB]),
        ("Tue 03 20:00", "Tue 03 21:00", [BOB, CAROL]),
        ("Tue 03 21:00", "Tue 03 22:00", [BOB]),
        ("Tue 03 22:00", "Wed 04 09:00", [BOB, CAROL]),
        ("Wed 04 09:00", "Wed 04 10:00", [ALICE, BOB]),
    ]
    # A user in addition takes no shifts of others, even without other users on call.
    more = replace(override(CAROL, "2026-11-03 12:00", "2026-11-03 18:00"), in_addition=True)
    more_asked = plan(rotation(ALICE), overrides=(more, alone))
    assert local_spans(more_asked, "2026-11-03 09:00", "2026-11-03 20:00") == [
        ("Tue 03 09:00", "Tue 03 12:00", [ALICE]),
        ("Tue 03 12:00", "Tue 03 15:00", [BOB]),
        ("Tue 03 15:00", "Tue 03 18:00", [ALICE, CAROL]),
        ("Tue 03 18:00", "Tue 03 20:00", [ALICE]),
    ]
    lonely = plan(overrides=(more,))
    assert local_spans(lonely, "2026-11-03 09:00", "2026-11-03 13:00") == [
        ("Tue 03 09:00", "Tue 03 12:00", []),
        ("Tue 03 12:00", "Tue 03 13:00", [CAROL]),
    ]
    # A cover by a former member has no effect.
    left = replace(
        asked,
        overrides=(cover,),
        eligible_periods={CAROL: (Period(LONG_AGO, berlin("2026-11-03 12:00")),)},
    )
    assert local_spans(left, "2026-11-03 09:00", "2026-11-03 15:00") == [
        ("Tue 03 09:00", "Tue 03 12:00", [BOB, CAROL]),
        ("Tue 03 12:00", "Tue 03 15:00", [ALICE, BOB]),
    ]
