"""Comparable release numbers, such as 17.10 after 17.9, and dates of releases."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

_RELEASE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_BETWEEN = re.compile(r"[\s,;]+")
_DATED = re.compile(r"([0-9.]+)=((?:19[7-9]|2[0-9]{2})[0-9]-[0-9]{2}-[0-9]{2})")
_MOST = 100
#: Maximum number of characters of a malformed part that an error repeats.
_LONGEST_ECHO = 40


@dataclass(frozen=True, order=True)
class Release:
    """A release of the interfaces."""

    major: int
    minor: int

    def __str__(self) -> str:
        """Return the release as text."""
        return f"{self.major}.{self.minor}"


def parse_release(text: str) -> Release:
    """Return the release of a text such as 16.0.

    Raise ValueError if it is malformed.
    """
    found = _RELEASE.fullmatch(text)
    if found is None:
        raise ValueError("A release consists of two numbers, such as 18.0.")
    return Release(int(found[1]), int(found[2]))


class ReleaseDatesError(ValueError):
    """A malformed part of the text. The message is a sentence that quotes it."""


def parse_release_dates(text: str) -> Mapping[Release, date]:
    """Return the dates by release, in ascending order, from a text such as `17.0=2024-05-16, …`.

    Entries are separated by spaces, line breaks, commas or semicolons. Raise ReleaseDatesError if
    the text is malformed.
    """
    found: dict[Release, date] = {}
    for part in filter(None, _BETWEEN.split(_EQUALS.sub("=", text))):
        release, day = _dated(part)
        if release in found:
            raise ReleaseDatesError(f"Release {release} has two dates.")
        found[release] = day
    if len(found) > _MOST:
        raise ReleaseDatesError(f"At most {_MOST} releases can have a date.")
    ordered = {release: found[release] for release in sorted(found)}
    _check_order(ordered)
    return ordered


def written_release_dates(dates: Mapping[Release, date]) -> str:
    """Return dates as text with one per line."""
    return "\n".join(f"{release}={day.isoformat()}" for release, day in dates.items())


def _dated(part: str) -> tuple[Release, date]:
    halves = _DATED.fullmatch(part)
    try:
        if halves is not None:
            return parse_release(halves[1]), date.fromisoformat(halves[2])
    except ValueError:
        pass  # The release or the day does not exist.
    raise ReleaseDatesError(f"{part[:_LONGEST_ECHO]!r} is not a release with its date.")


def _check_order(dates: Mapping[Release, date]) -> None:
    for (former, day), (later, next_day) in pairwise(dates.items()):
        if next_day < day:
            raise ReleaseDatesError(f"{later} ({next_day}) is before {former} ({day}).")
