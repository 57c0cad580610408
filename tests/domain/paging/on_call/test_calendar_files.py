"""Reading calendars: time zones, recurrence, ignored events, and limits."""

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from subprocess import CompletedProcess, run
from typing import Any

import pytest

from domain.core.errors import InvalidError, OverloadedError
from domain.paging.on_call.absences import calendar_files
from domain.paging.on_call.absences.calendar_files import CalendarContent, read_calendar
from domain.paging.on_call.schedule_plans import Period
from tests.support.service.calendars import build_calendar

#: In Berlin, the clocks go back on 2026-10-25 and forward on 2027-03-28.
PERIOD = Period(datetime(2026, 10, 20, tzinfo=UTC), datetime(2027, 4, 10, tzinfo=UTC))


def read(*events: str, includes_free: bool = False, hours: float = 4) -> CalendarContent:
    return read_calendar(
        build_calendar(*events),
        PERIOD,
        "Europe/Berlin",
        min_length=timedelta(hours=hours),
        includes_free=includes_free,
    )


def times(content: CalendarContent) -> list[tuple[str, str]]:
    return [(f"{each.start:%m-%d %H:%M}", f"{each.end:%m-%d %H:%M}") for each in content.events]


def test_all_day_events_are_in_the_given_zone_and_include_a_day_on_which_clocks_change() -> None:
    found = read("DTSTART;VALUE=DATE:20261024\nDTEND;VALUE=DATE:20261027\nSUMMARY:Away  again")
    assert times(found) == [("10-23 22:00", "10-26 23:00")]
    assert found.events[0].title == "Away again"
    assert times(read("DTSTART;VALUE=DATE:20270328")) == [("03-27 23:00", "03-28 22:00")]


def test_a_series_keeps_its_local_time_and_leaves_out_and_moves_occurrences() -> None:
    series = (
        "UID:one\nDTSTART;TZID=America/New_York:20261028T090000\nDURATION:PT8H\n"
        "RRULE:FREQ=WEEKLY;UNTIL=20261126T000000Z\n"
        "EXDATE;TZID=America/New_York:20261111T090000\nRDATE:20261220T100000Z"
    )
    moved = (
        "UID:one\nRECURRENCE-ID;TZID=America/New_York:20261118T090000\n"
        "DTSTART:20261119T100000Z\nDTEND:20261119T160000Z"
    )
    assert times(read(series, moved)) == [
        ("10-28 13:00", "10-28 21:00"),
        # New York has changed its clocks by then.
        ("11-04 14:00", "11-04 22:00"),
        ("11-19 10:00", "11-19 16:00"),
        ("11-25 14:00", "11-25 22:00"),
        ("12-20 10:00", "12-20 18:00"),
    ]
    cancelled = f"{moved}\nSTATUS:CANCELLED"
    assert "11-18 14:00" not in str(times(read(series, cancelled)))


def test_a_calendar_can_define_its_own_time_zone() -> None:
    zone = (
        "BEGIN:VTIMEZONE\nTZID:Office\nBEGIN:STANDARD\nDTSTART:19700101T000000\n"
        "TZOFFSETFROM:+0300\nTZOFFSETTO:+0300\nEND:STANDARD\nEND:VTIMEZONE\n"
    )
    content = build_calendar("DTSTART;TZID=Office:20261201T090000\nDURATION:PT5H", before=zone)
    found = read_calendar(
        content, PERIOD, "UTC", min_length=timedelta(hours=4), includes_free=False
    )
    assert times(found) == [("12-01 06:00", "12-01 11:00")]
    # An event without a zone is in the zone of the user.
    assert times(read("DTSTART:20261201T090000\nDURATION:PT5H")) == [("12-01 08:00", "12-01 13:00")]


def test_free_cancelled_short_and_past_events_are_left_out() -> None:
    day = "DTSTART;VALUE=DATE:20261201"
    others = (
        f"{day}\nTRANSP:TRANSPARENT",
        f"{day}\nTRANSP:transparent",
        f"{day}\nSTATUS:CANCELLED",
        f"{day}\nSTATUS:cancelled",
        "DTSTART:20261201T090000Z\nDURATION:PT1H",
        "DTSTART;VALUE=DATE:20261001",
        "DTSTART;VALUE=DATE:20280101",
    )
    assert read(*others).events == ()
    assert len(read(*others, includes_free=True, hours=0).events) == 2


def test_an_invalid_event_is_counted_and_does_not_hide_the_others() -> None:
    day = "DTSTART;VALUE=DATE:20261201"
    # dateutil would repeat an event with the interval 0 forever.
    rules = (f"{day}\nRRULE:FREQ=X", f"{day}\nRRULE:FREQ=DAILY;INTERVAL=0")
    found = read(day, "DTSTART:yesterday", "SUMMARY:No start", *rules)
    assert (len(found.events), found.skipped_count) == (1, 4)


@pytest.mark.parametrize("line_end", [b"\n", b"\r"])
def test_other_line_ends_are_accepted_and_titles_can_be_stored(line_end: bytes) -> None:
    content = build_calendar("DTSTART;VALUE=DATE:20261201\nSUMMARY:A\0way")
    found = read_calendar(
        content.replace(b"\r\n", line_end),
        PERIOD,
        "UTC",
        min_length=timedelta(0),
        includes_free=True,
    )
    # Postgres cannot store a NUL character.
    assert [each.title for each in found.events] == ["Away"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"<html><body>Sign in</body></html>", "is not in the iCalendar format (.ics)"),
        (build_calendar("DTSTART:20261201T090000Z")[:-20], "is not in the iCalendar format (.ics)"),
        (b"BEGIN:VCALENDAR\nnonsense\nEND:VCALENDAR", "is not valid iCalendar"),
        (b"BEGIN:VCALENDAR" + b" " * (1 << 20), "is larger than 1,048,576 bytes"),
    ],
)
def test_other_content_is_rejected(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidError) as raised:
        read_calendar(content, PERIOD, "UTC", min_length=timedelta(0), includes_free=True)
    assert str(raised.value) == f"The calendar {problem}."


def test_a_series_with_too_many_occurrences_does_not_hang() -> None:
    secondly = "DTSTART:19260101T000000Z\nDURATION:PT5H\nRRULE:FREQ=SECONDLY"
    assert read(secondly).skipped_count == 1
    times = ",".join(map(str, range(24)))
    often = f"DTSTART:20261020T000000Z\nDURATION:PT5H\nRRULE:FREQ=DAILY;BYHOUR={times}"
    with pytest.raises(InvalidError, match="more than 1,000 events until 2027-04-10"):
        read(often)


def test_series_that_have_ended_cost_little_time() -> None:
    ended = "DTSTART:19260101T000000Z\nDURATION:PT5H\nRRULE:FREQ=DAILY;UNTIL=20200101T000000Z"
    assert read(*[ended] * 200) == CalendarContent(events=(), skipped_count=0)


def test_limits_that_the_system_does_not_support_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def refuse(which: int, _limits: tuple[int, int]) -> None:
        tried.append(which)
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    calendar_files.limit_process_resources()
    assert tried == [resource.RLIMIT_CPU, resource.RLIMIT_AS]


def test_at_most_two_calendars_are_read_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    running, counts = [], []

    def run_slowly(*_args: object, **_kw: object) -> CompletedProcess[bytes]:
        running.append(1)
        counts.append(len(running))
        time.sleep(0.1)
        running.pop()
        return CompletedProcess([], 0, b'{"events": [], "skipped_count": 0}')

    monkeypatch.setattr(calendar_files, "run", run_slowly)
    with ThreadPoolExecutor(6) as pool:
        assert [each.events for each in pool.map(lambda _: read(), range(6))] == [()] * 6
    assert max(counts) == 2
    monkeypatch.setattr(calendar_files, "_SLOT_TIMEOUT_SECONDS", 0.01)
    with ThreadPoolExecutor(6) as pool, pytest.raises(OverloadedError):
        list(pool.map(lambda _: read(), range(6)))


@pytest.mark.long
def test_a_rule_that_takes_too_long_is_stopped() -> None:
    never = "DTSTART:19260101T000000Z\nDURATION:PT5H\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"
    with pytest.raises(InvalidError, match="takes too long to read"):
        read(*[never] * 20)


def test_an_override_can_replace_all_later_occurrences() -> None:
    series = (
        "UID:one\nDTSTART;TZID=Europe/Berlin:20261020T090000\nDURATION:PT8H\n"
        "RRULE:FREQ=WEEKLY;UNTIL=20261119T000000Z\nEXDATE;TZID=Europe/Berlin:20261110T090000"
    )
    later = (
        "UID:one\nRECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20261027T090000\n"
        "DTSTART;TZID=Europe/Berlin:20261028T100000\nDURATION:PT5H"
    )
    single = (
        "UID:one\nRECURRENCE-ID;TZID=Europe/Berlin:20261117T090000\n"
        "DTSTART:20261120T100000Z\nDURATION:PT6H"
    )
    assert times(read(series, single, later)) == [
        ("10-20 07:00", "10-20 15:00"),
        ("10-28 09:00", "10-28 14:00"),
        ("11-04 09:00", "11-04 14:00"),
        ("11-20 10:00", "11-20 16:00"),
    ]
    ended = f"{later}\nSTATUS:CANCELLED"
    assert times(read(series, ended)) == [("10-20 07:00", "10-20 15:00")]
    # The series may begin long before the period in which its moved occurrences are.
    moved = later.replace("20261028T100000", "20270128T100000")
    assert ("02-04 09:00", "02-04 14:00") in times(read(series, moved))
    invalid = "UID:one\nRECURRENCE-ID;RANGE=THISANDFUTURE:20261027T080000Z\nSUMMARY:No start"
    assert read(series, invalid).skipped_count == 1
    day = "UID:two\nDTSTART;VALUE=DATE:20261201\nRRULE:FREQ=WEEKLY;COUNT=3"
    longer = (
        "UID:two\nRECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20261208\n"
        "DTSTART;VALUE=DATE:20261207\nDTEND;VALUE=DATE:20261209"
    )
    assert times(read(day, longer)) == [
        ("11-30 23:00", "12-01 23:00"),
        ("12-06 23:00", "12-08 23:00"),
        ("12-13 23:00", "12-15 23:00"),
    ]


_NO_OFFSET = (
    "BEGIN:STANDARD\nDTSTART:nonsense\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0100\nEND:STANDARD\n"
)


@pytest.mark.parametrize("rules", ["", _NO_OFFSET])
@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "W. Europe Standard Time", "/citadel.org/2024/Europe/Berlin"]
)
def test_an_invalid_definition_of_a_known_time_zone_is_not_needed(name: str, rules: str) -> None:
    zone = f"BEGIN:VTIMEZONE\nTZID:{name}\n{rules}END:VTIMEZONE\n"
    event = f"DTSTART;TZID={name}:20261201T090000\nDURATION:PT5H"
    found = read_calendar(
        build_calendar(event, before=zone),
        PERIOD,
        "UTC",
        min_length=timedelta(0),
        includes_free=False,
    )
    assert times(found) == [("12-01 08:00", "12-01 13:00")]


@pytest.mark.parametrize("rules", ["", _NO_OFFSET])
def test_an_invalid_definition_of_another_time_zone_is_named(rules: str) -> None:
    zones = "".join(
        f"BEGIN:VTIMEZONE\nTZID:{name}\n{rules}END:VTIMEZONE\n"
        for name in ("Europe/Berlin", "Our <b>office</b>")
    )
    content = build_calendar("DTSTART:20261201T090000\nDURATION:PT5H", before=zones)
    with pytest.raises(InvalidError, match=r'time zone "Our <b>office</b>"\. Use'):
        read_calendar(content, PERIOD, "UTC", min_length=timedelta(0), includes_free=False)


def test_a_calendar_that_needs_too_much_memory_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The limit applies to the child process, which reads the module again.
    limited = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_AS, (16 << 20,) * 2);"
        "resource.setrlimit = lambda *_: None;"
    )

    def run_with_little_memory(
        arguments: list[str], *, check: bool, **more: Any
    ) -> CompletedProcess[bytes]:
        code = f"{limited} runpy.run_module({arguments[2]!r}, run_name='__main__')"
        return run([arguments[0], "-c", code, arguments[3]], check=check, **more)

    monkeypatch.setattr(calendar_files, "run", run_with_little_memory)
    with pytest.raises(InvalidError, match=r"The calendar (cannot be read|takes too long to read)"):
        read("DTSTART;VALUE=DATE:20261201")
