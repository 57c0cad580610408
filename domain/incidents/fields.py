"""Checks the texts of an incident."""

from domain.alerts.reading.text import storable
from domain.errors import InvalidError
from domain.incidents.composing import LONGEST_DESCRIPTION, LONGEST_TITLE

LONGEST_NOTE = 10_000


def checked_title(text: str) -> str:
    """Return a title on one line, or raise InvalidError."""
    title = " ".join(storable(text).split())
    if not title or len(title) > LONGEST_TITLE:
        message = f"A title has 1 to {LONGEST_TITLE} characters."
        raise InvalidError(message, field="title")
    return title


def checked_description(text: str) -> str:
    """Return a description, which may be empty, or raise InvalidError."""
    return _checked_lines(text, "description", LONGEST_DESCRIPTION)


def checked_note(text: str) -> str:
    """Return a comment, or raise InvalidError."""
    note = _checked_lines(text, "body", LONGEST_NOTE)
    if not note:
        message = "Enter a comment."
        raise InvalidError(message, field="body")
    return note


def _checked_lines(text: str, field: str, longest: int) -> str:
    lines = storable(text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if len(lines) > longest:
        message = f"It can have at most {longest:,} characters; this has {len(lines):,}."
        raise InvalidError(message, field=field)
    return lines
