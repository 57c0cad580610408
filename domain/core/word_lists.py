"""Joins words in sentences."""

from collections.abc import Iterable


def join_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words with commas and a conjunction, such as `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last
