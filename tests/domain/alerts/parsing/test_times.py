from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.parsing.times import parse_end_time, parse_start_time
from tests.domain.alerts.parsing.strategies import NOW, field_values
from tests.support.wire.garbage import bounded

MORNING = datetime(2026, 11, 21, 7, 52, 39, tzinfo=UTC)


def read_time(written: object) -> datetime | None:
    start = parse_start_time(written, name="start_time", now=NOW)
    return start.time if start.is_given else None


@pytest.mark.spec("I4", "I5")
@pytest.mark.parametrize(
    "written",
    [
        "2026-11-21T07:52:39Z",
        "2026-11-21t07:52:39z",
        "2026-11-21 07:52:39Z",
        "2026-11-21 07:52:39 +0000",
        "2026-11-21 07:52:39+00",
        "2026-11-21 08:52:39 +01",
        "2026-11-21 08:52:39.000 +01:00",
        "2026-11-21T02:22:39 -05:30",
        "2026.11.21 07:52:39Z",
        "2026/11/21 07:52:39 UTC",
        "2026-11-21 09:52:39 UTC+0200",
        "2026-11-21 07:52:39 (UTC)",
        "2026-11-21T02:22:39 GMT-05:30",
        "21 Nov 2026 09:52:39 GMT+0200",
        "2026-11-21 08:52:39 CET",
        "2026-11-21 09:52:39 cest",
        "2026-11-21T02:52:39 EST",
        "2026-11-21 08:52:39 Europe/Berlin",
        "2026-11-21T08:52:39+01:00[Europe/Berlin]",
        "2026-11-21 08:52:39.0 +0100 CET m=+12.345678901",
        "Sat Nov 21 08:52:39 CET 2026",
        "Sat Nov 21 07:52:39 UTC 2026",
        "21 Nov 2026 08:52:39 CET",
        "2026-11-21T07:52:39-00:00",
        "2026-11-21T13:22:39+05:30",
        "2026-11-20T19:52:39-12:00",
        " 2026-11-21T07:52:39Z\n",
        "2026-11-21T07:52:39.Z".replace(".", ".0"),
        "Sat, 21 Nov 2026 07:52:39 +0000",
        "Sat, 21 Nov 2026 02:52:39 EST",
        "21 Nov 2026 07:52:39 GMT",
        "21 Nov 26 13:22:39 +0530",
        "Sat, 21 Nov 2026  07:52:39\r\n +0000 (UTC)",
        1795247559,
        1795247559.0,
        1795247559000,
        "1795247559",
        "1795247559000",
        "1795247559.000",
        1795247559000000,
        1795247559000000000,
        "1795247559000000",
        "1795247559000000000",
    ],
)
def test_a_time_is_parsed_in_every_known_format(written: object) -> None:
    assert read_time(written) == MORNING


@pytest.mark.parametrize("digits", [1, 3, 6, 7, 9, 30, 500])
def test_fractions_of_any_length_are_read(digits: int) -> None:
    read = read_time(f"2026-11-21T07:52:39.{'5' * digits}Z")
    assert read is not None
    assert read.replace(microsecond=0) == MORNING
    assert str(read.microsecond).rstrip("0") == "5" * min(digits, 6)


def test_milliseconds_keep_their_fraction() -> None:
    assert read_time(1795247559123) == MORNING + timedelta(milliseconds=123)


def test_microseconds_and_nanoseconds_are_precise_to_microseconds() -> None:
    exact = MORNING + timedelta(microseconds=123456)
    assert read_time(1795247559123456) == exact
    assert read_time("1795247559123456") == exact
    assert read_time(1795247559123456789) == exact
    assert read_time("1795247559123456789") == exact
    assert read_time("1795247559.123456") == exact


@pytest.mark.parametrize("fraction", ["1", "12", "123", "1234", "12345", "123456", "123456789"])
@pytest.mark.parametrize("offset", ["Z", "+00", " +00:00", " +0000", " UTC"])
def test_fractions_are_read_before_any_offset(fraction: str, offset: str) -> None:
    read = read_time(f"2026-11-21 07:52:39.{fraction}{offset}")
    assert read == MORNING + timedelta(microseconds=int(fraction[:6].ljust(6, "0")))


@pytest.mark.parametrize(
    ("written", "read", "warning"),
    [
        ("2026.11.21 07:52:39", MORNING, "has no offset from UTC"),
        ("2026-11-21 07:52:39 IST", MORNING, "names an unknown time zone"),
        ("2026-11-21 07:52:39 Mars/Crater", MORNING, "names an unknown time zone"),
        ("Sat, 21 Nov 2026 07:52:39 XYZ", MORNING, "names an unknown time zone"),
        ("2026-11-21", MORNING.replace(hour=0, minute=0, second=0), "has no time of day"),
        ("2026/11/21", MORNING.replace(hour=0, minute=0, second=0), "has no time of day"),
    ],
)
def test_a_time_without_a_known_zone_is_utc_with_a_warning(
    written: str, read: datetime, warning: str
) -> None:
    start = parse_start_time(written, name="start_time", now=NOW)
    assert start.time == read
    assert start.warning is not None
    assert start.warning.startswith(f"start_time {warning}: “{written}”, so it is read as")


def test_a_leap_second_is_the_second_that_follows() -> None:
    assert read_time("2016-12-31T23:59:60Z") == datetime(2017, 1, 1, tzinfo=UTC)
    assert read_time("2016-12-31T23:59:60.25Z") == datetime(2017, 1, 1, 0, 0, 0, 250000, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        "yesterday",
        "2026-11-21Z",
        "2026-11-21 UTC",
        "2026-11/21",
        "21.11.2026",
        "2026-11-21 07:52:39 ../etc/passwd",
        "2026-11-21 07:52:39 +1",
        "07:52:39",
        "2026-11-21T07",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-11-21T25:00:00Z",
        "2026-11-21T07:52:61Z",
        "2026-11-21T07:52:39+99:99",
        "2026-11-21T07:52:39+24:00",
        "2026-11-21T07:52:39.1234567rubbishZ",
        "2026-11-21\ud80007:52:39Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-05:00",
        "9999-12-31T23:59:60Z",
        "٢٠٢٦-11-21T07:52:39Z",
        "Sat, 32 Nov 2026 07:52:39 +0000",
        "Sat, 21 Foo 2026 07:52:39 +0000",
        "Sat, 21 Nov 2026 07:52:39 +9999",
        "Sat, 21 Nov 2026 07:52:39 +05:30",
        "9" * 5000,
        "2026-11-21T07:52:39." + "1" * 5000 + "Z",
        "-5",
        "1e9",
        "١٧٩٥٢٤٧٥٥٩",
        0,
        -1,
        1e300,
        10**30,
        10**20,
        True,
        None,
        [],
        ["2026-11-21T07:52:39Z"],
        {"seconds": 5},
    ],
)
def test_invalid_times_are_rejected(written: object) -> None:
    assert read_time(written) is None


@pytest.mark.spec("I4")
@pytest.mark.parametrize("absent", [None, "", "  ", [], {}, 0, "0", "-"])
def test_a_missing_start_becomes_the_current_time(absent: object) -> None:
    start = parse_start_time(absent, name="start_time", now=NOW)
    assert (start.time, start.warning) == (NOW, None)


@pytest.mark.spec("I4")
def test_an_invalid_start_becomes_the_current_time_with_a_warning() -> None:
    start = parse_start_time("half past\x00 nine", name="start_time", now=NOW)
    assert start.time == NOW
    assert start.warning == (
        "start_time could not be read: “half past\ufffd nine”, so the time of arrival is used."
    )


def test_a_start_at_the_zero_time_becomes_the_current_time() -> None:
    start = parse_start_time("0001-01-01T00:00:00Z", name="startsAt", now=NOW)
    assert start.time == NOW
    assert start.warning is not None


def test_a_time_without_offset_is_utc_with_a_warning() -> None:
    start = parse_start_time("Sat, 21 Nov 2026 07:52:39", name="start_time", now=NOW)
    assert start.time == MORNING
    assert start.warning == (
        "start_time has no offset from UTC: “Sat, 21 Nov 2026 07:52:39”, so it is read as UTC."
    )
    assert parse_end_time("2026-11-21T07:52:39", name="end_time").warning is not None
    assert parse_end_time("2026-11-21T07:52:39Z", name="end_time").warning is None


@pytest.mark.spec("I5", "I15")
@pytest.mark.parametrize(
    "absent",
    [
        *(None, "", 0, 0.0, "0", "-"),
        *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00"),
    ],
)
def test_no_end_and_the_zero_time_are_no_end(absent: object) -> None:
    end = parse_end_time(absent, name="end_time")
    assert (end.time, end.warning) == (None, None)


@pytest.mark.spec("I5")
def test_an_invalid_end_is_ignored_with_a_warning() -> None:
    end = parse_end_time("soon", name="end_time")
    assert end.time is None
    assert end.warning == "end_time could not be read: “soon”, so it is ignored."


@bounded(100)
@given(st.datetimes(timezones=st.just(UTC)), st.integers(-1439, 1439))
def test_a_time_with_an_offset_is_the_same_time(moment: datetime, minutes: int) -> None:
    sign = "-" if minutes < 0 else "+"
    hours, rest = divmod(abs(minutes), 60)
    local = moment.replace(tzinfo=None)
    read = read_time(f"{local.isoformat()}{sign}{hours:02}:{rest:02}")
    try:
        assert read == moment - timedelta(minutes=minutes)
    except OverflowError:
        assert read is None


@bounded(100)
@given(field_values)
def test_any_value_is_a_time_in_utc_or_none(value: object) -> None:
    read = read_time(value)
    assert read is None or read.tzinfo is UTC
