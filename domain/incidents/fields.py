"""The kinds of an incident's fields, how long texts can be, and how they are checked."""

from enum import StrEnum
from typing import NamedTuple

from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.text import storable
from domain.errors import InvalidError

LONGEST_TITLE = 255
LONGEST_DESCRIPTION = 50_000
LONGEST_NOTE = 10_000
#: The most alerts that a request links.
MOST_AT_ONCE = 200
_SEVERITIES = tuple(Severity)
#: The urgency of critical.
HIGHEST_URGENCY = len(_SEVERITIES) - 1
#: The most linked alerts that an incident names; it has the number of all.
MOST_NAMED_ALERTS = 100


class IncidentStatus(StrEnum):
    """The status of an incident."""

    TRIGGERED = "triggered"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


STATUSES = tuple(status.value for status in IncidentStatus)
OPEN_STATUSES = (IncidentStatus.TRIGGERED.value, IncidentStatus.ACKNOWLEDGED.value)


def urgency_of(severity: Severity) -> int:
    """Return the severity as it is stored: 0 for unknown to 5 for critical."""
    return HIGHEST_URGENCY - severity.rank


def severity_of(urgency: int) -> Severity:
    """Return the severity that is stored so."""
    return _SEVERITIES[HIGHEST_URGENCY - urgency]


class Person(NamedTuple):
    """Somebody who did something to an incident, or looks after it."""

    #: None if the account was deleted.
    id: int | None
    username: str


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
