"""Forms to create and change a heartbeat, and to replace its URL."""

from wtforms import RadioField, SelectField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length

from domain.alerts.reading.incoming import Severity
from domain.durations import duration_text, parse_duration
from domain.grace_period import GracePeriod
from domain.heartbeats.heartbeats import (
    LONGEST_DESCRIPTION,
    LONGEST_ENVIRONMENT,
    LONGEST_NAME,
    SEVERITIES,
    HeartbeatDetails,
)
from domain.heartbeats.schedules import Schedule
from forms.base import Form, without_edges

_INTERVAL, _CRON = "interval", "cron"


class HeartbeatForm(Form):
    """What a maintainer chooses of a heartbeat."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name, such as nightly backup."),
            Length(max=LONGEST_NAME, message=f"A name may have at most {LONGEST_NAME} characters."),
        ],
    )
    kind = RadioField(
        "When does the job run?",
        choices=[(_INTERVAL, "At an interval"), (_CRON, "By a cron expression")],
        default=_INTERVAL,
    )
    every = StringField("Interval", filters=[without_edges], default="1d")
    cron = StringField("Cron expression", filters=[without_edges])
    time_zone = StringField("Time zone", filters=[without_edges], default="UTC")
    grace = StringField(
        "Grace time",
        filters=[without_edges],
        default="1h",
        validators=[DataRequired("Enter how late a ping may be, such as 5m.")],
    )
    severity = SelectField(
        "Severity of its alerts",
        choices=[(each, each.capitalize()) for each in SEVERITIES],
        default=Severity.CRITICAL.value,
    )
    environment = StringField(
        "Environment",
        filters=[without_edges],
        validators=[Length(max=LONGEST_ENVIRONMENT, message="At most 255 characters.")],
    )
    description = TextAreaField(
        "Description",
        filters=[without_edges],
        validators=[Length(max=LONGEST_DESCRIPTION, message="At most 1000 characters.")],
    )

    @classmethod
    def of(cls, details: HeartbeatDetails) -> "HeartbeatForm":
        """Return the form of a heartbeat, or of what was posted for it."""
        schedule = details.schedule
        return cls(
            name=details.name,
            kind=_CRON if schedule.cron else _INTERVAL,
            every=duration_text(schedule.every) if schedule.every else "",
            cron=schedule.cron or "",
            time_zone=schedule.time_zone,
            grace=duration_text(schedule.grace),
            severity=details.severity,
            environment=details.environment,
            description=details.description,
        )

    @property
    def details(self) -> HeartbeatDetails:
        """What was posted; raise InvalidError, naming the field."""
        is_cron = self.kind.data == _CRON
        return HeartbeatDetails(
            name=self.name.data or "",
            schedule=Schedule(
                every=None if is_cron else parse_duration(self.every.data or "", field="every"),
                cron=(self.cron.data or "") if is_cron else None,
                time_zone=self.time_zone.data or "UTC",
                grace=parse_duration(self.grace.data or "", field="grace"),
            ),
            description=(self.description.data or "").replace("\r\n", "\n"),
            severity=self.severity.data,
            environment=self.environment.data or "",
        )


class ResetUrlForm(Form):
    """How long the old URL is accepted."""

    overlap = RadioField(
        "How long does the old URL stay valid?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.NOW.key,
        validators=[InputRequired("Choose how long the old URL stays valid.")],
    )

    @property
    def chosen(self) -> GracePeriod:
        """The chosen time."""
        return GracePeriod.of(str(self.overlap.data))
