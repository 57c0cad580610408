"""Resources and queries for the timelines of alerts and incidents."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from domain.alerts.handling.types import AlertAuthor, AlertChange, AlertOccurrence
from domain.ci_cd.types import Deployment
from domain.core.types.base import Resource, Time
from domain.core.types.pagination import KeysetQuery
from domain.paging.escalations.types import SentPage
from domain.paging.on_call.types import ScheduleOnCall


class ItemKind(StrEnum):
    """The kind of a timeline item, such as a report, a status change or a deployment."""

    #: Reports of an alert. Reports without changes are joined.
    REPORT = "report"
    #: Fields of an alert that a report changed.
    CHANGE = "change"
    #: Text that a user wrote.
    NOTE = "note"
    STATUS = "status"
    ASSIGNEE = "assignee"
    #: Manual action, such as a snooze, an escalation or a page, or the end of a snooze.
    HANDLING = "handling"
    #: Page that was sent.
    PAGE = "page"
    #: Reason why a user was not paged or not reached.
    UNREACHED = "unreached"
    #: Reason why no page was sent, or why paging is delayed, with the end of the delay.
    ESCALATION = "escalation"
    DEPLOYMENT = "deployment"
    #: Change to an incident.
    INCIDENT = "incident"
    #: Opening of an alert in an incident.
    OPENED = "opened"
    #: Resolution of an alert in an incident by a report.
    ENDED = "ended"


class TimelineQuery(KeysetQuery):
    """Query parameters for a timeline, including its sort order."""

    sort: Literal["desc", "asc"] = Field(
        default="desc", description="Sort order: newest first (`desc`) or oldest first (`asc`)."
    )


class TimelineItem(Resource):
    """An item in a timeline. Fields that do not apply to its kind are null or empty."""

    kind: ItemKind
    at: Time
    until: Time | None = Field(
        default=None,
        description="Time of the last event, if the item combines several events.",
    )
    author: AlertAuthor | None = Field(
        default=None,
        description="User who caused the event. Null if a report, rule or command caused it.",
    )
    text: str = Field(
        default="",
        description="Text of the note, the new status, the new assignee, or a description of the "
        "event.",
    )
    via: str | None = Field(
        default=None,
        description=(
            "Origin of the action, such as `on the command line`. Null if the author used a web "
            "page or a token."
        ),
    )
    changes: tuple[AlertChange, ...] = Field(
        default=(), description="Fields that a report changed."
    )
    reports: tuple[AlertOccurrence, ...] = ()
    page: SentPage | None = None
    deployment: Deployment | None = None
    alerts: tuple[int, ...] = Field(
        default=(),
        description="Numbers (iid) of the affected alerts, in the timeline of an incident.",
    )
    note_id: int | None = Field(default=None, description="ID of a comment on an incident.")
    internal: bool = Field(
        default=False,
        description="True to show the comment only to members with the Reporter role or higher.",
    )
    updated_at: Time | None = Field(
        default=None, description="Time at which the comment was last changed."
    )


class IncidentSurroundings(Resource):
    """The users on call and the runbooks for an incident."""

    on_call: tuple[ScheduleOnCall, ...] = Field(
        description="Users who are on call in the schedules of the project."
    )
    runbooks: tuple[str, ...] = Field(description="Runbooks of the incident's newest alerts.")
