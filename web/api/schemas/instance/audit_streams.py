"""Destinations of the audit log."""

from typing import Any, Literal

from pydantic import Field

from domain.audit.streaming.destinations import NewSecret, StreamView
from domain.outgoing.states import DestinationState
from web.api.schemas.base import (
    Body,
    GivenTime,
    OffsetQuery,
    RequiredText,
    Resource,
    SecretResource,
    Text,
    Time,
)


class AuditStreamQuery(OffsetQuery):
    """A list of destinations, the oldest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class AuditStreamBody(Body):
    """A new destination."""

    url: RequiredText = Field(description="An https or http URL.")
    paused: bool = Field(
        default=False, description="`true` creates it paused: events wait until it is resumed."
    )


class AuditStreamChangeBody(Body):
    """Changes to a destination; omitted fields are kept."""

    url: Text | None = None
    paused: bool | None = Field(
        default=None, description="`false` also ends a pause after failures."
    )


class SecretRotationBody(Body):
    """How long the old secret also signs."""

    previous_secret_expires_at: GivenTime | None = Field(
        default=None, description="At most 90 days from now; by default a day from now."
    )


class AuditStream(Resource):
    """A destination of the audit log, and the state of its delivery."""

    id: int
    url: str
    state: DestinationState
    created_at: Time
    paused_at: Time | None
    previous_secret_expires_at: Time | None = Field(description="While the old secret signs.")
    backlog: int = Field(description="Events that wait.")
    oldest_event_at: Time | None = Field(description="Of those that wait.")
    set_aside: int = Field(
        description="Events that the receiver refused, again and again. Resume the destination "
        "to send them again."
    )
    last_delivered_at: Time | None
    failures: int = Field(description="Failed attempts since the last success.")
    failing_since: Time | None
    last_failed_at: Time | None
    last_error: str | None
    next_try_at: Time | None
    dropped: int = Field(description="Events that waited too long and were given up.")
    last_dropped_at: Time | None

    @classmethod
    def of(cls, view: StreamView) -> "AuditStream":
        """Present a destination."""
        return cls(**_fields(view))


class NewAuditStream(AuditStream, SecretResource):
    """A destination with its secret, which is shown once."""

    secret: str = Field(description="Of signatures as in Standard Webhooks: `whsec_…`.")

    @classmethod
    def with_secret(cls, made: NewSecret) -> "NewAuditStream":
        """Present a destination whose secret was made just now."""
        return cls(**_fields(made.stream), secret=made.secret)


def _fields(view: StreamView) -> dict[str, Any]:
    return {name: getattr(view, name) for name in AuditStream.model_fields}
