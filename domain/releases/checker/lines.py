"""Lines of a text."""

import re
from bisect import bisect_right
from collections.abc import Iterator

from domain.releases.checker.deadline import paced


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, from 1, without a copy of the whole text."""
    yield from paced(_lines(text))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at, number = 0, 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield number, text[at:end].rstrip("\r")
        at, number = end + 1, number + 1


class LineNumbers:
    """The line of each position in a text."""

    def __init__(self, text: str) -> None:
        """Note where lines begin."""
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def __call__(self, position: int) -> int:
        """Return the number of the line, from 1."""
        return bisect_right(self._ends, position - 1) + 1
