"""Reads the times that senders write: RFC 3339, RFC 2822, epoch seconds or milliseconds."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from domain.alerts.text import excerpt, is_blank

#: What Go's zero value of a time looks like in JSON; it means "no time".
ZERO_TIME = datetime.min.replace(tzinfo=UTC)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: As milliseconds March 1973, as seconds the year 5138: nobody means the other one.
_FIRST_MILLISECOND = 100_000_000_000

#: Longer texts hold no time, and reading them would take long.
_LONGEST = 1000

# RFC 3339 section 5.6, and what senders make of it: a space for the T, no seconds, a comma, an
# offset without colon or none at all. `fromisoformat` alone would let any rubbish pass between.
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)? ?(?:[Zz]|[+-]\d\d:?\d\d)?", re.ASCII
)
_RFC_2822 = re.compile(
    r"(?:[a-z]{3,9},? )?\d\d?[ -][a-z]{3}[ -](?:\d\d){1,2} \d\d?:\d\d(?::\d\d)?"
    r"(?: (?:[+-]\d{4}|[a-z]{1,5}))?(?: \([^()]*\))?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH_TEXT = re.compile(r"\d{1,15}(?:\.\d{1,20})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Start:
    """When something began, in UTC, and what a maintainer should know about it."""

    time: datetime
    remark: str | None


@dataclass(frozen=True, slots=True)
class End:
    """When something ended, in UTC, if it did, and what a maintainer should know about it."""

    time: datetime | None
    remark: str | None


_NO_END = End(None, None)


def written_time(moment: datetime) -> str:
    """Write a time for programs, in UTC and to the second: `2026-11-21T09:57:03Z`.

    Not by strftime, which on Linux leaves out the zeros before the year of a confused clock.
    """
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _read_rfc_3339(text: str) -> datetime:
    text = text.upper()
    if text[16:19] == ":60":
        # A leap second (RFC 3339 section 5.7): Python's clock has none, the next second is it.
        return datetime.fromisoformat(f"{text[:17]}59{text[19:]}") + timedelta(seconds=1)
    return datetime.fromisoformat(text)


def _read_epoch(number: float) -> datetime:
    if number <= 0:
        raise ValueError("zero and below are how programs say that there is no time")
    if number < _FIRST_MILLISECOND:
        return _EPOCH + timedelta(seconds=number)
    return _EPOCH + timedelta(milliseconds=number)


@lru_cache(maxsize=256)
def _read_text(text: str) -> datetime:
    # What fires together often began together, and most of it has the same "no end".
    if _RFC_3339.fullmatch(text):
        return _read_rfc_3339(text)
    if _EPOCH_TEXT.fullmatch(text):
        return _read_epoch(float(text))
    text = " ".join(text.split())
    if _RFC_2822.fullmatch(text):
        # An unknown zone name counts as no offset (RFC 2822 section 4.3).
        return parsedate_to_datetime(text)
    raise ValueError("no known format")


def _read(value: Any) -> datetime:
    """Return a time that has no offset if none was written; raise ValueError or OverflowError."""
    if isinstance(value, str) and len(value) <= _LONGEST:
        return _read_text(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _read_epoch(value)
    raise ValueError("no text and no number")


def _in_utc(time: datetime) -> datetime:
    if time.tzinfo is UTC:
        return time
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _reading(value: Any) -> tuple[datetime | None, bool]:
    """Return a time in UTC, or None if it cannot be read, and whether its offset is a guess."""
    try:
        time = _read(value)
        return _in_utc(time), time.tzinfo is None
    except (ValueError, OverflowError):
        return None, False


def read_time(value: Any) -> datetime | None:
    """Return a time in UTC, or None if it cannot be read; without an offset it is UTC."""
    return _reading(value)[0]


def _remark_on_guess(value: Any, name: str) -> str:
    return f"{name} has no offset from UTC: {excerpt(value)}, so it is read as UTC."


def read_start(value: Any, *, name: str, now: datetime) -> Start:
    """Read when something began; `now` stands in for what is absent or cannot be read."""
    if is_blank(value):
        return Start(now, None)
    time, is_guess = _reading(value)
    if time is None or time == ZERO_TIME:
        trouble = f"{name} could not be read: {excerpt(value)}"
        return Start(now, f"{trouble}, so the time of arrival is used.")
    return Start(time, _remark_on_guess(value, name) if is_guess else None)


def read_end(value: Any, *, name: str) -> End:
    """Read when something ended; what is absent, zero or cannot be read is no end."""
    if is_blank(value):
        return _NO_END
    time, is_guess = _reading(value)
    if time is None:
        return End(None, f"{name} could not be read: {excerpt(value)}, so it counts as absent.")
    if time == ZERO_TIME:
        return _NO_END
    return End(time, _remark_on_guess(value, name) if is_guess else None)
