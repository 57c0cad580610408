"""The state of a delivery."""

from enum import StrEnum

from domain.errors import QueryError


class DeliveryState(StrEnum):
    """What became of a delivery; the value is stored and shown."""

    #: It waits to be sent, for the first time or again.
    WAITING = "waiting"
    DELIVERED = "delivered"
    #: It was given up; a user can send it again.
    FAILED = "failed"


def read_state(text: str | None) -> DeliveryState | None:
    """Return the state of that name, None without a name, or raise QueryError."""
    if not text:
        return None
    try:
        return DeliveryState(text)
    except ValueError as error:
        message = f"state must be one of {', '.join(DeliveryState)}."
        raise QueryError(message, field="state") from error
