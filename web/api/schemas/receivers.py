"""Schemas of requests from monitoring systems, used only in the OpenAPI description.

`domain/alerts/formats` parses the requests and accepts nearly any JSON. A field with an unexpected
type is converted to text or treated as missing.
"""

from typing import Any, Literal, Union

from pydantic import ConfigDict, Field, RootModel

from domain.alerts.formats.base import TIME_NOTATIONS
from domain.alerts.formats.http_endpoint import GenericAlert
from domain.alerts.formats.registry import FORMATS
from domain.core.types.base import Body, Resource


class GenericAlerts(RootModel[GenericAlert | list[GenericAlert]]):
    """One alert or an array of alerts."""


class AnyAlerts(RootModel[Union[tuple(each.body for each in FORMATS)]]):  # type: ignore[misc]  # noqa: UP007
    """Alerts in the format of the integration's type."""


class ReceivedAlert(Resource):
    """Alert that the request created, grouped or resolved."""

    iid: int
    title: str


class ReceivedAlerts(RootModel[list[ReceivedAlert]]):
    """Alerts in a request, in the order of the items in the request body."""


class PagerDutyPayload(Body):
    """Payload of an alert event."""

    model_config = ConfigDict(extra="allow")

    summary: str = Field(min_length=1)
    source: str = Field(min_length=1)
    severity: Literal["critical", "error", "warning", "info"]
    timestamp: str = Field(default="", description=f"Time, {TIME_NOTATIONS}")
    component: str = ""
    group: str = ""
    custom_details: dict[str, Any] = Field(default_factory=dict)


class PagerDutyEvent(Body):
    """Alert event in the format of PagerDuty's Events API v2."""

    model_config = ConfigDict(extra="allow")

    routing_key: str = Field(description="Authorization key of an HTTP endpoint.")
    event_action: Literal["trigger", "acknowledge", "resolve"]
    dedup_key: str = Field(
        default="",
        max_length=255,
        description="Deduplication key. Required for `acknowledge` and `resolve`.",
    )
    payload: PagerDutyPayload | None = Field(
        default=None, description="Details of the alert. Required for `trigger`."
    )
    client: str = ""


class ChangePayload(Body):
    """Payload of a change event."""

    summary: str = Field(min_length=1)
    source: str = ""
    timestamp: str = Field(default="", description=f"Time, {TIME_NOTATIONS}")


class ChangeEvent(Body):
    """Change event in the format of PagerDuty's Events API v2."""

    routing_key: str = Field(description="Authorization key of an HTTP endpoint.")
    payload: ChangePayload


class AcceptedEvent(Resource):
    """Response to an accepted event, in the format of PagerDuty's API."""

    status: Literal["success"]
    message: str
    dedup_key: str = Field(default="", description="Deduplication key of an alert event.")
