"""Resources and request bodies for silences, mutes and flap detection."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from domain.alerts.listing.filters import STATUSES
from domain.alerts.matching.conditions import MATCHERS_SCHEMA, Matchers
from domain.alerts.matching.matcher_parser import MAX_MATCHERS_TEXT_LENGTH
from domain.alerts.matching.matcher_syntax import format_matchers
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.types.base import (
    Body,
    Duration,
    Option,
    Query,
    RequestTime,
    Resource,
    Text,
    Time,
    build_choices_schema,
    make_fields_optional,
)
from domain.core.types.pagination import IncludeAncestorGroups, PagedQuery

MAX_COMMENT_LENGTH = 1_000


class SilenceState(StrEnum):
    """State of a silence: active, pending or expired."""

    ACTIVE = "active"
    PENDING = "pending"
    EXPIRED = "expired"


class Silence(Resource):
    """A period in which alerts that match certain matchers do not page anyone."""

    id: int
    group: str | None = Field(
        description="Path of the group that owns the silence. Null if a project owns it."
    )
    matchers: Matchers
    comment: str
    state: SilenceState
    starts_at: Time
    ends_at: Time
    created_at: Time
    created_by: str | None = Field(
        description="Username of the creator. Null if the silence was created on the command line."
    )
    ended_by: str | None = Field(description="Name of the user who ended the silence early.")
    web_url: str

    @property
    def matchers_text(self) -> str:
        """The matchers as text in canonical form, separated by commas."""
        return format_matchers(self.matchers)


def _clean_comment(text: str) -> str:
    return replace_unstorable_characters(text).strip()


_Comment = Annotated[
    Text,
    Field(max_length=MAX_COMMENT_LENGTH, description="Reason for the silence."),
    AfterValidator(_clean_comment),
]


#: Alertmanager's names for the fields of a silence.
_ALERTMANAGER_FIELD_NAMES = {"startsAt": "starts_at", "endsAt": "ends_at"}


class NewSilence(Body):
    """A new silence. Either an end or a duration is required.

    The output of `amtool silence query --output json` is also accepted.
    """

    matchers: Annotated[Matchers, MATCHERS_SCHEMA] = Field(
        description='Matchers as a string, such as `service="web", host=~"web.*"`, a list of such '
        "strings, or an object that maps label names to values. An alert must match all of them."
    )
    comment: _Comment = ""
    starts_at: Annotated[
        RequestTime | None,
        Option("--starts"),
        Field(description="Start of the silence. The default is now."),
    ] = None
    ends_at: RequestTime | None = Field(default=None, description="End of the silence.")
    duration: Annotated[
        Duration | None,
        Option("--for"),
        Field(
            description="Length of the silence, such as `30m` or `2h`, as an alternative to "
            "`ends_at`."
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _rename_alertmanager_fields(cls, given: Any) -> Any:
        """Accept Alertmanager's names for the start and end times."""
        if not isinstance(given, dict):
            return given
        named = {
            name: given[other]
            for other, name in _ALERTMANAGER_FIELD_NAMES.items()
            if other in given and name not in given
        }
        return {**given, **named}


class SilenceChange(Body):
    """Changes to a silence. Omitted fields are kept."""

    comment: _Comment | None = None
    ends_at: RequestTime | None = Field(default=None, description="New end of the silence.")
    duration: Annotated[
        Duration | None,
        Option("--for"),
        Field(
            description="Time from now until the end, such as `2h`, as an alternative to `ends_at`."
        ),
    ] = None


class SilenceQuery(PagedQuery):
    """Query parameters for a list of silences."""

    order_by: str = Field(default="id", pattern="^(?:id|starts_at|ends_at)$")
    state: SilenceState | None = None
    include_ancestor_groups: IncludeAncestorGroups = False


class PreviewQuery(Query):
    """Query parameters for a preview of the alerts that a silence would mute."""

    matchers: Annotated[
        Matchers,
        WithJsonSchema({"type": "string", "maxLength": MAX_MATCHERS_TEXT_LENGTH}),
        Field(description='Matchers of the silence, such as `service="web", host=~"web.*"`.'),
    ]


class PreviewAlert(Resource):
    """An alert that matches the matchers of the previewed silence."""

    iid: int
    title: str
    severity: Annotated[str, build_choices_schema(*(each.value for each in Severity))]
    status: Annotated[str, build_choices_schema(*STATUSES)]
    started_at: Time
    project: str = Field(description="Full path of the project.")
    web_url: str


class SilencePreview(Resource):
    """Alerts that a silence would mute now, and would have muted in the last seven days."""

    matchers: Matchers
    open_alerts: int
    recent_alerts: int = Field(
        description="Number of matching alerts in the last seven days, including closed alerts."
    )
    looked_at: int = Field(
        description="Number of alerts that were compared with the matchers, newest first."
    )
    is_complete: bool = Field(description="True if all alerts were compared with the matchers.")
    alerts: list[PreviewAlert] = Field(description="Newest matching alerts, at most 20.")


class MuteKind(StrEnum):
    """The kind of a mute: the reason why pages are held back."""

    SILENCE = "silence"
    MAINTENANCE = "maintenance"
    #: Mute of a flapping alert, which holds only repeated pages to the same recipients.
    FLAPPING = "flapping"
    #: Mute of an alert that continues an acknowledged alert.
    REOPENED = "reopened"
    #: Mute of an alert that belongs to an acknowledged incident.
    INCIDENT = "incident"


class AlertMute(Resource):
    """Reason why an alert is muted."""

    muted: bool
    kind: MuteKind | None = None
    group: str | None = Field(
        default=None,
        description="Path of the group that owns the silence or maintenance window, if a group "
        "owns it.",
    )
    id: int | None = Field(
        default=None, description="ID of the silence or maintenance window. Null for other reasons."
    )
    name: str | None = None
    by: str | None = Field(
        default=None,
        description="Name of the user who created the silence or window, or who acknowledged the "
        "alert that this alert continues.",
    )
    until: Time | None = Field(
        default=None,
        description="End of the mute. Null if it lasts until the incident is closed.",
    )


class FlapSettings(Resource):
    """Flap detection settings of a project."""

    enabled: Annotated[
        bool,
        Option("--on/--off"),
        Field(description="True to hold back repeated pages about flapping alerts."),
    ] = True
    openings: int = Field(
        default=5,
        ge=1,
        le=100,
        description=(
            "Number of times that an alert can open within `within_minutes` before it is "
            "considered flapping."
        ),
    )
    within_minutes: int = Field(
        default=30,
        ge=1,
        le=1_440,
        description="Period in which the openings of an alert are counted, in minutes.",
    )
    hold_minutes: int = Field(
        default=10,
        ge=1,
        le=240,
        description="Time after which a flapping alert can page the same recipients again, in "
        "minutes.",
    )
    reopen_minutes: int = Field(
        default=0,
        ge=0,
        le=60,
        description=(
            "Window after the end of an acknowledged alert, in minutes. A new alert in this window "
            "continues the previous alert, and sends pages only if it stays open for the same "
            "time. 0 to send pages immediately."
        ),
    )
    holds_critical: Annotated[
        bool,
        Option("--hold-critical/--page-critical"),
        Field(description="True to also hold back repeated pages about critical alerts."),
    ] = False


@make_fields_optional
class FlapSettingsChange(FlapSettings, Body):
    """Changes to the flap detection settings of a project. Omitted fields are kept."""
