"""Durations in the format of commands."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis.strategies import integers, text

from domain.core.durations import format_duration, parse_duration
from domain.core.errors import InvalidError


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0s", timedelta()),
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        (" 2d ", timedelta(days=2)),
        ("1w2d3h4m5s", timedelta(weeks=1, days=2, hours=3, minutes=4, seconds=5)),
        ("90m", timedelta(minutes=90)),
    ],
)
def test_a_duration_is_parsed(written: str, meant: timedelta) -> None:
    assert parse_duration(written) == meant


@pytest.mark.parametrize(
    "written", ["", " ", "5", "m", "-5m", "5 m", "5m1h", "5min", "1.5h", "\u0665m", "9" * 10 + "s"]
)
def test_other_texts_are_rejected_with_an_example(written: str) -> None:
    with pytest.raises(InvalidError, match="Use 30s, 5m, 1h30m or 2d") as refused:
        parse_duration(written, field="every")
    assert refused.value.field == "every"


def test_durations_beyond_the_calendar_are_too_long() -> None:
    with pytest.raises(InvalidError, match="too long"):
        parse_duration("999999999w")


@given(integers(min_value=0, max_value=10**9))
def test_a_formatted_duration_is_parsed_to_the_same_duration(seconds: int) -> None:
    length = timedelta(seconds=seconds)
    assert parse_duration(format_duration(length)) == length


@pytest.mark.long
@given(text())
def test_any_text_is_parsed_or_rejected(written: str) -> None:
    with suppress(InvalidError):
        assert parse_duration(written) >= timedelta()
