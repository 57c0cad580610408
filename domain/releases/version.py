"""Release dates, and release numbers that sort correctly, such as 17.10 after 17.9."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

_RELEASE_PATTERN = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_EQUALS_PATTERN = re.compile(r"[ \t]*=[ \t]*")
_SEPARATOR_PATTERN = re.compile(r"[\s,;]+")
_RELEASE_DATE_PATTERN = re.compile(r"([0-9.]+)=((?:19[7-9]|2[0-9]{2})[0-9]-[0-9]{2}-[0-9]{2})")
_MAX_RELEASE_DATES = 100
#: Maximum number of characters that an error message quotes from a malformed entry.
_MAX_ECHO_LENGTH = 40


@dataclass(frozen=True, order=True)
class Release:
    """A release number that sorts correctly, such as 17.10 after 17.9."""

    major: int
    minor: int

    def __str__(self) -> str:
        """Return the release in the form `17.0`."""
        return f"{self.major}.{self.minor}"


def parse_release(text: str) -> Release:
    """Parse a release such as `16.0`.

    Raise ValueError if the text is malformed.
    """
    found = _RELEASE_PATTERN.fullmatch(text)
    if found is None:
        raise ValueError("A release consists of two numbers, such as 18.0.")
    return Release(int(found[1]), int(found[2]))


class InvalidReleaseDatesError(ValueError):
    """Error for invalid release dates. The message quotes the invalid value."""


def parse_release_dates(text: str) -> Mapping[Release, date]:
    """Parse dates by release, such as `17.0=2024-05-16, …`, and return them in ascending order.

    Entries are separated by spaces, line breaks, commas or semicolons. Raise
    InvalidReleaseDatesError if the text is malformed.
    """
    found: dict[Release, date] = {}
    for part in filter(None, _SEPARATOR_PATTERN.split(_EQUALS_PATTERN.sub("=", text))):
        release, day = _parse_release_date(part)
        if release in found:
            raise InvalidReleaseDatesError(f"Release {release} has two dates.")
        found[release] = day
    if len(found) > _MAX_RELEASE_DATES:
        raise InvalidReleaseDatesError(f"At most {_MAX_RELEASE_DATES} releases can have a date.")
    ordered = {release: found[release] for release in sorted(found)}
    _check_date_order(ordered)
    return ordered


def format_release_dates(dates: Mapping[Release, date]) -> str:
    """Return release dates as text, with one release per line."""
    return "\n".join(f"{release}={day.isoformat()}" for release, day in dates.items())


def _parse_release_date(part: str) -> tuple[Release, date]:
    halves = _RELEASE_DATE_PATTERN.fullmatch(part)
    try:
        if halves is not None:
            return parse_release(halves[1]), date.fromisoformat(halves[2])
    except ValueError:
        pass  # The release or the day does not exist.
    raise InvalidReleaseDatesError(
        f"{part[:_MAX_ECHO_LENGTH]!r} must be a release and its date, such as 18.0=2027-05-20."
    )


def _check_date_order(dates: Mapping[Release, date]) -> None:
    for (former, day), (later, next_day) in pairwise(dates.items()):
        if next_day < day:
            raise InvalidReleaseDatesError(f"{later} ({next_day}) is before {former} ({day}).")
