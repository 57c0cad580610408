"""Rotations in the format of commands."""

from contextlib import suppress
from datetime import date, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.core.errors import InvalidError
from domain.paging.on_call.rotation_syntax import format_cadence, format_restriction
from domain.paging.on_call.schedule_plans import EVERY_DAY, Cadence, Restriction, TurnUnit
from domain.paging.on_call.types import NewRotation

WORKDAYS = (0, 1, 2, 3, 4)


def read(text: str) -> NewRotation:
    """Return the rotation of a text, which a request body may contain."""
    return NewRotation.model_validate(text)


@pytest.mark.parametrize(
    ("text", "cadence", "words"),
    [
        ("weekly a,b mon 09:00", Cadence(unit=TurnUnit.WEEKS), "every week on Mon at 09:00"),
        ("weekly a,b", Cadence(unit=TurnUnit.WEEKS), "every week on Mon at 09:00"),
        (
            "Weekly a Mon,Thursday 17:30",
            Cadence(unit=TurnUnit.WEEKS, weekdays=(0, 3), at=time(17, 30)),
            "every week on Mon, Thu at 17:30",
        ),
        ("daily a 08:00", Cadence(unit=TurnUnit.DAYS, at=time(8)), "every day at 08:00"),
        ("every 3d a", Cadence(unit=TurnUnit.DAYS, every=3), "every 3 days at 09:00"),
        (
            "every 2w a sat-mon",
            Cadence(unit=TurnUnit.WEEKS, every=2, weekdays=(0, 5, 6)),
            "every 2 weeks on Mon, Sat, Sun at 09:00",
        ),
        (
            "every 12h a 08:00",
            Cadence(unit=TurnUnit.HOURS, every=12, at=time(8)),
            "every 12 hours, counted from 08:00",
        ),
    ],
)
def test_a_rotation_is_parsed_and_described_in_words(
    text: str, cadence: Cadence, words: str
) -> None:
    assert read(text).cadence == cadence
    assert format_cadence(cadence) == words


def test_first_day_layer_and_restrictions_are_parsed() -> None:
    found = read(
        "daily alice,bob 09:00 from 2026-11-30 layer 2 only mon-fri 09:00-17:00 only 22:00-24:00"
    )
    assert (found.users, found.starts_on, found.layer) == (
        *(("alice", "bob"), date(2026, 11, 30)),
        2,
    )
    restrictions = tuple(each.restriction for each in found.restrictions)
    assert restrictions == (
        Restriction(start=time(9), end=time(17), weekdays=WORKDAYS),
        Restriction(start=time(22), end=time(0), weekdays=EVERY_DAY),
    )
    assert [format_restriction(each) for each in restrictions] == [
        "Mon, Tue, Wed, Thu, Fri 09:00 to 17:00",
        "every day 22:00 to 00:00",
    ]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "mon-fri 09:00-17:00",
            "Mon-Fri 9-17",
            "weekdays 09:00\u201317:00",
            "Mon \u2013 Fri, 9 to 17",
        ),
        *("workdays 9am-5pm", "Monday - Friday 9:00 until 5 pm", "mon,tue, wed,thurs,Fridays 9-17"),
    ],
)
def test_a_restriction_is_parsed_in_any_spelling(text: str) -> None:
    (found,) = read(f"weekly a,b Mondays 9 only {text} layer 2").restrictions
    assert found.restriction == Restriction(start=time(9), end=time(17), weekdays=WORKDAYS)


@pytest.mark.parametrize(
    "text",
    [
        *("", "weekly", "monthly a", "every a", "every 3y a", "daily , 09:00", "daily a mon"),
        *("daily a 25:00", "daily a 24:30", "daily a from", "daily a from soon", "daily a layer x"),
        *("daily a only", "daily a only mon", "daily a only 9-25", "weekly a someday", "daily a !"),
    ],
)
def test_other_texts_are_rejected_with_an_example(text: str) -> None:
    with pytest.raises(InvalidError, match="weekly alice,bob mon 09:00"):
        read(text)


WORDS = ("daily", "every", "2w", "a", "mon", "09:00", "only", "from", "layer", "-", ",")


@pytest.mark.long
@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    with suppress(InvalidError):
        read(text)
