"""Forms for on-call schedules and their rotations."""

from datetime import time
from typing import Any, ClassVar

from wtforms import (
    DateField,
    IntegerField,
    RadioField,
    SelectField,
    SelectMultipleField,
    StringField,
    TextAreaField,
    TimeField,
)
from wtforms.validators import (
    DataRequired,
    InputRequired,
    Length,
    NumberRange,
    Optional,
    ValidationError,
)

from domain.on_call.handovers import Unit
from domain.on_call.rotation_syntax import WEEKDAYS, parse_restriction, written_time
from domain.on_call.types import (
    HIGHEST_LAYER,
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    NewRotation,
    OnCallRestriction,
    OnCallRotation,
)
from domain.time_zones import zone_names
from forms.base import Form, without_edges

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONGEST_TEXT = 2000
_NINE = time(9)
_FIRST_WEEKDAY = ("mon",)


class ScheduleForm(Form):
    """The name and the time zone of a schedule."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name, such as Primary."),
            Length(max=LONGEST_NAME, message=f"A name has at most {LONGEST_NAME} characters."),
        ],
    )
    time_zone = SelectField("Time zone", default="UTC", validate_choice=False)
    description = TextAreaField(
        "Description",
        filters=[without_edges],
        validators=[
            Length(
                max=LONGEST_DESCRIPTION,
                message=f"A description has at most {LONGEST_DESCRIPTION} characters.",
            )
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer every time zone."""
        super().__init__(*args, **kwargs)
        self.time_zone.choices = [(name, name.replace("_", " ")) for name in zone_names()]


class RotationForm(Form):
    """A rotation of a schedule."""

    #: Errors name the whole list of rotations: beside the users is where most of them belong.
    fields_of: ClassVar = {"rotations": "users"}
    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            Length(max=LONGEST_NAME, message=f"A name has at most {LONGEST_NAME} characters.")
        ],
    )
    users = StringField(
        "Users in the order of their turns",
        filters=[without_edges],
        validators=[
            DataRequired("Enter at least one user name."),
            Length(max=_LONGEST_TEXT, message="Too many users."),
        ],
    )
    kind = RadioField(
        "Turns",
        choices=[("daily", "Daily"), ("weekly", "Weekly"), ("custom", "Custom length")],
        default="weekly",
        validators=[InputRequired("Choose how long a turn is.")],
    )
    every = IntegerField(
        "Length of a custom turn",
        default=1,
        validators=[Optional(), NumberRange(1, 1000, "A turn has a length from 1 to 1000.")],
    )
    unit = SelectField("Unit of a custom turn", choices=[(unit, unit) for unit in Unit])
    weekdays = SelectMultipleField(
        "Hand-over on", choices=list(zip(WEEKDAYS, _DAYS, strict=True)), default=_FIRST_WEEKDAY
    )
    handover_time = TimeField(
        "Hand-over at",
        default=_NINE,
        validators=[InputRequired("Enter a time of day, such as 09:00.")],
    )
    starts_on = DateField("First day", validators=[Optional()])
    layer = IntegerField(
        "Layer",
        validators=[
            Optional(),
            NumberRange(0, HIGHEST_LAYER, f"A layer is a number from 0 to {HIGHEST_LAYER}."),
        ],
    )
    restrictions = TextAreaField(
        "Only at these times",
        filters=[without_edges],
        validators=[Length(max=_LONGEST_TEXT, message="Too many times.")],
    )

    @classmethod
    def of(cls, rotation: OnCallRotation) -> "RotationForm":
        """Return the form with a present rotation."""
        return cls(
            name=rotation.name,
            users=", ".join(each.username for each in rotation.users),
            kind=rotation.type,
            every=rotation.every,
            unit=rotation.unit,
            weekdays=rotation.weekdays or _FIRST_WEEKDAY,
            handover_time=rotation.handover_time,
            starts_on=rotation.starts_on,
            layer=rotation.layer,
            restrictions="\n".join(map(_line, rotation.restrictions)),
        )

    def validate_restrictions(self, field: TextAreaField) -> None:
        """Refuse a line that says no time."""
        for line in _lines(field.data):
            try:
                parse_restriction(line)
            except ValueError as error:
                raise ValidationError(f"“{line[:50]}” {error}.") from error

    def validate_weekdays(self, field: SelectMultipleField) -> None:
        """Refuse weekly turns without a day of hand-over."""
        is_of_weeks = self.kind.data == "weekly" or (
            self.kind.data == "custom" and self.unit.data == Unit.WEEKS
        )
        if is_of_weeks and not field.data:
            message = "Choose at least one day of hand-over."
            raise ValidationError(message)

    @property
    def rotation(self) -> NewRotation:
        """The posted rotation; raises InvalidParametersError."""
        return self.read(
            NewRotation,
            type=self.kind.data,
            users=[name for each in (self.users.data or "").split(",") if (name := each.strip())],
            restrictions=_lines(self.restrictions.data),
        )


def _lines(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def _line(each: OnCallRestriction) -> str:
    times = f"{written_time(each.start_time)}-{written_time(each.end_time)}"
    return f"{','.join(each.weekdays)} {times}"
