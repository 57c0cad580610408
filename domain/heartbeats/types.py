"""Resources and request bodies for heartbeats and their pings."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from domain.alerts.parsing.incoming_alert import Severity
from domain.core.types.base import (
    Body,
    Duration,
    Line,
    Name,
    Overlap,
    Query,
    Resource,
    SecretResource,
    Text,
    Time,
    build_choices_schema,
    get_column_values,
    make_fields_optional,
)
from domain.core.types.pagination import PagedQuery
from domain.heartbeats.states import MAX_CRON_LENGTH, HeartbeatSchedule, HeartbeatState, PingKind

MAX_HEARTBEAT_NAME_LENGTH, MAX_HEARTBEAT_DESCRIPTION_LENGTH, MAX_HEARTBEAT_ENVIRONMENT_LENGTH = (
    100,
    1_000,
    255,
)
SEVERITIES = tuple(each.value for each in Severity)

#: JSON schema of the durations that a request can contain.
_DURATION_SCHEMA = WithJsonSchema(
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
)
_GivenDuration = Annotated[Duration, _DURATION_SCHEMA]


#: Duration that is serialized as a number of seconds.
_Seconds = Annotated[
    timedelta,
    PlainSerializer(lambda length: int(length.total_seconds()), return_type=int),
    WithJsonSchema({"type": "integer"}),
]
_PingKindName = Annotated[str, build_choices_schema(*(each.value for each in PingKind))]


class PingQuery(Query):
    """Query parameters of a ping: the UUID of the run, if the job sends one."""

    rid: Text = Field(default="", description="UUID of the run, for jobs whose runs can overlap.")


class HeartbeatQuery(PagedQuery):
    """Query parameters for a list of a project's heartbeats."""

    sort: Literal["asc", "desc"] = "asc"


class NewHeartbeat(Body):
    """Request body for creating a heartbeat with an interval or a cron expression."""

    name: Annotated[Name, Field(max_length=MAX_HEARTBEAT_NAME_LENGTH)]
    every: _GivenDuration | None = Field(
        default=None,
        description="Interval between pings: a number of seconds, or a string such as `5m`. From 1 "
        "second to 366 days.",
    )
    cron: Annotated[Text, Field(max_length=MAX_CRON_LENGTH)] = Field(
        default="",
        description="Cron expression with five fields, such as `30 3 * * 1-5`, instead of `every`.",
    )
    time_zone: Text = Field(default="UTC", description="Time zone of the cron expression.")
    grace: _GivenDuration = Field(
        default=timedelta(minutes=1),
        description="Grace time: a number of seconds, or a string such as `1m`. Up to 366 days.",
        json_schema_extra={"default": 60},
    )
    description: Annotated[Text, Field(max_length=MAX_HEARTBEAT_DESCRIPTION_LENGTH)] = ""
    severity: Literal[*SEVERITIES] = "critical"  # type: ignore[valid-type]
    environment: Annotated[Line, Field(max_length=MAX_HEARTBEAT_ENVIRONMENT_LENGTH)] = ""


@make_fields_optional
class HeartbeatChange(NewHeartbeat):
    """Request body for changing a heartbeat."""


class UrlReset(Body):
    """Request body for replacing the URL of a heartbeat, with the grace period for the old URL."""

    previous_for: Annotated[Overlap, _DURATION_SCHEMA] = Field(
        default=timedelta(0),
        description="Time for which the old URL stays valid: a number of seconds, or a string "
        "such as `1d`. At most 30 days.",
        json_schema_extra={"default": 0},
    )


class Heartbeat(Resource):
    """A heartbeat with its schedule, its state and its last ping."""

    id: int
    name: str
    description: str
    every: _Seconds | None = Field(description="Interval between pings, in seconds.")
    cron: str | None
    time_zone: str
    grace: _Seconds = Field(description="Grace time, in seconds.")
    severity: str
    environment: str | None
    state: HeartbeatState
    next_expected_at: Time | None
    overdue_at: Time | None = Field(description="Time at which an alert opens if no ping arrives.")
    pings_count: int
    last_ping_at: Time | None
    last_ping_kind: _PingKindName | None
    last_exit_status: int | None
    last_duration_ms: int | None
    started_at: Time | None
    down_since: Time | None
    paused_at: Time | None
    created_at: Time
    alert_iid: int | None
    web_url: str

    @property
    def schedule(self) -> HeartbeatSchedule:
        """The interval or cron expression, the time zone and the grace time of the heartbeat."""
        return HeartbeatSchedule(**get_column_values(self, HeartbeatSchedule))


class HeartbeatWithUrl(Heartbeat, SecretResource):
    """A heartbeat with the secret URL that its job requests."""

    url: str


@dataclass(frozen=True, kw_only=True)
class HeartbeatUrlWithSecret:
    """The URL that the job of a heartbeat requests, and its secret part."""

    #: ID of the heartbeat.
    id: int
    url: str = field(repr=False)
    secret: str = field(repr=False)
    #: Time until which the previous URL is accepted, or None if it is not accepted.
    previous_url_expires_at: datetime | None


class HeartbeatUrl(SecretResource):
    """The secret URL that the job of a heartbeat requests."""

    id: int = Field(description="ID of the heartbeat.")
    url: str
    previous_url_expires_at: Time | None


class HeartbeatPing(Resource):
    """A ping in the log of a heartbeat."""

    id: int
    created_at: Time
    kind: _PingKindName
    exit_status: int | None
    rid: str | None
    duration_ms: int | None
    method: str
    remote_address: str
    user_agent: str
    body_size: int
    body: Annotated[str, BeforeValidator(lambda stored: (stored or b"").decode(errors="replace"))]
    body_truncated: bool
