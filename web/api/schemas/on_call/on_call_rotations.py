"""Rotations of on-call schedules."""

from datetime import date, time
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from domain.on_call.handovers import Cadence, Unit
from domain.on_call.people import PersonOnCall
from domain.on_call.plans import RotationPlan
from domain.on_call.restrictions import EVERY_DAY, Restriction
from domain.on_call.rotation_syntax import WEEKDAYS, time_of_day, weekday, written_time
from domain.on_call.rotations import (
    HIGHEST_LAYER,
    LONGEST_NAME,
    MOST_RESTRICTIONS,
    MOST_USERS,
    NewRotation,
)
from domain.types.base import Body, GivenDay, Resource, Text, one_of, split
from web.api.schemas.accounts.people import UserReference

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Kind = Literal["daily", "weekly", "custom"]
_FIXED = {"daily": Cadence(unit=Unit.DAYS), "weekly": Cadence(unit=Unit.WEEKS)}
#: Read as a given one is, so that the description shows it as one.
_USUAL_TIME: Any = "09:00"
_A_TIME = {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$", "examples": ["09:00"]}


def _read_time(value: Any) -> Any:
    return time_of_day(value if isinstance(value, str) else "")


def _usernames(value: Any) -> Any:
    """Take users as names, and as this API returns them."""
    given = split(value)
    if not isinstance(given, list | tuple):
        return given
    return [each["username"] if _is_person(each) else each for each in given]


def _is_person(value: Any) -> bool:
    return isinstance(value, dict) and "username" in value


def _days(value: Any) -> Any:
    given = split(value)
    if not isinstance(given, list | tuple):
        return given
    return [WEEKDAYS[weekday(each)] if isinstance(each, str) else each for each in given]


def _without_repeats(days: tuple[Weekday, ...]) -> tuple[Weekday, ...]:
    return tuple(dict.fromkeys(days))


#: A time of day by the wall clock; `24:00` is midnight.
GivenTimeOfDay = Annotated[time, BeforeValidator(_read_time), WithJsonSchema(_A_TIME)]
#: A time of day of a response.
TimeOfDay = Annotated[time, PlainSerializer(written_time, return_type=str), WithJsonSchema(_A_TIME)]
_Weekdays = Annotated[tuple[Weekday, ...], BeforeValidator(_days), AfterValidator(_without_repeats)]
_Users = Annotated[
    tuple[Text, ...],
    BeforeValidator(_usernames),
    Field(min_length=1, max_length=MOST_USERS, description="User names in the order of turns."),
]


def _numbers(days: tuple[Weekday, ...]) -> tuple[int, ...]:
    return tuple(sorted(WEEKDAYS.index(each) for each in days))


class OnCallRestrictionBody(Body):
    """A time of day on some weekdays, outside of which a rotation is not on call."""

    start_time: GivenTimeOfDay
    end_time: GivenTimeOfDay = Field(
        description="Not after the start: on the next day. The same: a whole day."
    )
    weekdays: _Weekdays = Field(
        default=("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
        min_length=1,
        description="Days on which the time begins; all, if none is given.",
    )

    @property
    def restriction(self) -> Restriction:
        """The restriction."""
        days = _numbers(self.weekdays)
        return Restriction(start=self.start_time, end=self.end_time, weekdays=days or EVERY_DAY)


class OnCallRotationBody(Body):
    """A rotation of a schedule."""

    name: Annotated[Text, Field(max_length=LONGEST_NAME)] = Field(
        default="", description="`Rotation 1` and so on, if none is given."
    )
    type: Kind = "weekly"
    every: int | None = Field(
        default=None, ge=1, le=1000, description="Of `custom`: the length of a turn in units."
    )
    unit: Literal["hours", "days", "weeks"] | None = Field(default=None, description="Of `custom`.")
    weekdays: _Weekdays = Field(
        default=("mon",), description="Days of hand-over of weekly turns, at least one."
    )
    handover_time: GivenTimeOfDay = Field(
        default=_USUAL_TIME,
        validate_default=True,
        description="By the wall clock of the schedule's time zone.",
    )
    starts_on: GivenDay | None = Field(
        default=None,
        description="The day of the first hand-over. Without it a new rotation has begun with its "
        "first user, and a changed one goes on with whoever is on call.",
    )
    users: _Users
    layer: int | None = Field(
        default=None,
        ge=0,
        le=HIGHEST_LAYER,
        description="The highest layer in which somebody is on call counts; rotations of one layer "
        "are on call together. Without it, a rotation is above those before it.",
    )
    restrictions: Annotated[
        tuple[OnCallRestrictionBody, ...], Field(max_length=MOST_RESTRICTIONS)
    ] = ()

    @model_validator(mode="after")
    def _has_a_length(self) -> "OnCallRotationBody":
        if self.type == "custom" and self.unit is None:
            message = "of type custom needs every and unit"
            raise ValueError(message)
        if self._cadence.unit is Unit.WEEKS and not self.weekdays:
            message = "has no weekdays on which it is handed over"
            raise ValueError(message)
        return self

    @property
    def rotation(self) -> NewRotation:
        """The rotation."""
        return NewRotation(
            name=self.name,
            usernames=self.users,
            cadence=self._cadence,
            layer=self.layer,
            starts_on=self.starts_on,
            restrictions=tuple(each.restriction for each in self.restrictions),
        )

    @property
    def _cadence(self) -> Cadence:
        is_custom = self.type == "custom"
        return Cadence(
            unit=Unit(self.unit) if is_custom and self.unit else _FIXED[self.type].unit,
            every=self.every or 1 if is_custom else 1,
            at=self.handover_time,
            weekdays=_numbers(self.weekdays),
        )


class OnCallRestriction(Resource):
    """A time of day on some weekdays, outside of which a rotation is not on call."""

    start_time: TimeOfDay
    end_time: TimeOfDay
    weekdays: tuple[Annotated[str, one_of(*WEEKDAYS)], ...]

    @classmethod
    def of(cls, each: Restriction) -> "OnCallRestriction":
        """Present a restriction."""
        days = tuple(WEEKDAYS[day] for day in each.weekdays)
        return cls(start_time=each.start, end_time=each.end, weekdays=days)


class OnCallRotation(Resource):
    """A rotation of an on-call schedule."""

    id: int = Field(description="A changed rotation gets another one.")
    name: str
    type: Kind
    every: int
    unit: Literal["hours", "days", "weeks"]
    weekdays: tuple[Annotated[str, one_of(*WEEKDAYS)], ...] = Field(
        description="Days of hand-over of weekly turns; empty for others."
    )
    handover_time: TimeOfDay
    starts_on: date
    users: tuple[UserReference, ...]
    layer: int
    restrictions: tuple[OnCallRestriction, ...]

    @classmethod
    def of(cls, plan: RotationPlan, named: dict[int, PersonOnCall]) -> "OnCallRotation":
        """Present a rotation; `named` are its users by id."""
        cadence = plan.cadence
        days = cadence.weekdays if cadence.unit is Unit.WEEKS else ()
        return cls(
            id=plan.id,
            name=plan.name,
            type=kind_of(cadence),
            every=cadence.every,
            unit=cadence.unit.value,
            weekdays=tuple(WEEKDAYS[day] for day in days),
            handover_time=cadence.at,
            starts_on=plan.starts_on,
            users=tuple(UserReference.of(named[each]) for each in plan.user_ids),
            layer=plan.layer,
            restrictions=tuple(map(OnCallRestriction.of, plan.restrictions)),
        )


def kind_of(cadence: Cadence) -> Kind:
    """Return the type of a rotation."""
    if cadence.every == 1 and cadence.unit is Unit.DAYS:
        return "daily"
    return "weekly" if cadence.every == 1 and cadence.unit is Unit.WEEKS else "custom"
