"""Forms of silences and of how alerts that open again and again are treated."""

from datetime import datetime
from typing import Any

from wtforms import BooleanField, DateTimeLocalField, IntegerField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange, Optional

from domain.alerts.matching.matchers import Matcher
from domain.alerts.matching.parser import parse_matchers
from domain.durations import parse_duration
from domain.errors import InvalidError
from domain.silences.flapping import BOUNDS, FlapSettings
from domain.silences.silences import LONGEST_COMMENT, NewSilence, SilenceChange, check_matchers
from domain.time_zones import instant, zone
from forms.base import Form, without_edges

_TOO_LONG = f"A comment may have at most {LONGEST_COMMENT:,} characters."


def _later(begin: datetime, length: str) -> datetime:
    try:
        return begin + parse_duration(length, field="duration")
    except OverflowError as error:
        message = "That is too far in the future."
        raise InvalidError(message, field="duration") from error


class SilenceForm(Form):
    """Whose alerts page nobody, and for how long."""

    matchers = TextAreaField(
        "Matchers",
        filters=[without_edges],
        validators=[DataRequired('Enter at least one matcher, such as service="web".')],
    )
    duration = StringField(
        "Duration",
        filters=[without_edges],
        default="2h",
        validators=[DataRequired("Enter a duration, such as 30m or 2h.")],
    )
    starts_at = DateTimeLocalField(
        "Start",
        format=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
        validators=[Optional()],
    )
    comment = StringField(
        "Comment",
        filters=[without_edges],
        validators=[Length(max=LONGEST_COMMENT, message=_TOO_LONG)],
    )

    def __init__(self, *args: Any, time_zone: str, **kwargs: Any) -> None:
        """Take the time zone in which the start is entered."""
        super().__init__(*args, **kwargs)
        self._zone = zone(time_zone)
        self.starts_at.label.text = f"Start ({time_zone.replace('_', ' ')})"

    @property
    def read_matchers(self) -> tuple[Matcher, ...]:
        """The matchers, one or several on a line; raises InvalidError."""
        lines = (line.strip().rstrip(",") for line in (self.matchers.data or "").splitlines())
        found = tuple(
            matcher for line in lines for matcher in parse_matchers(line, field="matchers")
        )
        check_matchers(found)
        return found

    def wanted(self, now: datetime) -> NewSilence:
        """Return what was entered; raise InvalidError."""
        given = self.starts_at.data
        starts_at = instant(given, self._zone) if given else now
        return NewSilence(
            matchers=self.read_matchers,
            comment=self.comment.data or "",
            starts_at=starts_at,
            ends_at=_later(starts_at, self.duration.data or ""),
        )


class SilenceExtensionForm(Form):
    """How much longer a silence takes."""

    duration = StringField(
        "Ends in",
        filters=[without_edges],
        default="2h",
        validators=[DataRequired("Enter a duration from now, such as 30m or 2h.")],
    )

    def wanted(self, now: datetime) -> SilenceChange:
        """Return what was entered; raise InvalidError."""
        return SilenceChange(ends_at=_later(now, self.duration.data or ""))


def _number(label: str, name: str) -> IntegerField:
    least, most = BOUNDS[name]
    message = f"Enter a number from {least} to {most}."
    return IntegerField(
        label,
        validators=[InputRequired(message), NumberRange(least, most, message=message)],
    )


class FlapSettingsForm(Form):
    """How alerts that open again and again are treated."""

    enabled = BooleanField("Hold back pages of flapping alerts")
    openings = _number("Times an alert can open", "openings")
    within_minutes = _number("Within (minutes)", "within_minutes")
    hold_minutes = _number("Page the same people again after (minutes)", "hold_minutes")
    reopen_minutes = _number("Reopen window (minutes)", "reopen_minutes")
    holds_critical = BooleanField("Hold back repeated pages of critical alerts as well")

    @classmethod
    def of(cls, settings: FlapSettings) -> "FlapSettingsForm":
        """Return the form of the settings, or what was sent of it."""
        return cls(data={"enabled": settings.is_on, **vars(settings)})

    @property
    def wanted(self) -> FlapSettings:
        """What was entered."""
        numbers = {name: int(self[name].data or 0) for name in BOUNDS}
        holds_critical = bool(self.holds_critical.data)
        return FlapSettings(is_on=bool(self.enabled.data), holds_critical=holds_critical, **numbers)
