"""Results of the doctor command's checks."""

from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from web.pages.templating import format_seconds


class CheckState(StrEnum):
    """State of a check. The states are ordered from best to worst."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class CheckResult(NamedTuple):
    """Result of a check, as a state and a message."""

    state: CheckState
    message: str


#: Constructors of results: no problem, a warning, and a failure.
ok, warning, failed = (partial(CheckResult, state) for state in CheckState)


def format_duration(length: timedelta) -> str:
    """Return a duration in words, such as `3 minutes`."""
    return format_seconds(length.total_seconds())
