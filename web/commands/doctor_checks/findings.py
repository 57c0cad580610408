"""What a check finds."""

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """How well something is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(NamedTuple):
    """What a check has found, in a sentence."""

    state: State
    message: str


def ok(message: str) -> Finding:
    """Return that all is well."""
    return Finding(State.OK, message)


def warning(message: str) -> Finding:
    """Return that somebody should look at it."""
    return Finding(State.WARNING, message)


def failed(message: str) -> Finding:
    """Return that something does not work."""
    return Finding(State.FAILED, message)
