"""Webhooks of projects, and their deliveries."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from domain.outgoing.states import DestinationState
from domain.webhooks.delivery_states import DeliveryState
from domain.webhooks.endpoints import EndpointDetails, EndpointView, NewSecret, PauseReason
from domain.webhooks.events import ALL, TESTED, WebhookEvent
from domain.webhooks.log import DeliveryFilter, DeliveryView
from web.api.schemas.alerts.alert_conditions import ConditionsBody, ConditionsResource
from web.api.schemas.base import (
    KeysetQuery,
    OffsetQuery,
    RequiredText,
    RequiredWords,
    Resource,
    SecretResource,
    Text,
    Time,
    Words,
    one_of,
)
from web.api.schemas.webhooks.sent_tests import SentTest
from web.webhooks.changes import SentTest as TestOfWebhook

_Event = Annotated[str, one_of(ALL, *WebhookEvent)]
_EVENTS = f"`*` for all, or some of {', '.join(WebhookEvent)}."


class WebhookQuery(OffsetQuery):
    """A list of webhooks, the oldest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class WebhookBody(ConditionsBody):
    """A new webhook. The conditions are about events of alerts."""

    url: RequiredText = Field(description="An https or http URL.")
    events: RequiredWords = Field(description=_EVENTS)
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
    events: Words | None = Field(default=None, description=_EVENTS)
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


class Webhook(ConditionsResource):
    """A webhook, and the state of its delivery."""

    id: int
    url: str
    events: list[_Event]
    active: bool
    state: DestinationState
    created_at: Time
    paused_at: Time | None
    pause_reason: PauseReason | None
    previous_secret_expires_at: Time | None = Field(description="While the old secret signs.")
    backlog: int = Field(description="Deliveries that wait.")
    oldest_event_at: Time | None = Field(description="Of those that wait.")
    last_delivered_at: Time | None
    failures: int = Field(description="Failed attempts since the last success.")
    failing_since: Time | None
    last_failed_at: Time | None
    last_error: str | None
    next_try_at: Time | None

    @classmethod
    def of(cls, view: EndpointView) -> "Webhook":
        """Present a webhook."""
        return cls(**_fields(view))


class NewWebhook(Webhook, SecretResource):
    """A webhook with its secret, which is shown once."""

    secret: str = Field(description="Of signatures as in Standard Webhooks: `whsec_…`.")

    @classmethod
    def with_secret(cls, made: NewSecret) -> "NewWebhook":
        """Present a webhook whose secret was made just now."""
        return cls(**_fields(made.endpoint), secret=made.secret)


def _fields(view: EndpointView) -> dict[str, Any]:
    conditions = view.conditions.to_json()
    others = Webhook.model_fields.keys() - conditions.keys() - {"active"}
    shown = {name: getattr(view, name) for name in others}
    return {**shown, **conditions, "active": view.paused_at is None}


class WebhookTest(SentTest):
    """The result of a test message."""

    delivery_id: int | None = Field(description="Where the delivery log has it.")

    @classmethod
    def of_webhook(cls, sent: TestOfWebhook) -> Self:
        """Present a result."""
        return cls(**dict(SentTest.of(sent.attempt)), delivery_id=sent.delivery_id)


class WebhookDeliveryQuery(KeysetQuery):
    """Which deliveries of a webhook a list has, the newest first."""

    state: DeliveryState | None = None

    def of_webhook(self, webhook_id: int) -> DeliveryFilter:
        """Return the filter on the deliveries of a webhook."""
        return DeliveryFilter(endpoint_id=webhook_id, state=self.state)


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

    @classmethod
    def of(cls, view: DeliveryView) -> Self:
        """Present a delivery."""
        return cls.model_validate(view)


class WebhookDeliveryDetail(WebhookDelivery):
    """A delivery with what was sent and what came back."""

    headers: dict[str, str] = Field(description="Of the last attempt, without its signatures.")
    body: str = Field(description="As it is sent.")
    response: str | None = Field(description="The first bytes of the last response.")
