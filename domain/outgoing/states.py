"""The state of a destination."""

from datetime import datetime, timedelta
from enum import StrEnum

from models.destination import Destination

#: A destination that has taken nothing for so long is failing: people are told.
FAILING_AFTER = timedelta(days=1)


class DestinationState(StrEnum):
    """The state of a destination; the value is shown."""

    ACTIVE = "active"
    RETRYING = "retrying"
    FAILING = "failing"
    PAUSED = "paused"


def state_of(row: Destination, *, now: datetime) -> DestinationState:
    """Return the state of a destination."""
    if row.paused_at is not None:
        return DestinationState.PAUSED
    if row.failing_since is None:
        return DestinationState.ACTIVE
    is_failing = now - row.failing_since >= FAILING_AFTER
    return DestinationState.FAILING if is_failing else DestinationState.RETRYING
