"""Forms for on-call schedules and their rotations."""

from collections.abc import Sequence
from datetime import time
from typing import Any

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

from domain.on_call.handovers import Cadence, Unit
from domain.on_call.plans import RotationPlan
from domain.on_call.restrictions import Restriction
from domain.on_call.rotation_syntax import WEEKDAYS, parse_restriction, written_time
from domain.on_call.rotations import HIGHEST_LAYER, NewRotation
from domain.on_call.schedules import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    NewSchedule,
    ScheduleEdit,
)
from domain.time_zones import zone_names
from forms.base import Form, without_edges

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONGEST_TEXT = 2000
_NINE = time(9)


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

    @property
    def schedule(self) -> NewSchedule:
        """The posted schedule."""
        return NewSchedule(
            name=self.name.data or "",
            time_zone=self.time_zone.data or "",
            description=self.description.data or "",
        )

    @property
    def edit(self) -> ScheduleEdit:
        """The posted values as a change of all of them."""
        return ScheduleEdit(
            name=self.name.data or "",
            time_zone=self.time_zone.data or "",
            description=self.description.data or "",
        )


class RotationForm(Form):
    """A rotation of a schedule."""

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
        "Hand-over on", choices=list(zip(WEEKDAYS, _DAYS, strict=True)), default=["mon"]
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
    def of(cls, plan: RotationPlan, usernames: Sequence[str]) -> "RotationForm":
        """Return the form with a present rotation."""
        cadence = plan.cadence
        kinds = {(Unit.DAYS, 1): "daily", (Unit.WEEKS, 1): "weekly"}
        return cls(
            name=plan.name,
            users=", ".join(usernames),
            kind=kinds.get((cadence.unit, cadence.every), "custom"),
            every=cadence.every,
            unit=cadence.unit.value,
            weekdays=[WEEKDAYS[day] for day in cadence.weekdays],
            handover_time=cadence.at,
            starts_on=plan.starts_on,
            layer=plan.layer,
            restrictions="\n".join(map(_line, plan.restrictions)),
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
        if self.cadence_unit is Unit.WEEKS and not field.data:
            message = "Choose at least one day of hand-over."
            raise ValidationError(message)

    @property
    def cadence_unit(self) -> Unit:
        """The unit of a turn."""
        kinds = {"daily": Unit.DAYS, "weekly": Unit.WEEKS}
        return kinds.get(self.kind.data) or Unit(self.unit.data)

    def rotation(self, *, replaces: int | None) -> NewRotation:
        """Return the posted rotation."""
        is_custom = self.kind.data == "custom"
        days = tuple(sorted(WEEKDAYS.index(each) for each in self.weekdays.data or ()))
        return NewRotation(
            name=self.name.data or "",
            usernames=[
                name for each in (self.users.data or "").split(",") if (name := each.strip())
            ],
            cadence=Cadence(
                unit=self.cadence_unit,
                every=(self.every.data or 1) if is_custom else 1,
                at=(self.handover_time.data or _NINE).replace(second=0, microsecond=0),
                weekdays=days or (0,),
            ),
            layer=self.layer.data,
            starts_on=self.starts_on.data,
            restrictions=tuple(map(parse_restriction, _lines(self.restrictions.data))),
            replaces=replaces,
        )


def _lines(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def _line(each: Restriction) -> str:
    days = ",".join(WEEKDAYS[day] for day in each.weekdays)
    return f"{days} {written_time(each.start)}-{written_time(each.end)}"
