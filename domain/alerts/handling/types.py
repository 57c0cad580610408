"""Resources and request bodies for single alerts, their activity, and changes to several alerts."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from domain.alerts.handling.activity import ActivityEntryKind
from domain.alerts.listing.types import Alert, AlertFilters, RowId, Status
from domain.alerts.storing.lifecycle import Action
from domain.core.types.base import Body, Numbers, Resource, Text, Time
from domain.core.types.pagination import KeysetQuery

#: Maximum number of alerts in one change. It is larger than any page of the alert list.
MAX_ALERTS_PER_CHANGE = 200


class AlertBody(Body):
    """Changes to an alert. Omitted fields are not changed."""

    status: Literal["triggered", "acknowledged", "resolved", "ignored"] | None = None
    assignee: Text | None = Field(
        default=None,
        description="Username of the assignee. An empty string or null removes the assignee.",
    )
    assignee_id: RowId | None = Field(
        default=None, description="User ID of the assignee. 0 or null removes the assignee."
    )


class AlertStatusBody(Body):
    """A new status for several alerts, which are selected by number or by a filter."""

    status: Literal["triggered", "acknowledged", "resolved", "ignored"]
    iids: Numbers | None = Field(
        default=None, description=f"Numbers (iid) of the alerts, at most {MAX_ALERTS_PER_CHANGE}."
    )
    filter: AlertFilters | None = Field(
        default=None,
        description=(
            f"Filter that selects alerts. The newest {MAX_ALERTS_PER_CHANGE} matching alerts are "
            "changed."
        ),
    )
    cursor: str = Field(
        default="",
        description="Value of `next_cursor` in the previous response, to change the next alerts. "
        "Requires `filter`.",
    )


class AlertGrouping(Resource):
    """The reason why reports are grouped into an alert."""

    sentence: str
    fields: Annotated[dict[str, str], BeforeValidator(dict)] = Field(
        description="Fields that the fingerprint was computed from."
    )


class AlertIntegration(Resource):
    """An integration that has reported an alert."""

    id: int
    name: str


class AlertDetail(Alert):
    """An alert with all its fields. Fields from a payload that is no longer stored are null."""

    description: str | None
    runbook: str | None
    query: str | None = Field(description="Query expression of the alert rule.")
    incident_markdown: str | None = Field(validation_alias="markdown")
    y_label: str | None
    generator_url: str | None = Field(description="URL of the graph in the monitoring tool.")
    severity_reason: str = Field(description="Reason for the severity of the alert.")
    grouping: AlertGrouping
    integration_id: int | None
    integrations: tuple[AlertIntegration, ...] = Field(
        description="Integrations that have reported the alert, starting with the integration "
        "that it belongs to."
    )
    received_at: Time | None = Field(
        description="Time at which the report with the current field values was received."
    )
    details: Annotated[dict[str, str], BeforeValidator(dict)] = Field(
        validation_alias="payload_fields",
        description="Fields of the payload, by path in dot notation.",
    )


class StatusConflict(Resource):
    """An alert that was not changed because another unresolved alert has the same fingerprint."""

    iid: int
    title: str


class StatusReport(Resource):
    """Result of a status change for several alerts."""

    status: Status
    changed: tuple[int, ...] = Field(description="Numbers (iid) of the alerts that were changed.")
    unchanged: tuple[int, ...] = Field(
        description="Numbers (iid) of the alerts that already had the status."
    )
    conflicts: tuple[StatusConflict, ...]
    not_found: tuple[int, ...] = Field(
        description="Requested numbers (iid) for which no alert exists."
    )
    next_cursor: str | None = Field(
        description="Value of `cursor` for the next request. Null without a filter, or if there "
        "are no more alerts."
    )


class ActivityQuery(KeysetQuery):
    """Query parameters for a list of an alert's activity, notes or reports, newest first."""


class AlertNoteBody(Body):
    """A new note on an alert."""

    body: Text = Field(
        default="", description="Text of the note. Markdown is stored, but not rendered."
    )


class AlertAuthor(Resource):
    """A user who changed an alert or wrote a note about it."""

    id: int | None = Field(description="User ID. Null if the account was deleted.")
    username: str


class AlertNote(Resource):
    """A note that a user wrote about an alert."""

    id: int
    body: str = Field(validation_alias="text")
    author: AlertAuthor
    created_at: Time


def _convert_to_key(label: str) -> str:
    return label.replace(" ", "_")


class AlertChange(Resource):
    """The value of a field before and after a report. Null means no value."""

    field: Annotated[str, BeforeValidator(_convert_to_key)]
    old: str | None
    new: str | None
    is_rise: bool = Field(description="True if the severity increased.")


class AlertActivity(Resource):
    """An entry in the activity of an alert."""

    id: int
    kind: ActivityEntryKind
    author: AlertAuthor | None = Field(
        description="User who performed the action. Null for reports and for commands."
    )
    text: str = Field(
        description=(
            "Content of the entry: the note, the new status, the new assignee (empty for no "
            "assignee), or the result of the page."
        )
    )
    via: str | None = Field(
        description=(
            "Origin of the action, such as `on the command line`. Null if the author used a web "
            "page or a token."
        )
    )
    changes: tuple[AlertChange, ...] = Field(description="Fields that a report changed.")
    created_at: Time


class AlertOccurrence(Resource):
    """A report about an alert, which is one item in a delivery."""

    received_at: Time
    action: Action
    sender: str = Field(
        description="IP address of the sender, or name of the user who sent a test alert."
    )
    is_test: bool
    item: int = Field(description="Position of the item in the body, starting at 1.")
    delivery_id: int
    integration_id: int | None = Field(
        description="ID of the integration. Null if the integration was deleted."
    )
    integration_name: str | None = Field(
        description="Name of the integration. Null if the integration was deleted."
    )
