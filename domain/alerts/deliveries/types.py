"""Deliveries as all faces see them."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from domain.alerts.reading.payload_fields import pretty
from domain.types.base import Resource, Time, one_of

#: The lowest status code of a refusal.
REFUSED_FROM = 300
#: What became of a delivery.
Outcome = Annotated[str, one_of("accepted", "refused")]


def outcome_of(status_code: int) -> str:
    """Return `accepted` or `refused` for the status code of a response to a sender."""
    return "accepted" if status_code < REFUSED_FROM else "refused"


class Delivery(Resource):
    """A request of a sender, and its result."""

    id: int
    received_at: Time
    outcome: Annotated[Outcome, BeforeValidator(outcome_of)] = Field(validation_alias="status_code")
    status_code: int
    reason: str | None = Field(description="Why it was refused.")
    size: int = Field(description="In bytes as it was received.")
    sender: str = Field(description="An IP address, or the user who sent a test alert.")
    created: int = Field(
        validation_alias="opened", description="The number of alerts that were opened."
    )
    grouped: int = Field(
        validation_alias="joined",
        description="The number of alerts that were grouped into open ones.",
    )
    resolved: int = Field(description="The number of alerts that were resolved.")
    parse_warnings: tuple[str, ...]
    truncated_alerts: int = Field(description="The number of alerts that the sender left out.")
    replayed_as: int | None = Field(
        description="The delivery as which a refused one was stored after all."
    )
    dropped: int = Field(description="The number of items that a rule of the mapping dropped.")
    is_test: bool
    duration: int | None = Field(description="In microseconds.")
    skipped: int = Field(
        description="The number of similar deliveries that were rejected and not stored."
    )

    @property
    def changed(self) -> int:
        """The number of alerts that it opened, joined or resolved."""
        return self.created + self.grouped + self.resolved


def _pretty(body: bytes | None) -> str | None:
    return pretty(body) if body else None


class StoredDelivery(Delivery):
    """A delivery with its body."""

    body: Annotated[str | None, BeforeValidator(_pretty)] = Field(
        description="As indented JSON if it is that; null if it was not stored. Its bytes are at "
        "`…/body`."
    )
