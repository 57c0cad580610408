"""Comparable release numbers: 17.10 comes after 17.9."""

import re
from dataclasses import dataclass

_RELEASE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


@dataclass(frozen=True, order=True)
class Release:
    """A release of the interfaces."""

    major: int
    minor: int

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"{self.major}.{self.minor}"


def parse_release(text: str) -> Release:
    """Return the release of a text such as 16.0; raise ValueError if it is none."""
    found = _RELEASE.fullmatch(text)
    if found is None:
        message = "A release is written as two numbers, such as 18.0."
        raise ValueError(message)
    return Release(int(found[1]), int(found[2]))
