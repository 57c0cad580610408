"""Joins words with commas and a conjunction, for use in sentences."""

from collections.abc import Iterable


def join_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words with commas and a conjunction, as in `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last
