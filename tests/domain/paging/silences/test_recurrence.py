"""Recurrence of maintenance windows, compared with a calendar day by day."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import islice, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.core.errors import InvalidError
from domain.paging.maintenance_windows.recurrence import (
    Frequency,
    Recurrence,
    format_recurrence,
    parse_recurrence_rule,
)
from tests.support.wire.garbage import bounded

DAY = timedelta(days=1)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FIRST = datetime(2026, 1, 31, 2, 30)  # noqa: DTZ001 - local times


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=DAILY", "every day"),
        ("FREQ=DAILY;INTERVAL=3;UNTIL=20261231", "every 3 days, until 2026-12-31"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,SU", "every 2 weeks on Saturday and Sunday"),
        ("FREQ=MONTHLY;BYDAY=2TU,-1SU", "every month on the second Tuesday and the last Sunday"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,15,-1", "every month on day 1, day 15 and the last day"),
    ],
)
def test_a_rule_is_described_in_words(rule: str, words: str) -> None:
    assert format_recurrence(parse_recurrence_rule(rule)) == words


def is_due(rule: Recurrence, first: date, day: date) -> bool:
    """Return whether a rule has an occurrence on a day, according to the calendar."""
    if day < first or (rule.until and day > rule.until):
        return False
    match rule.frequency:
        case Frequency.DAILY:
            return (day - first).days % rule.interval == 0
        case Frequency.WEEKLY:
            monday, began = day - day.weekday() * DAY, first - first.weekday() * DAY
            weeks = (monday - began).days // 7
            days = rule.by_day or (WEEKDAYS[first.weekday()],)
            return weeks % rule.interval == 0 and WEEKDAYS[day.weekday()] in days
    months = (day.year - first.year) * 12 + day.month - first.month
    return months % rule.interval == 0 and is_in_month(rule, first, day)


def is_in_month(rule: Recurrence, first: date, day: date) -> bool:
    length = monthrange(day.year, day.month)[1]
    if rule.by_day:
        name = WEEKDAYS[day.weekday()]
        from_begin, from_end = (day.day - 1) // 7 + 1, -((length - day.day) // 7 + 1)
        return f"{from_begin}{name}" in rule.by_day or f"{from_end}{name}" in rule.by_day
    return bool({day.day, day.day - length - 1} & set(rule.by_month_day or (first.day,)))


def by_calendar(rule: Recurrence, first: datetime, since: date, days: int) -> Iterator[datetime]:
    for day in (since + count * DAY for count in range(days)):
        if is_due(rule, first.date(), day):
            yield datetime.combine(day, first.time())


INTERVALS = st.integers(1, 13)
UNTILS = st.none() | st.dates(date(2026, 3, 1), date(2029, 1, 1))
NUMBERED = st.builds(
    "{}{}".format, st.sampled_from([1, 2, 3, 4, -1, -2]), st.sampled_from(WEEKDAYS)
)
RULES = st.one_of(
    st.builds(Recurrence, frequency=st.just(Frequency.DAILY), interval=INTERVALS, until=UNTILS),
    st.builds(
        Recurrence,
        frequency=st.just(Frequency.WEEKLY),
        interval=INTERVALS,
        by_day=st.lists(st.sampled_from(WEEKDAYS), max_size=3, unique=True).map(tuple),
        until=UNTILS,
    ),
    st.builds(
        Recurrence,
        frequency=st.just(Frequency.MONTHLY),
        interval=INTERVALS,
        by_month_day=st.lists(
            st.integers(1, 31) | st.integers(-31, -1), max_size=2, unique=True
        ).map(tuple),
        until=UNTILS,
    ),
    st.builds(
        Recurrence,
        frequency=st.just(Frequency.MONTHLY),
        interval=INTERVALS,
        by_day=st.lists(NUMBERED, min_size=1, max_size=2, unique=True).map(tuple),
        until=UNTILS,
    ),
)
FIRSTS = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(  # noqa: DTZ001
    lambda moment: moment.replace(second=0, microsecond=0)
)


@bounded(40)
@given(rule=RULES, first=FIRSTS, later=st.integers(0, 900))
def test_a_rule_has_the_days_of_the_calendar(rule: Recurrence, first: datetime, later: int) -> None:
    since = first + later * DAY
    end = since + 400 * DAY
    found = takewhile(lambda start: start < end, rule.generate_starts(first, after=since))
    expected = list(by_calendar(rule, first, since.date(), 400))
    assert [start for start in found if start >= since] == expected


@pytest.mark.long
@given(rule=RULES)
def test_a_formatted_rule_is_parsed_to_the_same_rule(rule: Recurrence) -> None:
    assert parse_recurrence_rule(rule.rule) == rule


def test_a_rule_of_ten_years_ago_is_evaluated_quickly() -> None:
    rule = parse_recurrence_rule("FREQ=DAILY")
    began = FIRST.replace(year=2000)
    (found,) = islice(rule.generate_starts(began, after=FIRST), 1)
    assert FIRST - 2 * DAY <= found <= FIRST


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("FREQ=DAILY", "FREQ=DAILY"),
        ("RRULE:FREQ=WEEKLY;INTERVAL=1;BYDAY=mo,SU;WKST=MO;", "FREQ=WEEKLY;BYDAY=MO,SU"),
        ("byday=-1su;freq=monthly", "FREQ=MONTHLY;BYDAY=-1SU"),
        (
            "FREQ=MONTHLY;BYMONTHDAY=1,-1;UNTIL=20271231",
            "FREQ=MONTHLY;BYMONTHDAY=1,-1;UNTIL=20271231",
        ),
    ],
)
def test_rules_in_the_format_of_calendars_are_parsed(text: str, rule: str) -> None:
    assert parse_recurrence_rule(text).rule == rule


@pytest.mark.parametrize(
    "text",
    [
        *("", "DAILY", "FREQ=YEARLY", "FREQ=HOURLY", "FREQ=DAILY;FREQ=DAILY", "FREQ=DAILY;COUNT=3"),
        *("FREQ=DAILY;BYDAY=MO", "FREQ=DAILY;BYMONTHDAY=1", "FREQ=WEEKLY;BYDAY=1MO"),
        *("FREQ=MONTHLY;BYDAY=MO", "FREQ=MONTHLY;BYDAY=0MO", "FREQ=MONTHLY;BYDAY=6MO"),
        *("FREQ=MONTHLY;BYDAY=1MO;BYMONTHDAY=1", "FREQ=MONTHLY;BYMONTHDAY=32"),
        *("FREQ=MONTHLY;BYMONTHDAY=0", "FREQ=WEEKLY;WKST=SU", "FREQ=DAILY;INTERVAL=0"),
        *("FREQ=DAILY;INTERVAL=100", "FREQ=DAILY;INTERVAL=x", "FREQ=DAILY;UNTIL=20261301"),
        *(
            "FREQ=DAILY;UNTIL=2026",
            "FREQ=DAILY;UNTIL=22000101",
            "FREQ=DAILY;UNTIL=20261231T000000Z",
        ),
        *("FREQ=DAILY;BYHOUR=1", "FREQ=", "FREQ=DAILY" + ";" * 300, "FREQ=WEEKLY;BYDAY=MO,,TU"),
    ],
)
def test_other_rules_are_rejected(text: str) -> None:
    with pytest.raises(InvalidError) as refused:
        parse_recurrence_rule(text)
    assert refused.value.field == "rule"
