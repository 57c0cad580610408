"""Parses times from senders: RFC 3339 and similar formats, RFC 2822, and Unix times.

A Unix time is in seconds, milliseconds, microseconds or nanoseconds, depending on its size. A time
without an offset, or with an unknown zone, is interpreted as UTC. A date without a time is
interpreted as midnight UTC. Times that are based on such an assumption cause a warning.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo

from domain.alerts.parsing.text_conversion import format_excerpt, is_blank

#: Zero value of Go's time.Time, which senders use for "no time".
ZERO_TIME = datetime.min.replace(tzinfo=UTC)
END_BEFORE_START = "The end is before the start, so the start is used."

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Upper limits of Unix times with the given number of units per second. A limit is the year 5138 in
#: its own unit and March 1973 in the next unit. Therefore, the unit is unambiguous.
_UNIX_TIME_UNITS = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))
_MICROSECONDS = 10**6
#: Offsets of the zones in RFC 2822 section 4.3, and of abbreviations that only one zone uses.
#: Ambiguous abbreviations, such as IST and BST, are not included.
_ABBREVIATIONS_BY_OFFSET = {
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
_ZONES_BY_ABBREVIATION = {
    name: timezone(timedelta(hours=hours)) if hours else UTC
    for hours, names in _ABBREVIATIONS_BY_OFFSET.items()
    for name in names.split()
}
_ZONE_NAME = re.compile(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)

#: Maximum length of a time in characters. Matching longer texts would be slow.
_MAX_TIME_LENGTH = 1000

# RFC 3339 section 5.6 with variants. The T can be a space, and the date can contain dots or slashes
# (Zabbix). The seconds or the whole time can be missing, and a comma can precede the fraction. The
# offset can follow a space or `UTC`, and its colon or its minutes can be missing (Postgres). A zone
# name can follow the offset (Go, Java) or replace it, or both can be missing.
_RFC_3339 = re.compile(
    r"(?P<year>\d{4})(?P<dash>[-./])(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    r"(?:(?:T| +)(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    r"(?: *(?P<offset>Z|(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>[0-5]\d)?))?"
    r"(?P<zone>(?: | ?[\[(])[a-z][a-z0-9_+/-]*[\])]?)?(?: m=[+-][\d.]+)?)?",
    re.ASCII | re.IGNORECASE,
)
_RFC_2822 = re.compile(
    r"(?P<date>(?:[a-z]{3,9},? )?\d\d?[ -][a-z]{3}[ -](?:\d\d){1,2} \d\d?:\d\d(?::\d\d)?)"
    r"(?: (?:(?:UTC|GMT)?(?P<offset>[+-]\d{4})|(?P<zone>[a-z]{1,5})))?(?: \([^()]*\))?",
    re.ASCII | re.IGNORECASE,
)
#: Pattern of times from `date` and Nagios, with the year at the end.
_UNIX_DATE = re.compile(
    r"(?:[a-z]{3} )?(?P<month>[a-z]{3}) (?P<day>\d\d?) (?P<time>\d\d:\d\d:\d\d)"
    r"(?P<zone> [a-z]{1,5})? (?P<year>\d{4})",
    re.ASCII | re.IGNORECASE,
)
_UNIX_TIME = re.compile(r"\d{1,20}(?:\.\d{1,20})?", re.ASCII)


class _Assumption(Enum):
    """An assumption about a missing part of a time. Its value is the text of the warning."""

    OFFSET = "has no offset from UTC: {}, so it is read as UTC."
    ZONE = "names an unknown time zone: {}, so it is read as UTC."
    TIME = "has no time of day: {}, so it is read as midnight UTC."


#: Time in UTC, and the assumption that it depends on.
_ParsedTime = tuple[datetime, _Assumption | None]


@dataclass(frozen=True, slots=True)
class AlertStart:
    """The start of an alert in UTC, with a warning if it is based on an assumption."""

    time: datetime
    warning: str | None
    #: True if the sender provided the start. Otherwise, `time` is the time of arrival.
    is_given: bool = True

    @property
    def is_certain(self) -> bool:
        """True if the sender provided the start, and it is not based on an assumption."""
        return self.is_given and self.warning is None


@dataclass(frozen=True, slots=True)
class AlertEnd:
    """The end of an alert in UTC, with a warning if it is based on an assumption.

    The time is None if the alert has no end.
    """

    time: datetime | None
    warning: str | None


_NO_END = AlertEnd(None, None)


def format_utc_time(moment: datetime) -> str:
    """Return a time in UTC with seconds, such as `2026-11-21T09:57:03Z` (RFC 3339).

    strftime is not used, since on Linux it writes years below 1000 without leading zeros.
    """
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _parse_rfc_3339(found: re.Match[str]) -> _ParsedTime:
    date = f"{found['year']}-{found['month']}-{found['day']}"
    if found["hour"] is None:
        return datetime.fromisoformat(date).replace(tzinfo=UTC), _Assumption.TIME
    second = found["second"] or "00"
    # datetime does not support leap seconds (RFC 3339 section 5.7), so the next second is used.
    is_leap = second == "60"
    time = datetime.fromisoformat(
        f"{date}T{found['hour']}:{found['minute']}:{'59' if is_leap else second}"
        f".{(found['fraction'] or '')[:6].ljust(6, '0')}"
    ) + timedelta(seconds=is_leap)
    return _convert_to_utc(time, _parse_offset(found), (found["zone"] or "").strip(" []()"))


def _parse_offset(found: re.Match[str]) -> tzinfo | None:
    if found["sign"] is None:
        return UTC if found["offset"] else None
    distance = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    return timezone(-distance if found["sign"] == "-" else distance)


@lru_cache(maxsize=256)
def _find_zone(name: str) -> tzinfo | None:
    """Return the time zone with this name, or None. Abbreviations are case-insensitive."""
    if name.upper() in _ZONES_BY_ABBREVIATION:
        return _ZONES_BY_ABBREVIATION[name.upper()]
    if not _ZONE_NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    # The zone is unknown, its name is not valid, or it is a directory of zones.
    except (KeyError, ValueError, OSError):
        return None


def _convert_to_utc(time: datetime, offset: tzinfo | None, zone: str | None) -> _ParsedTime:
    """Convert a time to UTC, using its offset or, if it has none, the name of its zone."""
    zone_info = offset or (_find_zone(zone) if zone else None)
    if zone_info is None:
        return time.replace(tzinfo=UTC), _Assumption.ZONE if zone else _Assumption.OFFSET
    return time.replace(tzinfo=zone_info).astimezone(UTC), None


def _parse_rfc_2822(found: re.Match[str]) -> _ParsedTime:
    if found["offset"]:
        time = parsedate_to_datetime(f"{found['date']} {found['offset']}")
        return _convert_to_utc(time, time.tzinfo or UTC, None)
    return _convert_to_utc(parsedate_to_datetime(found["date"]), None, found["zone"])


def _parse_unix_time(number: float | Fraction) -> _ParsedTime:
    if number <= 0:
        raise ValueError("zero and negative numbers mean that there is no time")
    per_second = next((units for limit, units in _UNIX_TIME_UNITS if number < limit), None)
    if per_second is None:
        raise ValueError("the number is too large for a time in any unit")
    if isinstance(number, float):
        return _EPOCH + timedelta(microseconds=round(number * _MICROSECONDS / per_second)), None
    # A float cannot represent a time in nanoseconds with microsecond precision, so use a fraction.
    return _EPOCH + timedelta(microseconds=number * _MICROSECONDS // per_second), None


@lru_cache(maxsize=256)
def _parse_text(text: str) -> _ParsedTime:
    # Results are cached: alerts in a delivery often start together, and most have a zero end time.
    if found := _RFC_3339.fullmatch(text):
        return _parse_rfc_3339(found)
    if _UNIX_TIME.fullmatch(text):
        return _parse_unix_time(Fraction(text))
    text = " ".join(text.split())
    if found := _UNIX_DATE.fullmatch(text):
        text = "{day} {month} {year} {time}{zone}".format(**found.groupdict(""))
    if found := _RFC_2822.fullmatch(text):
        return _parse_rfc_2822(found)
    raise ValueError("unrecognized time format")


def _parse_time(value: object) -> _ParsedTime:
    """Parse a Unix time or a time string in any supported notation.

    Raise ValueError or OverflowError if the value is not a valid time.
    """
    if isinstance(value, str) and len(value) <= _MAX_TIME_LENGTH:
        return _parse_text(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _parse_unix_time(value)
    raise ValueError("a time must be a string or a number")


def _try_parse_time(value: object) -> tuple[datetime | None, _Assumption | None]:
    """Return a value as a time in UTC, and the assumption that the time depends on.

    The time is None if the value is not a valid time.
    """
    try:
        return _parse_time(value)
    except (ValueError, OverflowError):
        return None, None


def find_readable_time(value: object) -> datetime | None:
    """Return a value as a time in UTC, or None if it is not a complete date and time.

    A time without a zone is interpreted as UTC. The result is None if the zone is unknown.
    """
    time, guess = _try_parse_time(value)
    return time if guess in {None, _Assumption.OFFSET} else None


def _format_warning(guess: _Assumption | None, value: object, name: str) -> str | None:
    return f"{name} {guess.value.format(format_excerpt(value))}" if guess else None


def _is_missing(value: object) -> bool:
    """Return whether a value means that there is no time: a blank value, 0 or a hyphen."""
    is_zero = isinstance(value, str | int | float) and str(value).strip() in {"0", "0.0", "-"}
    return is_blank(value) or is_zero


def parse_start_time(value: object, *, name: str, now: datetime) -> AlertStart:
    """Parse the start of an alert. If it is missing or not valid, `now` is used."""
    if _is_missing(value):
        return AlertStart(now, None, is_given=False)
    time, guess = _try_parse_time(value)
    if time is None or time == ZERO_TIME:
        trouble = f"{name} could not be read: {format_excerpt(value)}"
        return AlertStart(now, f"{trouble}, so the time of arrival is used.", is_given=False)
    return AlertStart(time, _format_warning(guess, value, name))


def parse_end_time(value: object, *, name: str) -> AlertEnd:
    """Parse the end of an alert. A missing, zero or invalid value means that there is no end."""
    if _is_missing(value):
        return _NO_END
    time, guess = _try_parse_time(value)
    if time is None:
        return AlertEnd(
            None, f"{name} could not be read: {format_excerpt(value)}, so it is ignored."
        )
    if time == ZERO_TIME:
        return _NO_END
    return AlertEnd(time, _format_warning(guess, value, name))


def order_start_and_end(start: AlertStart, end: AlertEnd) -> tuple[datetime, AlertEnd]:
    """Return the start and the end of an alert, where the end is not before the start.

    If the sender provided only an end, and the end is before the time of arrival, the end is also
    used as the start.
    """
    if end.time is None or start.time <= end.time:
        return start.time, end
    if not start.is_given:
        return end.time, end
    warnings = filter(None, (end.warning, END_BEFORE_START))
    return start.time, AlertEnd(start.time, " ".join(warnings))
