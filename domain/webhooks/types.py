"""Webhooks of projects and their deliveries, as every face takes and shows them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.alerts.matching.types import LABELS, ConditionsBody, ConditionsResource
from domain.alerts.reading.payload_fields import pretty
from domain.outgoing.destinations import DestinationDetails
from domain.types.base import (
    KeysetQuery,
    Option,
    RequiredText,
    Resource,
    SecretResource,
    Text,
    Time,
    Words,
    one_of,
    one_text,
)
from domain.types.destinations import Destination, SentTest
from domain.webhooks.delivery_states import DeliveryState
from domain.webhooks.events import ALL, TESTED, WebhookEvent

_EVENTS = f"`*` for all, or some of {', '.join(WebhookEvent)}."


class PauseReason(StrEnum):
    """Why an endpoint is paused; the value is stored and shown."""

    #: A maintainer paused it.
    USER = "user"
    #: It took nothing for days.
    FAILURES = "failures"
    #: It answered 410 Gone.
    GONE = "gone"


@dataclass(frozen=True, kw_only=True)
class EndpointDetails(DestinationDetails):
    """What a maintainer decides about an endpoint."""

    events: tuple[str, ...]
    conditions: Conditions = field(default_factory=Conditions)


#: Names of events: a JSON array, or texts separated by commas or spaces.
_Events = Annotated[Words, BeforeValidator(one_text), Field(description=_EVENTS)]
_Labels = Annotated[Text | list[Text] | dict[Text, Text] | None, Option("--labels")]


class WebhookBody(ConditionsBody):
    """A new webhook. The conditions are about events of alerts."""

    url: RequiredText = Field(description="An https or http URL.")
    events: _Events = (ALL,)
    labels: _Labels = Field(default=None, description=LABELS)
    active: bool = Field(
        default=True, description="`false` creates it paused: it gets no events until resumed."
    )

    @property
    def details(self) -> EndpointDetails:
        """What is asked for."""
        return EndpointDetails(url=self.url, events=self.events, conditions=self.conditions())


class WebhookChangeBody(ConditionsBody):
    """Changes to a webhook; omitted fields are kept."""

    url: Text | None = None
    events: _Events | None = None
    labels: _Labels = Field(default=None, description=LABELS)
    active: bool | None = Field(
        default=None, description="`true` resumes a webhook that was paused, for whatever reason."
    )

    def details(self, present: EndpointDetails) -> EndpointDetails:
        """Return what is asked for, what was left out as it is."""
        return EndpointDetails(
            url=present.url if self.url is None else self.url,
            events=present.events if self.events is None else self.events,
            conditions=self.conditions(present.conditions),
        )


class Webhook(Destination, ConditionsResource):
    """A webhook, and the state of its delivery."""

    events: list[Annotated[str, one_of(ALL, *WebhookEvent)]]
    active: bool
    pause_reason: PauseReason | None

    @property
    def details(self) -> EndpointDetails:
        """What a maintainer has decided."""
        conditions = self.model_dump(include={*ConditionsResource.model_fields})
        return EndpointDetails(
            url=self.url, events=tuple(self.events), conditions=conditions_from(conditions)
        )


class NewWebhook(Webhook, SecretResource):
    """A webhook with its secret, which is shown once."""

    secret: str = Field(description="Of signatures as in Standard Webhooks: `whsec_…`.")


class WebhookTest(SentTest):
    """The result of a test message."""

    delivery_id: int | None = Field(description="Where the delivery log has it.")


class WebhookDeliveryQuery(KeysetQuery):
    """Which deliveries of a webhook a list has, the newest first."""

    state: DeliveryState | None = None


class WebhookDelivery(Resource):
    """A message to a webhook, and the result of the last attempt."""

    id: int
    message_id: str = Field(description="The header webhook-id: the same at each attempt.")
    event: Annotated[str, one_of(*WebhookEvent, TESTED)]
    state: DeliveryState
    created_at: Time
    tries: int = Field(description="Attempts since it was queued, or sent again.")
    last_try_at: Time | None
    next_try_at: Time | None = Field(description="While it waits.")
    status_code: int | None = Field(description="Of the last response, if there was one.")
    duration: int | None = Field(description="Of the last attempt, in milliseconds.")
    error: str | None


class WebhookDeliveryDetail(WebhookDelivery):
    """A delivery with what was sent and what came back."""

    headers: dict[str, str] = Field(description="Of the last attempt, without its signatures.")
    body: str = Field(description="As it is sent.")
    response: str | None = Field(description="The first bytes of the last response.")

    @property
    def pretty_body(self) -> str:
        """The body with indentation."""
        return pretty(self.body.encode())
