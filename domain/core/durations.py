"""Durations as people write them in commands and forms: `30s`, `5m`, `1h30m`, `2d`."""

import re
from datetime import timedelta

from domain.core.errors import InvalidError

_UNITS = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
}
_WORDS = (
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
    (timedelta(seconds=1), "s"),
)
_DIGITS = 9
_WRITTEN = re.compile(
    r"(?=.)" + "".join(rf"(?:(?P<{unit}>[0-9]{{1,{_DIGITS}}}){unit})?" for unit in _UNITS)
)


def parse_duration(text: str, *, field: str = "") -> timedelta:
    """Return a duration, written with the units w, d, h, m and s in this order.

    Raise InvalidError with the name of the field for other texts.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        message = f'"{text[:30]}" is not a duration. Use 30s, 5m, 1h30m or 2d.'
        raise InvalidError(message, field=field)
    try:
        return sum(
            (_UNITS[unit] * int(count) for unit, count in found.groupdict().items() if count),
            timedelta(),
        )
    except OverflowError as error:
        raise InvalidError(f'"{text[:30]}" is too long.', field=field) from error


def duration_text(length: timedelta) -> str:
    """Return a duration of whole seconds in the format of `parse_duration`: `1h30m`, or `0s`."""
    parts, rest = [], length
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def length_words(length: timedelta) -> str:
    """Return a duration in words, such as `1 h 30 min`, without fractions of seconds."""
    parts, rest = [], length
    for size, unit in _WORDS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def waiting_words(waiting: timedelta) -> str:
    """Return the waiting time of an item in the worker's queue, as a part of a sentence."""
    return f"not processed yet, waiting for {length_words(max(waiting, timedelta()))}"
