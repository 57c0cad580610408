"""Lines of a text."""

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
