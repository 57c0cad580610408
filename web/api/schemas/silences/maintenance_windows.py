"""Maintenance windows of a project, and how it treats alerts that flap."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from domain.durations import duration_text, parse_duration
from domain.errors import InvalidError
from domain.silences.flapping import BOUNDS, FlapSettings
from domain.silences.recurrence import parse_rule
from domain.silences.times import wall_time_of
from domain.silences.windows import LONGEST_NAME, NewWindow, WindowView
from domain.time_zones import check_zone
from web.api.schemas.alerts.alert_conditions import ConditionsBody, ConditionsResource
from web.api.schemas.base import Body, OffsetQuery, Resource, Text, Time

_LocalTime = Annotated[
    Text,
    Field(
        description="A local time of the time zone, such as `2026-12-06T02:00`. A time with an "
        "offset, such as `2026-12-06T01:00Z`, is converted into that zone, and the window recurs "
        "at the local time that it is there."
    ),
]
_Length = Annotated[Text, Field(description="A length such as `90m` or `2h`, at most `7d`.")]
_Rule = Annotated[
    Text,
    Field(
        description="A recurrence rule of RFC 5545 with FREQ (DAILY, WEEKLY or MONTHLY), INTERVAL, "
        "BYDAY, BYMONTHDAY and UNTIL (a local day); empty for once."
    ),
]


class WindowQuery(OffsetQuery):
    """The windows of a project, the newest first."""


class WindowBody(ConditionsBody):
    """A new window."""

    name: Text = Field(description=f"1 to {LONGEST_NAME} characters.")
    starts_at: _LocalTime
    duration: _Length
    time_zone: Annotated[Text, Field(description="Of the IANA database.")] = "UTC"
    rule: _Rule = ""

    @property
    def wanted(self) -> NewWindow:
        """What the window is to be; raises InvalidError."""
        return NewWindow(
            name=self.name,
            local_start=read_local_time(self.starts_at, self.time_zone),
            length=parse_duration(self.duration, field="duration"),
            time_zone=self.time_zone,
            recurrence=parse_rule(self.rule) if self.rule else None,
            conditions=self.conditions(),
        )


class WindowChange(ConditionsBody):
    """Changes to a window; omitted fields are kept."""

    name: Text | None = None
    starts_at: _LocalTime | None = None
    duration: _Length | None = None
    time_zone: Text | None = None
    rule: _Rule | None = None

    def wanted(self, window: WindowView) -> NewWindow:
        """Return what becomes of a window; raise InvalidError."""
        times = window.times
        rule = window.rule if self.rule is None else self.rule
        place, given = self.time_zone or times.time_zone, self.starts_at
        return NewWindow(
            name=self.name or window.name,
            local_start=read_local_time(given, place) if given else times.local_start,
            length=(
                parse_duration(self.duration, field="duration") if self.duration else times.length
            ),
            time_zone=place,
            recurrence=parse_rule(rule) if rule else None,
            conditions=self.conditions(window.conditions),
        )


def read_local_time(text: str, time_zone: str) -> datetime:
    """Return the wall time of a zone that a text means, or raise InvalidError."""
    try:
        found = datetime.fromisoformat(text.strip())
        return found if found.tzinfo is None else wall_time_of(found, check_zone(time_zone))
    except (ValueError, OverflowError) as error:
        message = (
            "starts_at must be a time such as 2026-12-06T02:00, which is local time of the time "
            "zone, or one with an offset, such as 2026-12-06T01:00Z."
        )
        raise InvalidError(message, field="starts_at") from error


class WindowOccurrence(Resource):
    """One time that a window takes place."""

    starts_at: Time
    ends_at: Time


class MaintenanceWindow(ConditionsResource):
    """A time, once or recurring, in which alerts that meet its conditions page nobody."""

    id: int
    name: str
    starts_at: str = Field(description="Local time of the time zone.")
    time_zone: str
    duration: str
    rule: str = Field(description="Empty for once.")
    is_active: bool = Field(description="Whether it takes place now.")
    occurrences: list[WindowOccurrence] = Field(
        description="The next five, including the current one."
    )
    created_at: Time
    created_by: str | None = Field(description="A user name; null for the command line.")

    @classmethod
    def of(cls, view: WindowView, now: datetime) -> "MaintenanceWindow":
        """Present a window."""
        following = view.next_occurrences(now)
        return cls(
            **view.conditions.to_json(),
            id=view.id,
            name=view.name,
            starts_at=view.times.local_start.isoformat(timespec="minutes"),
            time_zone=view.times.time_zone,
            duration=duration_text(view.times.length),
            rule=view.rule,
            is_active=bool(following) and following[0].starts_at <= now,
            occurrences=[
                WindowOccurrence(starts_at=each.starts_at, ends_at=each.ends_at)
                for each in following
            ],
            created_at=view.created_at,
            created_by=view.created_by or None,
        )


class FlapSettingsBody(Body):
    """New values; omitted fields are kept."""

    enabled: bool | None = None
    openings: int | None = Field(default=None, ge=BOUNDS["openings"][0], le=BOUNDS["openings"][1])
    within_minutes: int | None = Field(
        default=None, ge=BOUNDS["within_minutes"][0], le=BOUNDS["within_minutes"][1]
    )
    hold_minutes: int | None = Field(
        default=None, ge=BOUNDS["hold_minutes"][0], le=BOUNDS["hold_minutes"][1]
    )
    reopen_minutes: int | None = Field(
        default=None, ge=BOUNDS["reopen_minutes"][0], le=BOUNDS["reopen_minutes"][1]
    )
    holds_critical: bool | None = None

    def wanted(self, present: FlapSettings) -> FlapSettings:
        """Return the settings, those that were not given as they are."""
        names = (*BOUNDS, "holds_critical")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        is_on = present.is_on if self.enabled is None else self.enabled
        return FlapSettings(**{**vars(present), **given, "is_on": is_on})


class FlapSettingsResource(Resource):
    """How a project treats alerts that open again and again."""

    enabled: bool = Field(description="Whether repeated pages of flapping alerts are held back.")
    openings: int = Field(description="An alert that opens more often than this …")
    within_minutes: int = Field(description="… in so many minutes is flapping.")
    hold_minutes: int = Field(description="It pages the same people again after so long.")
    reopen_minutes: int = Field(
        description="An alert that opens so shortly after the end of one that was acknowledged "
        "pages once it stays open for so long; 0 for at once."
    )
    holds_critical: bool = Field(
        description="Whether repeated pages of critical alerts are held back as well."
    )

    @classmethod
    def of(cls, settings: FlapSettings) -> "FlapSettingsResource":
        """Present settings."""
        numbers = {name: getattr(settings, name) for name in BOUNDS}
        return cls(enabled=settings.is_on, holds_critical=settings.holds_critical, **numbers)
