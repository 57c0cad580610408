"""Heartbeats of a project, and the pings in their log."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from domain.durations import parse_duration
from domain.errors import InvalidError
from domain.heartbeats.heartbeats import (
    LONGEST_DESCRIPTION,
    LONGEST_ENVIRONMENT,
    LONGEST_NAME,
    SEVERITIES,
    HeartbeatDetails,
    HeartbeatView,
)
from domain.heartbeats.keys import HeartbeatKey
from domain.heartbeats.log import PingView
from domain.heartbeats.schedules import LONGEST_CRON, Schedule
from domain.heartbeats.states import HeartbeatState, PingKind
from web.api.schemas.base import (
    Body,
    PagedQuery,
    Query,
    RequiredText,
    Resource,
    SecretResource,
    Text,
    Time,
    one_of,
)

_LARGEST = 2**31 - 1


def _length(value: Any) -> Any:
    """Return a length of time given as seconds or as `5m`."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if text.isascii() and text.isdecimal() and len(text) <= len(str(_LARGEST)):
        text = f"{int(text)}s"
    try:
        return parse_duration(text)
    except InvalidError as error:
        message = "must be seconds, or a text such as 30s, 5m, 1h30m or 2d"
        raise ValueError(message) from error


#: Seconds, or a text such as `5m`.
Length = Annotated[
    timedelta,
    BeforeValidator(_length),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 31_622_400},
                {
                    "type": "string",
                    "pattern": "^([0-9]{1,3}d)?([0-9]{1,2}h)?([0-9]{1,4}m)?([0-9]{1,6}s)?$",
                    "minLength": 2,
                },
            ]
        }
    ),
]
_STATES = one_of(*(each.value for each in HeartbeatState))
_KINDS = one_of(*(each.value for each in PingKind))


class PingQuery(Query):
    """Parameters of a ping."""

    rid: Text = Field(
        default="", description="A UUID of the run, for a job that runs several times at once."
    )


class HeartbeatQuery(PagedQuery):
    """Parameters of a list of heartbeats."""

    sort: Literal["asc", "desc"] = "asc"


class HeartbeatBody(Body):
    """A new heartbeat: with an interval or a cron expression."""

    name: Annotated[RequiredText, Field(max_length=LONGEST_NAME)]
    every: Length | None = Field(
        default=None, description="Seconds or a text such as 5m, from 1 s to 366 days."
    )
    cron: Annotated[Text, Field(max_length=LONGEST_CRON)] = Field(
        default="", description="Five fields, such as 30 3 * * 1-5."
    )
    time_zone: Text = Field(default="UTC", description="Of the cron expression.")
    grace: Length = Field(
        default=timedelta(minutes=1),
        description="Seconds or a text such as 1m; 0 s or more.",
        json_schema_extra={"default": 60},
    )
    description: Annotated[Text, Field(max_length=LONGEST_DESCRIPTION)] = ""
    severity: Literal[*SEVERITIES] = "critical"  # type: ignore[valid-type]
    environment: Annotated[Text, Field(max_length=LONGEST_ENVIRONMENT)] = ""

    @property
    def details(self) -> HeartbeatDetails:
        """What was asked for; raise InvalidError."""
        return HeartbeatDetails(
            name=self.name,
            schedule=Schedule(
                every=self.every,
                cron=self.cron or None,
                time_zone=self.time_zone,
                grace=self.grace,
            ),
            description=self.description,
            severity=self.severity,
            environment=self.environment,
        )


class HeartbeatChange(Body):
    """Changes to a heartbeat."""

    name: Annotated[RequiredText, Field(max_length=LONGEST_NAME)] | None = None
    every: Length | None = None
    cron: Annotated[Text, Field(max_length=LONGEST_CRON)] | None = None
    time_zone: Text | None = None
    grace: Length | None = None
    description: Annotated[Text, Field(max_length=LONGEST_DESCRIPTION)] | None = None
    severity: Literal[*SEVERITIES] | None = None  # type: ignore[valid-type]
    environment: Annotated[Text, Field(max_length=LONGEST_ENVIRONMENT)] | None = None

    def of(self, present: HeartbeatDetails) -> HeartbeatDetails:
        """Return all of a heartbeat after the change; raise InvalidError."""
        given = self.model_dump(exclude_none=True)
        old = present.schedule
        # An interval replaces a cron expression, and the other way round.
        every = given.get("every", None if self.cron else old.every)
        cron = given.get("cron", None if self.every else old.cron) or None
        return HeartbeatDetails(
            name=given.get("name", present.name),
            schedule=Schedule(
                every=every,
                cron=cron,
                time_zone=given.get("time_zone", old.time_zone),
                grace=given.get("grace", old.grace),
            ),
            description=given.get("description", present.description),
            severity=given.get("severity", present.severity),
            environment=given.get("environment", present.environment),
        )


class UrlResetBody(Body):
    """How long the old URL of a heartbeat stays valid."""

    previous_for: Length = Field(
        default=timedelta(0),
        description="Seconds or a text such as 1d; at most 30 days.",
        json_schema_extra={"default": 0},
    )


class Heartbeat(Resource):
    """A heartbeat."""

    id: int
    name: str
    description: str
    #: Seconds; null for one with a cron expression.
    every: int | None = Field(description="Seconds.")
    cron: str | None
    time_zone: str
    grace: int = Field(description="Seconds.")
    severity: str
    environment: str | None
    state: Annotated[str, _STATES]
    next_expected_at: Time | None
    overdue_at: Time | None = Field(description="When an alert is opened unless a ping comes.")
    pings_count: int
    last_ping_at: Time | None
    last_ping_kind: Annotated[str, _KINDS] | None
    last_exit_status: int | None
    last_duration_ms: int | None
    started_at: Time | None
    down_since: Time | None
    paused_at: Time | None
    created_at: Time
    alert_iid: int | None
    web_url: str

    @classmethod
    def of(cls, view: HeartbeatView, web_url: str) -> "Heartbeat":
        """Present a heartbeat."""
        return cls(**_fields(view), web_url=web_url)


class HeartbeatWithUrl(Heartbeat, SecretResource):
    """A heartbeat with the URL that its job requests, which is a secret."""

    url: str

    @classmethod
    def with_url(cls, view: HeartbeatView, web_url: str, url: str) -> "HeartbeatWithUrl":
        """Present a new heartbeat."""
        return cls(**_fields(view), web_url=web_url, url=url)


def _fields(view: HeartbeatView) -> dict[str, Any]:
    details, schedule, duration = view.details, view.schedule, view.last_duration
    return {
        "id": view.id,
        "name": details.name,
        "description": details.description,
        "every": None if schedule.every is None else int(schedule.every.total_seconds()),
        "cron": schedule.cron,
        "time_zone": schedule.time_zone,
        "grace": int(schedule.grace.total_seconds()),
        "severity": details.severity,
        "environment": details.environment or None,
        "state": view.state.value,
        "next_expected_at": view.expected_at,
        "overdue_at": view.due_at,
        "pings_count": view.pings,
        "last_ping_at": view.last_ping_at,
        "last_ping_kind": view.last_ping_kind,
        "last_exit_status": view.last_exit_status,
        "last_duration_ms": None if duration is None else duration // timedelta(milliseconds=1),
        "started_at": view.started_at,
        "down_since": view.down_since,
        "paused_at": view.paused_at,
        "created_at": view.created_at,
        "alert_iid": view.alert_iid,
    }


class HeartbeatUrl(SecretResource):
    """The URL that the job of a heartbeat requests, which is a secret."""

    url: str
    previous_url_expires_at: Time | None

    @classmethod
    def of(cls, key: HeartbeatKey, url: str) -> "HeartbeatUrl":
        """Present a URL."""
        return cls(url=url, previous_url_expires_at=key.previous_until)


class HeartbeatPing(Resource):
    """A ping in the log of a heartbeat."""

    id: int
    created_at: Time
    kind: Annotated[str, _KINDS]
    exit_status: int | None
    rid: str | None
    duration_ms: int | None
    method: str
    remote_address: str
    user_agent: str
    body_size: int
    body: str
    body_truncated: bool

    @classmethod
    def of(cls, view: PingView) -> "HeartbeatPing":
        """Present a ping."""
        duration = view.duration
        return cls(
            id=view.id,
            created_at=view.created_at,
            kind=view.kind.value,
            exit_status=view.exit_status,
            rid=view.rid,
            duration_ms=None if duration is None else duration // timedelta(milliseconds=1),
            method=view.method,
            remote_address=view.sender,
            user_agent=view.user_agent,
            body_size=view.size,
            body=view.body,
            body_truncated=view.is_cut,
        )
