"""Reads the times that senders write: RFC 3339 and similar formats, RFC 2822, and Unix times.

A Unix time is in seconds, milliseconds, microseconds or nanoseconds, depending on its size. A time
without an offset, or with an unknown zone, is read as UTC, and a date without a time of day as
midnight UTC; both give a parse warning.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo

from domain.alerts.reading.text import excerpt, is_blank

#: The zero value of Go's time.Time, which senders write for "no time".
ZERO_TIME = datetime.min.replace(tzinfo=UTC)
END_BEFORE_START = "The end is before the start, so the start is used."

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Upper limits of a Unix time with so many units per second. Each limit is March 1973 in the next
#: unit and the year 5138 in its own, so the unit is never in doubt.
_EPOCH_UNITS = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))
_MICROSECONDS = 10**6
#: Those of RFC 2822 section 4.3 and those that only one zone uses; ambiguous ones (IST, BST and so
#: on) are unknown.
_HOURS = {
    0: "UTC UT GMT Z ZULU WET",
    1: "CET MEZ WEST",
    2: "CEST MESZ EET SAST",
    3: "EEST MSK TRT",
    5: "PKT",
    7: "WIB",
    8: "HKT AWST",
    9: "JST KST",
    9.5: "ACST",
    10: "AEST",
    10.5: "ACDT",
    11: "AEDT",
    12: "NZST",
    13: "NZDT",
    -3: "BRT ART",
    -4: "EDT",
    -5: "EST CDT",
    -6: "CST MDT",
    -7: "MST PDT",
    -8: "PST AKDT",
    -9: "AKST",
    -10: "HST",
}
_ABBREVIATIONS = {
    name: timezone(timedelta(hours=hours)) if hours else UTC
    for hours, names in _HOURS.items()
    for name in names.split()
}
_ZONE_NAME = re.compile(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)

#: In characters. Longer texts are no times, and matching them would be slow.
_LONGEST = 1000

# RFC 3339 section 5.6 and its variants: a space for the T, dots or slashes in the date (Zabbix), no
# seconds or no time of day, a decimal comma, an offset after a space, without colon, without
# minutes (Postgres) or with the zone's name beside it (Go, Java), only that name, or neither.
_RFC_3339 = re.compile(
    r"(?P<year>\d{4})(?P<dash>[-./])(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    r"(?:(?:T| +)(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    r"(?: *(?P<offset>Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>[0-5]\d)?))?"
    r"(?P<zone>(?: | ?\[)[a-z][a-z0-9_+/-]*\]?)?(?: m=[+-][\d.]+)?)?",
    re.ASCII | re.IGNORECASE,
)
_RFC_2822 = re.compile(
    r"(?P<date>(?:[a-z]{3,9},? )?\d\d?[ -][a-z]{3}[ -](?:\d\d){1,2} \d\d?:\d\d(?::\d\d)?)"
    r"(?: (?:(?P<offset>[+-]\d{4})|(?P<zone>[a-z]{1,5})))?(?: \([^()]*\))?",
    re.ASCII | re.IGNORECASE,
)
#: The format of `date` and Nagios, with the year at the end.
_UNIX_DATE = re.compile(
    r"(?:[a-z]{3} )?(?P<month>[a-z]{3}) (?P<day>\d\d?) (?P<time>\d\d:\d\d:\d\d)"
    r"(?P<zone> [a-z]{1,5})? (?P<year>\d{4})",
    re.ASCII | re.IGNORECASE,
)
_EPOCH_TEXT = re.compile(r"\d{1,20}(?:\.\d{1,20})?", re.ASCII)


class _Guess(Enum):
    """What a time leaves open, with the parse warning about how it is read."""

    OFFSET = "has no offset from UTC: {}, so it is read as UTC."
    ZONE = "names an unknown time zone: {}, so it is read as UTC."
    TIME = "has no time of day: {}, so it is read as midnight UTC."


#: A time in UTC, and the guess that it depends on.
_Reading = tuple[datetime, _Guess | None]


@dataclass(frozen=True, slots=True)
class AlertStart:
    """The start of an alert in UTC, with a parse warning if it is a guess."""

    time: datetime
    warning: str | None
    #: Whether the sender gave it; else it is the time of arrival.
    is_given: bool = True


@dataclass(frozen=True, slots=True)
class AlertEnd:
    """The end of an alert in UTC, if it has one, with a parse warning if it is a guess."""

    time: datetime | None
    warning: str | None


_NO_END = AlertEnd(None, None)


def written_time(moment: datetime) -> str:
    """Return a time in UTC to the second, as in `2026-11-21T09:57:03Z` (RFC 3339).

    It avoids strftime, which on Linux writes years below 1000 without leading zeros.
    """
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _read_rfc_3339(found: re.Match[str]) -> _Reading:
    date = f"{found['year']}-{found['month']}-{found['day']}"
    if found["hour"] is None:
        return datetime.fromisoformat(date).replace(tzinfo=UTC), _Guess.TIME
    second = found["second"] or "00"
    # A leap second (RFC 3339 section 5.7) is read as the next second: datetime has none.
    is_leap = second == "60"
    time = datetime.fromisoformat(
        f"{date}T{found['hour']}:{found['minute']}:{'59' if is_leap else second}"
        f".{(found['fraction'] or '')[:6].ljust(6, '0')}"
    ) + timedelta(seconds=is_leap)
    return _in_utc(time, _offset(found), (found["zone"] or "").strip(" []"))


def _offset(found: re.Match[str]) -> tzinfo | None:
    if found["sign"] is None:
        return UTC if found["offset"] else None
    distance = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    return timezone(-distance if found["sign"] == "-" else distance)


@lru_cache(maxsize=256)
def _find_zone(name: str) -> tzinfo | None:
    """Return the zone with this name, or None if it is unknown. Abbreviations ignore case."""
    if name.upper() in _ABBREVIATIONS:
        return _ABBREVIATIONS[name.upper()]
    if not _ZONE_NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, no zone at all, or a folder of them
        return None


def _in_utc(time: datetime, offset: tzinfo | None, zone: str | None) -> _Reading:
    """Return a time in UTC by its offset, or else by the name of its zone."""
    zone_info = offset or (_find_zone(zone) if zone else None)
    if zone_info is None:
        return time.replace(tzinfo=UTC), _Guess.ZONE if zone else _Guess.OFFSET
    return time.replace(tzinfo=zone_info).astimezone(UTC), None


def _read_rfc_2822(found: re.Match[str]) -> _Reading:
    if found["offset"]:
        time = parsedate_to_datetime(f"{found['date']} {found['offset']}")
        return _in_utc(time, time.tzinfo or UTC, None)
    return _in_utc(parsedate_to_datetime(found["date"]), None, found["zone"])


def _read_epoch(number: float | Fraction) -> _Reading:
    if number <= 0:
        raise ValueError("zero and below are how programs say that there is no time")
    per_second = next((units for limit, units in _EPOCH_UNITS if number < limit), None)
    if per_second is None:
        raise ValueError("beyond the calendar in any unit")
    if isinstance(number, float):
        return _EPOCH + timedelta(microseconds=round(number * _MICROSECONDS / per_second)), None
    # Exact arithmetic: a float cannot hold the microseconds of a time in nanoseconds.
    return _EPOCH + timedelta(microseconds=number * _MICROSECONDS // per_second), None


@lru_cache(maxsize=256)
def _read_text(text: str) -> _Reading:
    # Alerts of one delivery often have the same start, and most have the same zero end.
    if found := _RFC_3339.fullmatch(text):
        return _read_rfc_3339(found)
    if _EPOCH_TEXT.fullmatch(text):
        return _read_epoch(Fraction(text))
    text = " ".join(text.split())
    if found := _UNIX_DATE.fullmatch(text):
        text = "{day} {month} {year} {time}{zone}".format(**found.groupdict(""))
    if found := _RFC_2822.fullmatch(text):
        return _read_rfc_2822(found)
    raise ValueError("no known format")


def _read(value: object) -> _Reading:
    """Return the time that a value stands for; raise ValueError or OverflowError."""
    if isinstance(value, str) and len(value) <= _LONGEST:
        return _read_text(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _read_epoch(value)
    raise ValueError("neither a text nor a number")


def _reading(value: object) -> tuple[datetime | None, _Guess | None]:
    """Return the time in UTC, or None if it cannot be read, and the guess that it depends on."""
    try:
        return _read(value)
    except (ValueError, OverflowError):
        return None, None


def _warning_on(guess: _Guess | None, value: object, name: str) -> str | None:
    return f"{name} {guess.value.format(excerpt(value))}" if guess else None


def read_start(value: object, *, name: str, now: datetime) -> AlertStart:
    """Read the start of an alert; `now` is used if it is absent or cannot be read."""
    if is_blank(value):
        return AlertStart(now, None, is_given=False)
    time, guess = _reading(value)
    if time is None or time == ZERO_TIME:
        trouble = f"{name} could not be read: {excerpt(value)}"
        return AlertStart(now, f"{trouble}, so the time of arrival is used.", is_given=False)
    return AlertStart(time, _warning_on(guess, value, name))


def read_end(value: object, *, name: str) -> AlertEnd:
    """Read the end of an alert; an absent, zero or unreadable value is no end."""
    if is_blank(value):
        return _NO_END
    time, guess = _reading(value)
    if time is None:
        return AlertEnd(
            None, f"{name} could not be read: {excerpt(value)}, so it counts as absent."
        )
    if time == ZERO_TIME:
        return _NO_END
    return AlertEnd(time, _warning_on(guess, value, name))


def in_order(start: AlertStart, end: AlertEnd) -> tuple[datetime, AlertEnd]:
    """Return the start and the end of an alert, with the end not before the start.

    If the sender gave only an end that is before the time of arrival, the start is the end.
    """
    if end.time is None or start.time <= end.time:
        return start.time, end
    if not start.is_given:
        return end.time, end
    warnings = filter(None, (end.warning, END_BEFORE_START))
    return start.time, AlertEnd(start.time, " ".join(warnings))
