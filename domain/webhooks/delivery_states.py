"""The state of a delivery."""

from enum import StrEnum


class DeliveryState(StrEnum):
    """What became of a delivery; the value is stored and shown."""

    #: It waits to be sent, for the first time or again.
    WAITING = "waiting"
    DELIVERED = "delivered"
    #: It was given up; a user can send it again.
    FAILED = "failed"
