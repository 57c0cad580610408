"""API types for destinations of the audit log."""

from pydantic import Field

from domain.core.types.base import Body, RequiredText, SecretResource, Text, Time
from domain.delivery.destination_types import Destination


class AuditStreamBody(Body):
    """Request body for creating a destination of the audit log."""

    url: RequiredText = Field(description="An https or http URL.")
    paused: bool = Field(
        default=False,
        description="True to create the destination paused. Events are queued until it is resumed.",
    )


class AuditStreamChangeBody(Body):
    """Changes to a destination. Omitted fields remain unchanged."""

    url: Text | None = None
    paused: bool | None = Field(
        default=None,
        description="True to pause the destination, false to resume it and retry immediately.",
    )


class AuditStream(Destination):
    """A destination of the audit log with its delivery status."""

    set_aside: int = Field(
        description="Number of events that the receiver rejected repeatedly. Resume the "
        "destination to send them again."
    )
    dropped: int = Field(
        description="Number of events that were dropped because they waited too long."
    )
    last_dropped_at: Time | None


class NewAuditStream(AuditStream, SecretResource):
    """A destination with its secret, which is shown once."""

    secret: str = Field(description="Signing secret in the Standard Webhooks format: `whsec_…`.")
