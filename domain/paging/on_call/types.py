"""Resources and request bodies for on-call schedules."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    create_model,
    model_validator,
)

from domain.accounts.profiles import UserReference
from domain.core.errors import InvalidError
from domain.core.time_zones import EARLIEST_TIME, LATEST_TIME, convert_to_utc, get_zone
from domain.core.types.base import (
    Body,
    Option,
    Query,
    RequestDay,
    RequestLocalTime,
    RequestTime,
    RequiredText,
    Resource,
    Text,
    Time,
    build_choices_schema,
    get_column_values,
    make_fields_optional,
    remove_duplicates,
    split_words,
)
from domain.core.types.pagination import IncludeAncestorGroups, OffsetQuery, PagedQuery, PageSize
from domain.paging.on_call.final_schedule import DutySource
from domain.paging.on_call.rotation_syntax import (
    WEEKDAYS,
    format_time_of_day,
    parse_restriction,
    parse_rotation,
    parse_time_of_day,
    parse_weekday,
)
from domain.paging.on_call.schedule_plans import (
    EVERY_DAY,
    Cadence,
    Period,
    Restriction,
    RotationPlan,
    TurnUnit,
)

#: Maximum length of an override, or of each shift in a swap.
MAX_SHIFT_CHANGE_LENGTH = timedelta(days=366)
MAX_SCHEDULE_NAME_LENGTH, MAX_SCHEDULE_DESCRIPTION_LENGTH = 100, 1_000
#: Maximum number of rotations in a schedule, and of users and restrictions in a rotation.
MAX_ROTATIONS, MAX_ROTATION_USERS, MAX_ROTATION_RESTRICTIONS = 20, 100, 20
MAX_LAYER = 100
#: Maximum length of the period for a list of shifts.
MAX_SHIFT_LIST_PERIOD = timedelta(days=92)
_DEFAULT_SHIFT_LIST_PERIOD = timedelta(days=14)
_Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_RotationType = Literal["daily", "weekly", "custom"]
_Unit = Literal["hours", "days", "weeks"]
_UNITS: Mapping[str, TurnUnit] = {"daily": TurnUnit.DAYS, "weekly": TurnUnit.WEEKS}
#: Default handoff time. The string is parsed like values in requests, so that the schema shows the
#: same format.
_DEFAULT_HANDOFF_TIME: Any = "09:00"
SomeQuery = TypeVar("SomeQuery", bound=Query)
SomeBody = TypeVar("SomeBody", bound=Body)


def _interpret_local_times(body: SomeBody, time_zone: str) -> SomeBody:
    """Return a copy of a body, with times without an offset interpreted in a time zone."""
    times = {
        name: convert_to_utc(value, get_zone(time_zone))
        for name in type(body).model_fields
        if isinstance(value := getattr(body, name), datetime) and value.tzinfo is None
    }
    return body.model_copy(update=times)


def check_period(
    start: datetime,
    end: datetime,
    *,
    max_length: timedelta = MAX_SHIFT_CHANGE_LENGTH,
    fields: tuple[str, str],
) -> Period:
    """Validate and return a period.

    Raise InvalidError if the period is empty, too long, or outside the supported years.
    """
    start_field, end_field = fields
    if not (start >= EARLIEST_TIME and end <= LATEST_TIME):
        message = f"Times must be between the years {EARLIEST_TIME.year} and {LATEST_TIME.year}."
        raise InvalidError(message, field=start_field if start < EARLIEST_TIME else end_field)
    if end <= start:
        raise InvalidError("The end must be after the start.", field=end_field)
    if end - start > max_length:
        raise InvalidError(f"A period can be at most {max_length.days} days long.", field=end_field)
    return Period(start, end)


def check_period_not_over(period: Period, *, field: str, now: datetime) -> None:
    """Check that a period has not ended, because past shifts cannot change.

    Raise InvalidError if the period has ended.
    """
    if period.end <= now:
        raise InvalidError("This time is in the past. Choose an end in the future.", field=field)


def _parse_time(value: Any) -> Any:
    return (
        value
        if isinstance(value, time)
        else parse_time_of_day(value if isinstance(value, str) else "")
    )


def _parse_usernames(value: Any) -> Any:
    """Convert usernames and user objects from a request to usernames."""
    given = split_words(value)
    if not isinstance(given, list | tuple):
        return given
    return [each["username"] if _is_user_object(each) else each for each in given]


def _is_user_object(value: Any) -> bool:
    return isinstance(value, dict) and "username" in value


def _parse_weekdays(value: Any) -> Any:
    given = split_words(value)
    if not isinstance(given, list | tuple):
        return given
    return [WEEKDAYS[parse_weekday(each)] if isinstance(each, str) else each for each in given]


def _list_weekday_numbers(days: tuple[_Weekday, ...]) -> tuple[int, ...]:
    return tuple(sorted(WEEKDAYS.index(each) for each in days))


#: Type of a local time of day. Requests may use `24:00` for midnight.
_TimeOfDay = Annotated[
    time,
    BeforeValidator(_parse_time),
    PlainSerializer(format_time_of_day, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$", "examples": ["09:00"]}),
]
_Weekdays = Annotated[
    tuple[_Weekday, ...], BeforeValidator(_parse_weekdays), AfterValidator(remove_duplicates)
]


class OnCallRestriction(Resource):
    """A daily period on certain weekdays, to which a rotation or rule is restricted."""

    start_time: _TimeOfDay
    end_time: _TimeOfDay
    weekdays: _Weekdays

    @property
    def restriction(self) -> Restriction:
        """The daily period and the weekdays as a `Restriction`."""
        days = _list_weekday_numbers(self.weekdays)
        return Restriction(start=self.start_time, end=self.end_time, weekdays=days or EVERY_DAY)


class NewRestriction(OnCallRestriction, Body):
    """A daily period on certain weekdays, to which a rotation or rule is restricted."""

    end_time: _TimeOfDay = Field(
        description="End of the period. If it is not after `start_time`, the period ends on the "
        "next day. If both are equal, the period lasts 24 hours."
    )
    weekdays: _Weekdays = Field(
        default=("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
        min_length=1,
        description="Weekdays on which the period starts. The default is every day.",
    )

    @model_validator(mode="before")
    @classmethod
    def _parse_text_form(cls, value: Any) -> Any:
        return parse_restriction(value) if isinstance(value, str) else value


class OnCallRotation(Resource):
    """A rotation of an on-call schedule, with its users, handoffs and restrictions."""

    id: int = Field(description="ID of the rotation. A changed rotation gets a new ID.")
    name: str
    type: _RotationType
    every: int
    unit: _Unit
    weekdays: _Weekdays = Field(
        description="Weekdays of handoffs between weekly turns. Empty if the turns are not weekly."
    )
    handover_time: _TimeOfDay
    starts_on: date = Field(
        description=(
            "Date of the first handoff. If no date was given, this is the date of the last handoff "
            "time before the rotation was created."
        )
    )
    users: tuple[UserReference, ...]
    layer: int
    restrictions: tuple[OnCallRestriction, ...]

    @property
    def cadence(self) -> Cadence:
        """Handoff interval and time of the rotation."""
        days = _list_weekday_numbers(self.weekdays) or Cadence.weekdays
        unit = TurnUnit(self.unit)
        return Cadence(unit=unit, every=self.every, at=self.handover_time, weekdays=days)

    @classmethod
    def from_plan(cls, plan: RotationPlan, users: Mapping[int, UserReference]) -> "OnCallRotation":
        """Return the resource for a rotation.

        `users` maps user IDs to users.
        """
        return cls(
            **get_column_values(plan, cls)
            | build_handoff_fields(plan.cadence)
            | {"restrictions": tuple(map(build_restriction_fields, plan.restrictions))},
            users=tuple(users[each] for each in plan.user_ids),
        )


def build_handoff_fields(cadence: Cadence) -> dict[str, Any]:
    """Return the handoff interval and time of a rotation as fields of the resource."""
    usual = {unit: kind for kind, unit in _UNITS.items()} if cadence.every == 1 else {}
    days = cadence.weekdays if cadence.unit is TurnUnit.WEEKS else ()
    return {
        "type": usual.get(cadence.unit, "custom"),
        "every": cadence.every,
        "unit": cadence.unit.value,
        "weekdays": [WEEKDAYS[day] for day in days],
        "handover_time": cadence.at,
    }


def build_restriction_fields(restriction: Restriction) -> Any:
    """Return a restriction as fields of the resource."""
    days = [WEEKDAYS[day] for day in restriction.weekdays]
    return {"start_time": restriction.start, "end_time": restriction.end, "weekdays": days}


class NewRotation(Body):
    """Request body that defines a rotation of a schedule."""

    name: Annotated[Text, Field(max_length=MAX_SCHEDULE_NAME_LENGTH)] = Field(
        default="",
        description="Name of the rotation. The default is `Rotation` followed by a number.",
    )
    type: _RotationType = "weekly"
    every: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Number of units in a turn, for the type `custom`. The default is 1.",
    )
    unit: _Unit | None = Field(
        default=None, description="Unit for the length of a turn. Required for the type `custom`."
    )
    weekdays: _Weekdays = Field(
        default=("mon",),
        description="Weekdays of handoffs between weekly turns. At least one weekday is required.",
    )
    handover_time: _TimeOfDay = Field(
        default=_DEFAULT_HANDOFF_TIME,
        validate_default=True,
        description="Time of the handoff in the time zone of the schedule.",
    )
    starts_on: RequestDay | None = Field(
        default=None,
        description="Date of the first handoff. If omitted, a new rotation starts immediately with "
        "its first user, and a changed rotation continues with the current user.",
    )
    users: Annotated[
        tuple[Text, ...],
        BeforeValidator(_parse_usernames),
        Field(
            min_length=1,
            max_length=MAX_ROTATION_USERS,
            description="Usernames in the order of their turns.",
        ),
    ]
    layer: int | None = Field(
        default=None,
        ge=0,
        le=MAX_LAYER,
        description="Layer of the rotation. The highest layer in which someone is on call applies. "
        "Users of rotations in the same layer are on call together. By default, each rotation is "
        "one layer above the previous rotation.",
    )
    restrictions: Annotated[
        tuple[NewRestriction, ...], Field(max_length=MAX_ROTATION_RESTRICTIONS)
    ] = ()

    @model_validator(mode="before")
    @classmethod
    def _parse_text_form(cls, value: Any) -> Any:
        return parse_rotation(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_turn_length(self) -> "NewRotation":
        if self.type == "custom" and self.unit is None:
            raise ValueError("must have `unit` because its `type` is custom")
        if self.cadence.unit is TurnUnit.WEEKS and not self.weekdays:
            raise ValueError("must have at least one weekday in `weekdays`")
        return self

    @property
    def cadence(self) -> Cadence:
        """Handoff interval and time of the rotation."""
        unit = _UNITS.get(self.type) or TurnUnit(self.unit or "")
        every = self.every or 1 if self.type == "custom" else 1
        # Weekdays apply only to weekly turns. Other units use the default, so that equal rotations
        # compare equal.
        days = _list_weekday_numbers(self.weekdays) if unit is TurnUnit.WEEKS else Cadence.weekdays
        return Cadence(unit=unit, every=every, at=self.handover_time, weekdays=days)


class OnCallSchedule(Resource):
    """An on-call schedule with its rotations."""

    id: int
    group: str | None = Field(
        description="Path of the group that owns the schedule. Null if a project owns it."
    )
    name: str
    description: str
    time_zone: str
    created_at: Time
    rotations: tuple[OnCallRotation, ...]
    web_url: str


class NewSchedule(Body):
    """Request body that creates an on-call schedule."""

    name: Annotated[RequiredText, Field(max_length=MAX_SCHEDULE_NAME_LENGTH)]
    time_zone: Annotated[RequiredText, Field(max_length=64)] = Field(
        description="IANA time zone, such as Europe/Berlin."
    )
    description: Annotated[Text, Field(max_length=MAX_SCHEDULE_DESCRIPTION_LENGTH)] = ""
    rotations: Annotated[
        tuple[NewRotation, ...],
        Option("--rotation"),
        Field(
            max_length=MAX_ROTATIONS,
            description="Rotations as objects or strings, such as `weekly alice,bob mon 09:00`, "
            "`daily alice,bob 09:00` or `every 12h alice,bob 08:00`. Each string can end with "
            "`from 2026-11-30`, `layer 2` and `only mon-fri 09:00-17:00`. A change must include "
            "all rotations of the schedule. Unchanged rotations continue, and past shifts do not "
            "change.",
        ),
    ] = ()


@make_fields_optional
class ScheduleChange(NewSchedule):
    """Changes to an on-call schedule. Omitted fields are kept."""


class ScheduleQuery(PagedQuery):
    """Query parameters for a list of schedules."""

    order_by: str = Field(default="id", pattern="^(?:id|name)$")
    sort: Literal["asc", "desc"] = "asc"
    include_ancestor_groups: IncludeAncestorGroups = False


class OnCallNowQuery(OffsetQuery):
    """Query parameters for a list of schedules with their users on call, ordered by name."""

    order_by: Literal["name"] = "name"
    sort: Literal["asc"] = "asc"
    include_ancestor_groups: IncludeAncestorGroups = False


class CalendarQuery(Query):
    """Query parameters for a calendar with a secret URL."""

    shifts: Literal["all", "mine"] = "all"


def add_from_field(query: type[SomeQuery]) -> type[SomeQuery]:
    """Add a field named `from`, which is a Python keyword and cannot be declared in a class."""
    field: Any = (RequestTime | None, Field(default=None, description="Start of the period."))
    made: type[SomeQuery] = create_model(
        query.__name__,
        __base__=query,
        __module__=query.__module__,
        __doc__=query.__doc__,
        **{"from": field},
    )
    return made


@add_from_field
class ShiftQuery(OffsetQuery):
    """Query parameters for a list of shifts in a period."""

    per_page: PageSize = 100
    until: RequestTime | None = Field(
        default=None,
        description="End of the period, at most 92 days after `from`. The default is two weeks "
        "after `from`.",
    )

    def resolve_period(self, now: datetime) -> Period:
        """Return the requested period.

        Raise InvalidError if the period is empty, too long, or outside the supported years.
        """
        start: datetime = getattr(self, "from") or now
        end = self.until or start + _DEFAULT_SHIFT_LIST_PERIOD
        return check_period(start, end, max_length=MAX_SHIFT_LIST_PERIOD, fields=("from", "until"))


@add_from_field
class BalanceQuery(Query):
    """Period in which on-call time is counted. The default is the last four weeks."""

    until: RequestTime | None = Field(
        default=None,
        description="End of the period, at most 92 days after `from`. The default is now.",
    )

    def resolve_period(self, now: datetime) -> Period:
        """Return the requested period.

        Raise InvalidError if the period is empty, too long, or outside the supported years.
        """
        end = self.until or now
        start: datetime = getattr(self, "from") or end - 2 * _DEFAULT_SHIFT_LIST_PERIOD
        return check_period(start, end, max_length=MAX_SHIFT_LIST_PERIOD, fields=("from", "until"))


class OnCallPeriod(Resource):
    """Period with a start and an end."""

    starts_at: Time
    ends_at: Time


class TimeOnCall(Resource):
    """On-call time of a user, and its share of the on-call time of all users."""

    user: UserReference
    seconds: int
    share: float = Field(description="Share of the on-call time of all users, from 0 to 1.")


class OnCallBalance(OnCallPeriod):
    """Distribution of on-call time among users.

    If several users are on call at the same time, the time counts for each of them.
    """

    users: tuple[TimeOnCall, ...] = Field(
        description="On-call time of each user, longest time first."
    )
    gap_seconds: int = Field(description="Number of seconds during which no one is on call.")


class OnCallUser(Resource):
    """A user on call, with the rotation, override or swap that puts the user on call."""

    user: UserReference
    source: Annotated[str, build_choices_schema(*(each.value for each in DutySource))]
    source_id: int = Field(description="ID of the rotation, override or swap.")


class OnCallShift(OnCallPeriod):
    """A period in which the same users are on call. A gap has no users."""

    is_gap: bool
    users: tuple[UserReference, ...]
    on_call: tuple[OnCallUser, ...]


class OnCallNow(Resource):
    """Users who are on call now, and the end of their shifts."""

    users: tuple[UserReference, ...]
    on_call: tuple[OnCallUser, ...]
    until: Time | None = Field(
        description="Time at which the users on call change. Null if they do not change within "
        "400 days."
    )


class ScheduleOnCall(Resource):
    """Current and next users on call in a schedule."""

    schedule_id: int
    group: str | None = Field(
        description="Path of the group that owns the schedule. Null if a project owns it."
    )
    name: str
    time_zone: str
    now: OnCallNow
    next: OnCallShift | None = Field(
        description="Next period in which someone is on call. Null if no such period starts within "
        "400 days."
    )


class ChangeQuery(PagedQuery):
    """Query parameters for a list of overrides or swaps."""

    order_by: str = Field(default="id", pattern="^(?:id|starts_at)$")


class NewOverride(Body):
    """A new override, which puts one user on call for a period.

    The user replaces all other users or a single user, or is on call in addition to other users.
    Members without the Maintainer role can override gaps and their own shifts. They can also add
    themselves to any shift, and add other users to their own shifts.
    """

    user: RequiredText = Field(description="Username of the user to put on call.")
    instead_of: Text = Field(
        default="",
        description="Username of the user to replace. If omitted, the override replaces everyone.",
    )
    in_addition: bool = Field(
        default=False,
        description="True to keep everyone else on call. Cannot be combined with `instead_of`.",
    )
    starts_at: RequestLocalTime
    ends_at: RequestLocalTime

    def with_time_zone(self, time_zone: str) -> Self:
        """Return a copy of the body, with times without an offset interpreted in a time zone."""
        return _interpret_local_times(self, time_zone)


class OnCallOverride(Resource):
    """An override, which puts one user on call in place of other users or in addition to them."""

    id: int
    user: UserReference
    instead_of: UserReference | None = Field(
        description="User who is replaced. If null, the override replaces everyone, or no one if "
        "`in_addition` is true."
    )
    in_addition: bool
    starts_at: Time
    ends_at: Time
    created_by: UserReference | None
    created_at: Time


class NewSwap(Body):
    """A new swap of two shifts between two users."""

    user: RequiredText = Field(description="Username of the user who has the first shift.")
    starts_at: RequestLocalTime
    ends_at: RequestLocalTime
    other_user: RequiredText = Field(description="Username of the user who has the other shift.")
    other_starts_at: RequestLocalTime
    other_ends_at: RequestLocalTime

    def with_time_zone(self, time_zone: str) -> Self:
        """Return a copy of the body, with times without an offset interpreted in a time zone."""
        return _interpret_local_times(self, time_zone)


class SwappedShifts(Resource):
    """The two shifts that two users exchange in a swap."""

    id: int
    user: UserReference
    starts_at: Time
    ends_at: Time
    other_user: UserReference
    other_starts_at: Time
    other_ends_at: Time
    created_at: Time


class OnCallSwap(SwappedShifts):
    """A swap of two shifts between two users."""

    created_by: UserReference | None
