"""Forms that create and change heartbeats, and replace ping URLs."""

from wtforms import RadioField, SelectField, StringField
from wtforms.validators import DataRequired, InputRequired, Length, ValidationError

from domain.alerts.parsing.incoming_alert import Severity
from domain.core.grace_period import GracePeriod
from domain.heartbeats.types import (
    MAX_HEARTBEAT_DESCRIPTION_LENGTH,
    MAX_HEARTBEAT_ENVIRONMENT_LENGTH,
    MAX_HEARTBEAT_NAME_LENGTH,
    SEVERITIES,
    Heartbeat,
    HeartbeatChange,
    NewHeartbeat,
    UrlReset,
)
from forms.base import (
    DurationField,
    Form,
    TextLineField,
    TextLinesField,
    TimeZoneField,
    limit_length,
)

_INTERVAL, _CRON = "interval", "cron"


class HeartbeatForm(Form):
    """The form for the name, schedule, grace period and alert fields of a heartbeat."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as nightly backup."),
        limit_length(MAX_HEARTBEAT_NAME_LENGTH, "A name"),
    )
    kind = RadioField(
        "When does the job run?",
        choices=[(_INTERVAL, "At an interval"), (_CRON, "On a cron schedule")],
        default=_INTERVAL,
    )
    every = DurationField("Interval", default="1d")
    cron = TextLineField("Cron expression")
    time_zone = TimeZoneField(default="UTC")
    grace = DurationField(
        "Grace time", DataRequired("Enter a grace time, such as 5m."), default="1h"
    )
    severity = SelectField(
        "Alert severity",
        choices=[(each, each.capitalize()) for each in SEVERITIES],
        default=Severity.CRITICAL.value,
    )
    environment = TextLineField(
        "Environment",
        Length(max=MAX_HEARTBEAT_ENVIRONMENT_LENGTH, message="Enter at most 255 characters."),
    )
    description = TextLinesField(
        "Description",
        Length(max=MAX_HEARTBEAT_DESCRIPTION_LENGTH, message="Enter at most 1,000 characters."),
    )

    @classmethod
    def from_heartbeat(cls, heartbeat: Heartbeat) -> "HeartbeatForm":
        """Return the form with the submitted values, if any, or the values of a heartbeat."""
        kind = _CRON if heartbeat.cron else _INTERVAL
        return cls(data={**dict(heartbeat), "kind": kind})

    def validate_every(self, field: StringField) -> None:
        """Require an interval if the selected schedule type is an interval."""
        if not self._is_cron and not field.data:
            raise ValidationError("Enter an interval, such as 5m.")

    def validate_cron(self, field: StringField) -> None:
        """Require a cron expression if the selected schedule type is cron."""
        if self._is_cron and not field.data:
            raise ValidationError("Enter a cron expression, such as 30 3 * * 1-5.")

    @property
    def _is_cron(self) -> bool:
        return bool(self.kind.data == _CRON)

    def build_heartbeat(self) -> NewHeartbeat:
        """Return the entered values as the request body for a new heartbeat.

        Raise InvalidError for invalid values.
        """
        return self.build_entered_body(NewHeartbeat, **self._get_schedule_values())

    def build_change(self) -> HeartbeatChange:
        """Return the entered values as the request body that changes a heartbeat.

        Raise InvalidError for invalid values.
        """
        return self.build_entered_body(HeartbeatChange, **self._get_schedule_values())

    def _get_schedule_values(self) -> dict[str, str]:
        """Return the time zone, the description, and an empty value for the unselected schedule."""
        return {
            **({"every": ""} if self._is_cron else {"cron": ""}),
            "time_zone": self.time_zone.data or "UTC",
            "description": (self.description.data or "").replace("\r\n", "\n"),
        }


class ResetUrlForm(Form):
    """The form that replaces a ping URL, with the grace period for the old URL."""

    overlap = RadioField(
        "How long does the old URL stay valid?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.DAY.key,
        validators=[InputRequired("Choose how long the old URL stays valid.")],
    )

    def build_reset(self) -> UrlReset:
        """Return the entered grace period as a request body.

        Raise InvalidError for invalid values.
        """
        return self.build_entered_body(UrlReset, previous_for=self.overlap.data)
