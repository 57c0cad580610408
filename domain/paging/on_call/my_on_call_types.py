"""Resources and request bodies for a user's on-call overview: turns, calendar URL and cover."""

from typing import Annotated, Any

from pydantic import Field

from domain.accounts.profiles import UserReference
from domain.core.types.base import (
    Body,
    Numbers,
    Option,
    Query,
    RequestTime,
    RequiredText,
    Resource,
    SecretResource,
    Text,
    Time,
    build_choices_schema,
)
from domain.paging.on_call.absences.types import OnCallConflict
from domain.paging.on_call.final_schedule import DutySource
from domain.paging.on_call.types import OnCallPeriod, ScheduleOnCall


class OnCallTurn(OnCallPeriod):
    """A turn, which consists of all shifts of a user between two handoffs."""

    user: UserReference
    source: Annotated[str, build_choices_schema(*(each.value for each in DutySource))]
    may_continue: bool = Field(
        description="True if `ends_at` is the end of the searched period, so that the turn may "
        "continue. For example, the turn of the only user of a rotation has no end."
    )
    shifts: tuple[OnCallPeriod, ...] = Field(
        description="Periods of the turn in which the user is on call. Other users are on call "
        "between these periods."
    )


class OwnSchedule(ScheduleOnCall):
    """A schedule with the turns of a user."""

    project_path: str | None = Field(
        description="Path of the project that owns the schedule. Null if a group owns it."
    )
    web_url: str
    turns: tuple[OnCallTurn, ...]

    @property
    def path(self) -> str:
        """Full path of the project or group."""
        return self.group or self.project_path or ""

    @property
    def url_values(self) -> dict[str, Any]:
        """URL parameters for web pages of the project or group."""
        return {"group_path" if self.group else "project_path": self.path}


class PagedAlert(Resource):
    """An open alert or incident about which a user was paged."""

    project_path: str
    iid: int
    title: str
    severity: str
    status: str
    paged_at: Time = Field(description="Time at which the last page about the alert became due.")
    web_url: str


class OwnOnCallQuery(Query):
    """Query parameters for the on-call overview of a user."""

    weeks: int = Field(default=4, ge=1, le=13)


class OwnOnCall(Resource):
    """On-call overview of a user: shifts, and the alerts and incidents that paged the user."""

    schedules: tuple[OwnSchedule, ...]
    conflicts: tuple[OnCallConflict, ...] = Field(
        description="Periods in the next eight weeks in which the user is on call and absent."
    )
    alerts: tuple[PagedAlert, ...]
    incidents: tuple[PagedAlert, ...]


class OwnCalendar(Resource):
    """A calendar with a secret URL.

    The URL is shown only when it is created.
    """

    created_at: Time
    last_read_at: Time | None = Field(
        description="Time of the last use, recorded at most once an hour. Null if the URL was "
        "never used."
    )


class NewOwnCalendar(OwnCalendar, SecretResource):
    """A new secret URL for a calendar with the shifts of a user in all schedules."""

    url: str


class NewCover(Body):
    """A period in which another user covers your shifts."""

    user: RequiredText = Field(description="Username of the user who covers your shifts.")
    starts_at: Annotated[RequestTime, Option("--from")]
    ends_at: Annotated[RequestTime, Option("--until")]
    schedules: Annotated[Numbers, Option("--schedule")] = Field(
        default=(),
        description="IDs of schedules. The default is all schedules in which you are on call "
        "during the period.",
    )


class CoverQuery(Query):
    """Query parameters for a preview of the shifts that another user would cover."""

    user: Text = Field(default="", description="Username of the user who would cover your shifts.")
    starts_at: RequestTime
    ends_at: RequestTime
    schedules: Numbers = ()


class OnCallCover(OnCallPeriod):
    """The shifts that another user covers."""

    schedules: tuple[OwnSchedule, ...]
