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
_DISPLAY_UNITS = (
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
    (timedelta(seconds=1), "s"),
)
_MAX_DIGITS = 9
_DURATION_PATTERN = re.compile(
    r"(?=.)" + "".join(rf"(?:(?P<{unit}>[0-9]{{1,{_MAX_DIGITS}}}){unit})?" for unit in _UNITS)
)


def parse_duration(text: str, *, field: str = "") -> timedelta:
    """Parse a duration such as `1h30m`, whose units (w, d, h, m, s) are in descending order.

    Raise InvalidError, with the name of the field, if the text is not a duration.
    """
    found = _DURATION_PATTERN.fullmatch(text.strip())
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


def format_duration(length: timedelta) -> str:
    """Return a duration of whole seconds in the format of `parse_duration`: `1h30m`, or `0s`."""
    parts, rest = [], length
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def format_duration_words(length: timedelta) -> str:
    """Return a duration in words, such as `1 h 30 min`, without fractions of seconds."""
    parts, rest = [], length
    for size, unit in _DISPLAY_UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def format_waiting_time(waiting_time: timedelta) -> str:
    """Describe how long an item has been in the worker's queue, as part of a sentence."""
    return f"not processed yet, waiting for {format_duration_words(max(waiting_time, timedelta()))}"
