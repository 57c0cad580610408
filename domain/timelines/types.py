"""The timeline of an alert or an incident as all faces see it, and what may be asked of it."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from domain.alerts.handling.types import AlertAuthor, AlertChange, AlertOccurrence
from domain.ci_cd.types import Deployment
from domain.escalations.types import SentPage
from domain.on_call.types import ScheduleOnCall
from domain.types.base import KeysetQuery, Resource, Time


class ItemKind(StrEnum):
    """What an item of a timeline is about."""

    #: Reports of an alert; those that change nothing are joined.
    REPORT = "report"
    #: Fields of an alert that a report changed.
    CHANGE = "change"
    #: A text that a user wrote.
    NOTE = "note"
    STATUS = "status"
    ASSIGNEE = "assignee"
    #: Somebody who was paged.
    PAGE = "page"
    #: Whether and why somebody was not paged, or not reached.
    UNREACHED = "unreached"
    #: Why nobody was paged, or not yet: what held pages back and until when.
    ESCALATION = "escalation"
    DEPLOYMENT = "deployment"
    #: What became of an incident.
    INCIDENT = "incident"
    #: Alerts of an incident that opened, and that a report resolved.
    OPENED = "opened"
    ENDED = "ended"


class TimelineQuery(KeysetQuery):
    """What happened, in which order."""

    sort: Literal["desc", "asc"] = Field(default="desc", description="The newest or oldest first.")


class TimelineItem(Resource):
    """Something that happened; fields that its kind does not have are null or empty."""

    kind: ItemKind
    at: Time
    until: Time | None = Field(
        default=None, description="When the last of several that were joined happened."
    )
    author: AlertAuthor | None = Field(
        default=None, description="Null for what reports, rules and the command line did."
    )
    text: str = Field(
        default="",
        description="The note, the new status, the new assignee, or what happened as a sentence.",
    )
    via: str | None = Field(
        default=None, description="From where the author acted, if it was no page and no token."
    )
    changes: tuple[AlertChange, ...] = Field(
        default=(), description="Fields that a report changed."
    )
    reports: tuple[AlertOccurrence, ...] = ()
    page: SentPage | None = None
    deployment: Deployment | None = None
    alerts: tuple[int, ...] = Field(
        default=(), description="In the timeline of an incident: the alerts (iid) that it is about."
    )
    note_id: int | None = Field(default=None, description="Of a comment on an incident.")
    internal: bool = Field(
        default=False, description="Whether only members from Reporter up see the comment."
    )
    updated_at: Time | None = Field(default=None, description="When the comment was changed.")


class IncidentSurroundings(Resource):
    """What somebody who comes to an incident looks for first."""

    on_call: tuple[ScheduleOnCall, ...] = Field(
        description="Who is on call in the schedules of the project."
    )
    runbooks: tuple[str, ...] = Field(description="Of its newest alerts.")
