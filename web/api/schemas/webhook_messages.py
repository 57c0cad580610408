"""Schemas of messages to project webhooks, used only in the OpenAPI description."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from domain.alerts.listing.filters import STATUSES as ALERT_STATUSES
from domain.alerts.parsing.incoming_alert import Severity
from domain.core.types.base import Resource, Time, build_choices_schema
from domain.delivery.webhooks.types import TEST_EVENT, WebhookEvent

_Severity = Annotated[str, build_choices_schema(*Severity)]


class MessageProject(Resource):
    """Project that a message is about."""

    id: int
    name: str
    path_with_namespace: str
    web_url: str


class MessageAlert(Resource):
    """Alert at the time when the message was created."""

    id: int
    iid: int = Field(description="Number within the project.")
    title: str
    description: str | None
    severity: _Severity
    status: Annotated[str, build_choices_schema(*ALERT_STATUSES)]
    environment: str | None
    service: str | None
    monitoring_tool: str | None
    hosts: list[str]
    integration: str | None
    events: int = Field(description="Number of times that the alert was reported.")
    started_at: Time
    ended_at: Time | None
    last_event_at: Time
    labels: dict[str, str] = Field(
        description="The first 64 labels of the alert, each truncated to 1,000 characters."
    )
    web_url: str


class MessageIncident(Resource):
    """Incident at the time when the message was created."""

    id: int
    iid: int = Field(description="Number within the project.")
    title: str
    description: str = Field(description="Description in Markdown, truncated to 10,000 characters.")
    severity: _Severity
    status: Annotated[str, build_choices_schema("triggered", "acknowledged", "resolved")]
    alerts: list[int] = Field(description="Numbers (`iid`) of the first 100 alerts.")
    alerts_count: int
    created_at: Time
    acknowledged_at: Time | None
    resolved_at: Time | None
    web_url: str


class MessageData(Resource):
    """Data that every message contains."""

    project: MessageProject


class AlertMessageData(MessageData):
    """Project and alert in a message about an alert."""

    alert: MessageAlert


class IncidentMessageData(MessageData):
    """Project and incident in a message about an incident."""

    incident: MessageIncident


class AlertMessage(Resource):
    """Webhook message about an alert, with its type, time and data."""

    type: Annotated[
        str, build_choices_schema(*(each for each in WebhookEvent if each.is_alert_event))
    ]
    timestamp: Time
    data: AlertMessageData


class IncidentMessage(Resource):
    """Webhook message about an incident, with its type, time and data."""

    type: Annotated[
        str, build_choices_schema(*(each for each in WebhookEvent if not each.is_alert_event))
    ]
    timestamp: Time
    data: IncidentMessageData


class TestedMessage(Resource):
    """Message that tests whether a webhook can be reached."""

    type: Literal["webhook.tested"]
    timestamp: Time
    data: MessageData


#: Schemas of messages by type.
WEBHOOK_MESSAGES: Mapping[str, type[AlertMessage] | type[IncidentMessage] | type[TestedMessage]] = {
    **{
        each.value: AlertMessage if each.is_alert_event else IncidentMessage
        for each in WebhookEvent
    },
    TEST_EVENT: TestedMessage,
}
