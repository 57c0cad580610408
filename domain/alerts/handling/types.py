"""Resources and request bodies for single alerts, their activity, and changes of several alerts."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from domain.alerts.handling.activity import NoteKind
from domain.alerts.listing.types import Alert, AlertFilters, RowId, Status
from domain.alerts.storing.lifecycle import Action
from domain.core.types.base import Body, KeysetQuery, Numbers, Resource, Text, Time

#: Maximum number of alerts in one change. It is larger than any page of the list.
MOST_AT_ONCE = 200


class AlertBody(Body):
    """Changes to an alert. Omitted fields are kept."""

    status: Literal["triggered", "acknowledged", "resolved", "ignored"] | None = None
    assignee: Text | None = Field(
        default=None, description="A user name; empty or null for nobody."
    )
    assignee_id: RowId | None = Field(
        default=None, description="The id of a user; 0 or null for nobody."
    )


class AlertStatusBody(Body):
    """A status for several alerts, which are selected by number or by a filter."""

    status: Literal["triggered", "acknowledged", "resolved", "ignored"]
    iids: Numbers | None = Field(
        default=None, description=f"Numbers of alerts, at most {MOST_AT_ONCE}."
    )
    filter: AlertFilters | None = Field(
        default=None, description=f"The newest {MOST_AT_ONCE} that match are changed at once."
    )
    cursor: str = Field(
        default="",
        description="Value of `next_cursor` in the last response, to change the alerts that "
        "follow. It requires a filter.",
    )


class AlertGrouping(Resource):
    """The reason why reports are grouped into an alert."""

    sentence: str
    fields: Annotated[dict[str, str], BeforeValidator(dict)] = Field(
        description="Names of the fields that the fingerprint was made from."
    )


class AlertIntegration(Resource):
    """An integration that has reported an alert."""

    id: int
    name: str


class AlertDetail(Alert):
    """An alert with all its fields. Fields from the payload are null if it is no longer stored."""

    description: str | None
    runbook: str | None
    query: str | None = Field(description="The expression of the metric.")
    incident_markdown: str | None = Field(validation_alias="markdown")
    y_label: str | None
    generator_url: str | None = Field(description="The URL of the graph.")
    severity_reason: str = Field(description="Reason for the severity of the alert.")
    grouping: AlertGrouping
    integration_id: int | None
    integrations: tuple[AlertIntegration, ...] = Field(
        description="All that have reported the alert: its own first, then those joined with it."
    )
    received_at: Time | None = Field(
        description="Time at which the report with the shown texts was received."
    )
    details: Annotated[dict[str, str], BeforeValidator(dict)] = Field(
        validation_alias="payload_fields",
        description="Every field of the payload by its dotted path.",
    )


class StatusConflict(Resource):
    """An alert that was not changed because another open alert has the same fingerprint."""

    iid: int
    title: str


class StatusReport(Resource):
    """Result of a status change of several alerts."""

    status: Status
    changed: tuple[int, ...] = Field(description="Numbers (iid) of the alerts that were changed.")
    unchanged: tuple[int, ...] = Field(description="Those that had the status before.")
    conflicts: tuple[StatusConflict, ...]
    not_found: tuple[int, ...] = Field(description="Given numbers that no alert has.")
    next_cursor: str | None = Field(
        description="Position of the alerts that follow, if a filter was given."
    )


class ActivityQuery(KeysetQuery):
    """Query for the activity of an alert, newest first."""


class AlertNoteBody(Body):
    """A new note."""

    body: Text = Field(default="", description="Plain text; Markdown is kept as it is written.")


class AlertAuthor(Resource):
    """A user who did something to an alert."""

    id: int | None = Field(description="Null if the account was deleted.")
    username: str


class AlertNote(Resource):
    """A note that a user wrote about an alert."""

    id: int
    body: str = Field(validation_alias="text")
    author: AlertAuthor
    created_at: Time


def _as_key(label: str) -> str:
    return label.replace(" ", "_")


class AlertChange(Resource):
    """The value of a field before and after a report. Null means no value."""

    field: Annotated[str, BeforeValidator(_as_key)]
    old: str | None
    new: str | None
    is_rise: bool = Field(description="True if the severity became worse.")


class AlertActivity(Resource):
    """An entry of the activity of an alert."""

    id: int
    kind: NoteKind
    author: AlertAuthor | None = Field(
        description="Null for a change by a report or by the command line."
    )
    text: str = Field(
        description="The note, the new status, the new assignee, empty for nobody, or what came of "
        "a page to the author."
    )
    via: str | None = Field(
        description="Source of the action, if the author used neither a page nor a token."
    )
    changes: tuple[AlertChange, ...] = Field(description="Fields that a report changed.")
    created_at: Time


class AlertOccurrence(Resource):
    """A report of an alert: an item of a delivery."""

    received_at: Time
    action: Action
    sender: str = Field(description="An IP address, or the user who sent a test alert.")
    is_test: bool
    item: int = Field(description="Its position in the body, from 1.")
    delivery_id: int
    integration_id: int | None = Field(description="Null if the integration was deleted.")
    integration_name: str | None = Field(description="Null if the integration was deleted.")
