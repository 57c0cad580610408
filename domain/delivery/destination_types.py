"""API types that destinations of all kinds share."""

from datetime import datetime, timedelta
from typing import Literal, Self

from pydantic import Field

from domain.core.grace_period import GracePeriod
from domain.core.types.base import Body, RequestTime, Resource, Time
from domain.core.types.pagination import OffsetQuery
from domain.delivery.outgoing.attempts import DeliveryAttempt
from domain.delivery.outgoing.destinations import DestinationState
from domain.delivery.outgoing.signing import DEFAULT_SECRET_OVERLAP
from domain.delivery.outgoing.urls import parse_outgoing_url

_OVERLAP_KEYS = tuple(each.key for each in GracePeriod)


class DestinationQuery(OffsetQuery):
    """Query parameters for a list of destinations, oldest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class SecretRotationBody(Body):
    """Request body for rotating a secret, with the time for which the old secret is also used."""

    previous_secret_expires_at: RequestTime | None = Field(
        default=None,
        description="Time until which messages are also signed with the old secret, at most 90 "
        "days from now. Defaults to one day from now.",
    )
    overlap: Literal[*_OVERLAP_KEYS] | None = Field(  # type: ignore[valid-type]
        default=None,
        description="Duration from now for which messages are also signed with the old secret. "
        "Used if `previous_secret_expires_at` is omitted.",
    )

    def compute_expiry(self, now: datetime) -> datetime:
        """Return the time until which messages are also signed with the old secret."""
        if self.previous_secret_expires_at is not None:
            return self.previous_secret_expires_at
        length: timedelta = (
            GracePeriod.from_key(self.overlap).length if self.overlap else DEFAULT_SECRET_OVERLAP
        )
        return now + length


class Destination(Resource):
    """A destination with its delivery status."""

    id: int
    url: str
    state: DestinationState
    created_at: Time
    paused_at: Time | None
    previous_secret_expires_at: Time | None = Field(
        description="Time until which messages are also signed with the old secret. Null if only "
        "the current secret is used."
    )
    backlog: int = Field(description="Number of messages in the queue.")
    oldest_event_at: Time | None = Field(description="Time of the oldest message in the queue.")
    last_delivered_at: Time | None
    failures: int = Field(description="Number of failed attempts since the last success.")
    failing_since: Time | None
    last_failed_at: Time | None
    last_error: str | None
    next_try_at: Time | None

    @property
    def redacted_url(self) -> str:
        """URL without parts that may be secret."""
        return parse_outgoing_url(self.url).redacted

    @property
    def is_encrypted(self) -> bool:
        """True if messages are sent over TLS."""
        return parse_outgoing_url(self.url).is_encrypted


class SentTest(Resource):
    """The result of a test message."""

    delivered: bool
    status: int | None = Field(description="Status code of the response, if there was one.")
    error: str | None
    duration_ms: int | None

    @classmethod
    def from_result(cls, result: DeliveryAttempt, **more: object) -> Self:
        """Return the API representation of a delivery attempt."""
        return cls.model_validate(
            {
                "delivered": result.problem is None,
                "status": result.status,
                "error": result.problem,
                "duration_ms": result.milliseconds,
                **more,
            }
        )
