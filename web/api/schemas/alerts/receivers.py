"""What monitoring systems post. `domain/alerts/reading` reads it: here it is described only.

Nearly every JSON is read: a field of an unexpected type counts as a text, or as absent.
"""

from typing import Any, Literal

from pydantic import ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel

from web.api.schemas.base import Body, Resource

_TIME = "RFC 3339, RFC 2822, or seconds or milliseconds since 1970."


class GenericAlert(Body):
    """An alert; all fields are optional, others are kept and shown."""

    model_config = ConfigDict(extra="allow")

    title: str = Field(default="New: Alert", description="200 characters are shown in lists.")
    description: str = ""
    start_time: str | int | float = Field(default="", description=_TIME)
    end_time: str | int | float = Field(default="", description=f"It resolves the alert. {_TIME}")
    service: str = ""
    monitoring_tool: str = ""
    hosts: str | list[str] = ""
    severity: str = Field(
        default="critical", description="critical, high, medium, low, info or unknown."
    )
    fingerprint: str | int | list[Any] = Field(
        default="", description="Alerts with the same one are grouped."
    )
    platform_environment_name: str = ""
    runbook: str = ""


class MetricsItem(Body):
    """One alert of Alertmanager."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    starts_at: str = Field(description=_TIME)
    status: str = Field(default="firing", description="firing or resolved.")
    labels: dict[str, Any] = Field(
        default_factory=dict, description="alertname is the last choice of a title."
    )
    annotations: dict[str, Any] = Field(
        default_factory=dict, description="title or summary is the title."
    )
    ends_at: str = ""
    generator_url: str = Field(default="", alias="generatorURL")
    fingerprint: str = ""


class MetricsAlerts(Body):
    """The webhook of Alertmanager, which Grafana sends as well."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    version: str
    group_key: str
    status: str
    receiver: str
    group_labels: dict[str, Any]
    common_labels: dict[str, Any]
    common_annotations: dict[str, Any]
    external_url: str = Field(alias="externalURL")
    alerts: list[MetricsItem] = Field(min_length=1)
    truncated_alerts: int = Field(default=0, description="Alerts that the sender left out.")


class GenericAlerts(RootModel[GenericAlert | list[GenericAlert]]):
    """An alert, or an array of them."""


class AnyAlerts(RootModel[GenericAlert | list[GenericAlert] | MetricsAlerts]):
    """Alerts in the format of the integration's type."""


class ReceivedAlert(Resource):
    """An alert that the request created, grouped or resolved."""

    iid: int
    title: str


class ReceivedAlerts(RootModel[list[ReceivedAlert]]):
    """The alerts of a request, in the order of its items."""


class PagerDutyPayload(Body):
    """What an event is about."""

    model_config = ConfigDict(extra="allow")

    summary: str = Field(min_length=1)
    source: str = Field(min_length=1)
    severity: Literal["critical", "error", "warning", "info"]
    timestamp: str = Field(default="", description=_TIME)
    component: str = ""
    group: str = ""
    custom_details: dict[str, Any] = Field(default_factory=dict)


class PagerDutyEvent(Body):
    """An alert event of PagerDuty's Events API v2."""

    model_config = ConfigDict(extra="allow")

    routing_key: str = Field(description="The authorization key of an HTTP endpoint.")
    event_action: Literal["trigger", "acknowledge", "resolve"]
    dedup_key: str = Field(
        default="", max_length=255, description="Needed to acknowledge and resolve."
    )
    payload: PagerDutyPayload | None = Field(default=None, description="Needed to trigger.")
    client: str = ""


class ChangePayload(Body):
    """What a change event is about."""

    summary: str = Field(min_length=1)
    source: str = ""
    timestamp: str = Field(default="", description=_TIME)


class ChangeEvent(Body):
    """A change event of PagerDuty's Events API v2."""

    routing_key: str = Field(description="The authorization key of an HTTP endpoint.")
    payload: ChangePayload


class AcceptedEvent(Resource):
    """PagerDuty's response to an accepted event."""

    status: Literal["success"]
    message: str
    dedup_key: str = Field(default="", description="Of an alert event.")
