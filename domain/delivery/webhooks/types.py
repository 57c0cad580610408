"""API types for webhooks of projects and their deliveries."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from domain.alerts.matching.conditions import (
    LABELS_DESCRIPTION,
    AlertConditions,
    ConditionsBody,
    ConditionsResource,
    parse_conditions,
)
from domain.alerts.parsing.payload_fields import format_payload
from domain.core.errors import InvalidError, QueryError
from domain.core.labeled_enums import LabeledEnum
from domain.core.types.base import (
    GitLabQuery,
    Option,
    RequiredText,
    Resource,
    SecretResource,
    Text,
    Time,
    Words,
    build_choices_schema,
    join_option_values,
)
from domain.core.types.pagination import KeysetQuery
from domain.delivery.destination_types import Destination, DestinationQuery, SentTest
from domain.delivery.outgoing.destinations import DestinationDetails


class WebhookEvent(LabeledEnum):
    """An event for which webhooks are called. Its value is the `type` of the message."""

    ALERT_OPENED = "alert.opened", "Alert opened", "A report opened a new alert."
    ALERT_ACKNOWLEDGED = (
        "alert.acknowledged",
        "Alert acknowledged",
        "A user acknowledged the alert.",
    )
    ALERT_IGNORED = "alert.ignored", "Alert ignored", "A user ignored the alert."
    ALERT_RESOLVED = (
        "alert.resolved",
        "Alert resolved",
        "A report, a user or an incident resolved the alert.",
    )
    ALERT_REOPENED = "alert.reopened", "Alert reopened", "The alert is triggered again."
    ALERT_RAISED = "alert.raised", "Alert raised", "A report raised the severity of the alert."
    INCIDENT_OPENED = "incident.opened", "Incident opened", "A user or a rule opened an incident."
    INCIDENT_ACKNOWLEDGED = (
        "incident.acknowledged",
        "Incident acknowledged",
        "A user acknowledged the incident.",
    )
    INCIDENT_RESOLVED = (
        "incident.resolved",
        "Incident resolved",
        "A user closed the incident, or all of its alerts were resolved.",
    )
    INCIDENT_REOPENED = "incident.reopened", "Incident reopened", "The incident is triggered again."

    @property
    def is_alert_event(self) -> bool:
        """True if the event is about an alert, false if it is about an incident."""
        return self.startswith("alert.")


#: Type of a test message. Endpoints cannot subscribe to it.
TEST_EVENT = "webhook.tested"
#: Wildcard for all events, including events added in later versions.
ALL_EVENTS = "*"


def normalize_event_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of events in a fixed order.

    `*` stands for all events. Raise InvalidError if a name is unknown, or if there are no names.
    """
    given = set(names)
    if not given:
        raise InvalidError("Choose at least one event.", field="events")
    if unknown := sorted(given - {*WebhookEvent, ALL_EVENTS}):
        known = ", ".join((ALL_EVENTS, *WebhookEvent))
        raise InvalidError(f'"{unknown[0][:50]}" is not one of {known}.', field="events")
    return (
        (ALL_EVENTS,)
        if ALL_EVENTS in given
        else tuple(each.value for each in WebhookEvent if each in given)
    )


def is_subscribed(chosen: Iterable[str], event: WebhookEvent) -> bool:
    """Return whether an endpoint that subscribes to the chosen events receives an event."""
    return any(each in (ALL_EVENTS, event.value) for each in chosen)


def is_subscribed_to_alerts(chosen: Iterable[str]) -> bool:
    """Return whether an endpoint that subscribes to the chosen events receives alert events."""
    return any(each == ALL_EVENTS or each.startswith("alert.") for each in chosen)


class DeliveryState(StrEnum):
    """The state of a webhook delivery: waiting, delivered or failed."""

    #: State of a delivery that waits for its first attempt or a retry.
    WAITING = "waiting"
    DELIVERED = "delivered"
    #: State of a delivery that was given up. A user can send it again.
    FAILED = "failed"


def parse_delivery_state(text: str | None) -> DeliveryState | None:
    """Return the delivery state with the given name, or None if no name is given.

    Raise QueryError if the name is unknown.
    """
    if not text:
        return None
    try:
        return DeliveryState(text)
    except ValueError as error:
        message = f"`state` must be one of {', '.join(DeliveryState)}."
        raise QueryError(message, field="state") from error


_EVENTS_DESCRIPTION = f"Events to send: `*` for all events, or some of {', '.join(WebhookEvent)}."


class PauseReason(StrEnum):
    """The reason why an endpoint is paused."""

    #: Pause by a maintainer.
    USER = "user"
    #: Pause after several days in which the endpoint accepted no messages.
    FAILURES = "failures"
    #: Pause because the endpoint responded with 410 Gone.
    GONE = "gone"
    #: Pause because the application that set the URL no longer has access.
    APPLICATION = "application"


@dataclass(frozen=True, kw_only=True)
class EndpointDetails(DestinationDetails):
    """The properties of an endpoint that maintainers choose."""

    events: tuple[str, ...]
    conditions: AlertConditions = field(default_factory=AlertConditions)


#: Names of events: a JSON array, or text separated by commas or spaces.
_Events = Annotated[
    Words, BeforeValidator(join_option_values), Field(description=_EVENTS_DESCRIPTION)
]
_Labels = Annotated[Text | list[Text] | dict[Text, Text] | None, Option("--labels")]


class WebhookBody(ConditionsBody):
    """Request body for creating a webhook. The conditions apply to alert events."""

    url: RequiredText = Field(description="An https or http URL.")
    events: _Events = (ALL_EVENTS,)
    labels: _Labels = Field(default=None, description=LABELS_DESCRIPTION)
    active: bool = Field(
        default=True,
        description=(
            "False to create the webhook paused. It receives no events until it is resumed."
        ),
    )

    @property
    def details(self) -> EndpointDetails:
        """The properties of the new webhook."""
        return EndpointDetails(url=self.url, events=self.events, conditions=self.build_conditions())


class WebhookChangeBody(ConditionsBody):
    """Changes to a webhook. Omitted fields remain unchanged."""

    url: Text | None = None
    events: _Events | None = Field(default=None, description=_EVENTS_DESCRIPTION)
    labels: _Labels = Field(default=None, description=LABELS_DESCRIPTION)
    active: bool | None = Field(
        default=None,
        description=(
            "False to pause the webhook. True to resume it, regardless of the pause reason."
        ),
    )

    def apply_to_details(self, endpoint_details: EndpointDetails) -> EndpointDetails:
        """Return the current properties with the requested changes."""
        return EndpointDetails(
            url=endpoint_details.url if self.url is None else self.url,
            events=endpoint_details.events if self.events is None else self.events,
            conditions=self.build_conditions(endpoint_details.conditions),
        )


class Webhook(Destination, ConditionsResource):
    """A webhook with its delivery status."""

    events: list[Annotated[str, build_choices_schema(ALL_EVENTS, *WebhookEvent)]]
    active: bool
    pause_reason: PauseReason | None

    @property
    def details(self) -> EndpointDetails:
        """The properties that maintainers choose."""
        conditions = self.model_dump(include={*ConditionsResource.model_fields})
        return EndpointDetails(
            url=self.url, events=tuple(self.events), conditions=parse_conditions(conditions)
        )


class HookQuery(DestinationQuery, GitLabQuery):
    """Query parameters for a list of webhooks in GitLab's API format, oldest first."""


class Hook(Resource):
    """A webhook in the format of GitLab's API.

    The fields for events are omitted, because Gatebell does not send the events of GitLab's
    webhooks.
    """

    id: int
    url: str
    project_id: int
    created_at: Time
    #: Name, which is always empty because webhooks have no names.
    name: Literal[""] = ""
    description: Literal[""] = ""
    enable_ssl_verification: Literal[True] = True
    #: Status of the webhook: `disabled` while it is paused.
    alert_status: Literal["executable", "disabled"]
    #: Time of the next attempt after a failure.
    disabled_until: Time | None


class NewWebhook(Webhook, SecretResource):
    """A webhook with its secret, which is shown once."""

    secret: str = Field(description="Signing secret in the Standard Webhooks format: `whsec_…`.")


class WebhookTest(SentTest):
    """The result of a test message."""

    delivery_id: int | None = Field(description="ID of the test in the delivery log.")


class WebhookDeliveryQuery(KeysetQuery):
    """Query parameters for a list of a webhook's deliveries, newest first."""

    state: DeliveryState | None = None


class WebhookDelivery(Resource):
    """A message to a webhook, and the result of the last attempt."""

    id: int
    message_id: str = Field(
        description="Value of the `webhook-id` header, the same for each attempt."
    )
    event: Annotated[str, build_choices_schema(*WebhookEvent, TEST_EVENT)]
    state: DeliveryState
    created_at: Time
    tries: int = Field(description="Number of attempts since the delivery was last queued.")
    last_try_at: Time | None
    next_try_at: Time | None = Field(
        description="Time of the next attempt. Null if no attempt is scheduled."
    )
    status_code: int | None = Field(
        description="Status code of the last response, if there was one."
    )
    duration: int | None = Field(description="Duration of the last attempt, in milliseconds.")
    error: str | None


class WebhookDeliveryDetail(WebhookDelivery):
    """A delivery with its request and response."""

    headers: dict[str, str] = Field(
        description="Headers of the last attempt, without the signatures."
    )
    body: str = Field(description="Body of the message.")
    response: str | None = Field(description="The first bytes of the last response.")

    @property
    def pretty_body(self) -> str:
        """The body of the message, as indented JSON if possible."""
        return format_payload(self.body.encode())
