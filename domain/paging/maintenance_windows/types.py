"""Resources and request bodies for maintenance windows."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from domain.alerts.matching.conditions import ConditionsBody, ConditionsResource
from domain.core.types.base import Duration, Option, Resource, Text, Time, make_fields_optional
from domain.core.types.pagination import IncludeAncestorGroups, OffsetQuery
from domain.paging.maintenance_windows.recurrence import format_recurrence, parse_recurrence_rule

MAX_WINDOW_NAME_LENGTH = 255
MIN_WINDOW_LENGTH, MAX_WINDOW_LENGTH = timedelta(minutes=1), timedelta(days=7)


class WindowOccurrence(Resource):
    """The start and end of one occurrence of a maintenance window."""

    starts_at: Time
    ends_at: Time


class MaintenanceWindow(ConditionsResource):
    """A single or recurring period in which alerts that meet its conditions do not page anyone."""

    id: int
    group: str | None = Field(
        description="Path of the group that owns the window. Null if a project owns it."
    )
    name: str
    starts_at: str = Field(description="Start in the local time of `time_zone`.")
    time_zone: str
    duration: Duration
    rule: str = Field(description="Recurrence rule. Empty if the window does not recur.")
    is_active: bool = Field(description="True if the window is active now.")
    occurrences: list[WindowOccurrence] = Field(
        description="Next five occurrences, including the current occurrence."
    )
    created_at: Time
    created_by: str | None = Field(
        description="Username of the creator. Null if the window was created on the command line."
    )

    @property
    def local_start(self) -> datetime:
        """The local start as a naive datetime."""
        return datetime.fromisoformat(self.starts_at)

    @property
    def recurrence_text(self) -> str:
        """The recurrence in words, or an empty string if the window does not recur."""
        return format_recurrence(parse_recurrence_rule(self.rule)) if self.rule else ""


class NewWindow(ConditionsBody):
    """Request body that creates a maintenance window."""

    name: Text = Field(description=f"Name of 1 to {MAX_WINDOW_NAME_LENGTH} characters.")
    starts_at: Annotated[
        Text,
        Option("--starts"),
        Field(
            description="Start in the local time of `time_zone`, such as `2026-12-06T02:00`. A "
            "time with an offset, such as `2026-12-06T01:00Z`, is converted to local time. The "
            "window recurs at the same local time."
        ),
    ]
    duration: Annotated[
        Duration,
        Option("--for"),
        Field(description="Length of the window, such as `90m` or `2h`. At most `7d`."),
    ]
    time_zone: Annotated[Text, Field(description="IANA time zone, such as `Europe/Berlin`.")] = (
        "UTC"
    )
    rule: Annotated[
        Text,
        Field(
            description="Recurrence rule (RFC 5545) with FREQ (DAILY, WEEKLY or MONTHLY), "
            "INTERVAL, BYDAY, BYMONTHDAY and UNTIL (a local date). Empty for a window that does "
            "not recur."
        ),
    ] = ""
    repeat: Annotated[
        Literal["daily", "weekly", "monthly"] | None,
        Field(description="Frequency of the recurrence, as an alternative to `rule`."),
    ] = None


@make_fields_optional
class WindowChange(NewWindow):
    """Changes to a maintenance window. Omitted fields are kept."""


class WindowQuery(OffsetQuery):
    """Query parameters for a list of maintenance windows, sorted from newest to oldest."""

    include_ancestor_groups: IncludeAncestorGroups = False
