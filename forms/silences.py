"""Forms for silences and flap detection."""

from typing import Any, ClassVar

from annotated_types import Ge, Le
from wtforms import BooleanField, IntegerField
from wtforms.validators import DataRequired, InputRequired, NumberRange, Optional

from domain.core.time_zones import convert_to_utc, get_zone
from domain.paging.silences.types import FlapSettings, NewSilence, SilenceChange
from forms.base import Form, LocalTimeField, TextLineField, TextLinesField


class SilenceForm(Form):
    """The form for the matchers, duration, start and comment of a silence."""

    fields_of: ClassVar = {"ends_at": "duration"}

    matchers = TextLinesField(
        "Matchers", DataRequired('Enter at least one matcher, such as service="web".')
    )
    duration = TextLineField(
        "Duration", DataRequired("Enter a duration, such as 30m or 2h."), default="2h"
    )
    starts_at = LocalTimeField("Start", Optional())
    comment = TextLineField("Comment")

    def __init__(self, *args: Any, time_zone: str, **kwargs: Any) -> None:
        """Store the time zone in which the start is entered."""
        super().__init__(*args, **kwargs)
        self._zone = get_zone(time_zone)
        self.starts_at.label.text = f"Start ({time_zone.replace('_', ' ')})"

    def build_silence(self) -> NewSilence:
        """Return the entered values as the request body for a new silence.

        Raise InvalidError for invalid values.
        """
        local = self.starts_at.data
        return self.build_entered_body(
            NewSilence, starts_at=convert_to_utc(local, self._zone) if local else None
        )


class SilenceExtensionForm(Form):
    """The form that changes the end time of a silence."""

    fields_of: ClassVar = {"ends_at": "duration"}

    duration = TextLineField(
        "Ends in", DataRequired("Enter a duration from now, such as 30m or 2h."), default="2h"
    )

    def build_change(self) -> SilenceChange:
        """Return the entered duration as the request body that changes the end of a silence.

        Raise InvalidError for invalid values.
        """
        return self.build_entered_body(SilenceChange)


def _build_number_field(label: str, name: str) -> IntegerField:
    bounds = FlapSettings.model_fields[name].metadata
    least: Any = next(each.ge for each in bounds if isinstance(each, Ge))
    most: Any = next(each.le for each in bounds if isinstance(each, Le))
    message = f"{label} must be a number from {least} to {most}."
    return IntegerField(
        label, validators=[InputRequired(message), NumberRange(least, most, message=message)]
    )


class FlapSettingsForm(Form):
    """The form for the thresholds and delays of flap detection."""

    enabled = BooleanField("Hold back pages of flapping alerts")
    openings = _build_number_field("Maximum number of openings", "openings")
    within_minutes = _build_number_field("Period (minutes)", "within_minutes")
    hold_minutes = _build_number_field("Page the same people again after (minutes)", "hold_minutes")
    reopen_minutes = _build_number_field("Reopen window (minutes)", "reopen_minutes")
    holds_critical = BooleanField("Hold back repeated pages of critical alerts as well")
