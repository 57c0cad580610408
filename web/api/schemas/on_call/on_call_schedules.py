"""On-call schedules, and who is on call."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from flask import url_for
from pydantic import Field, create_model

from domain.on_call.final_schedule import Source
from domain.on_call.given_times import checked_period
from domain.on_call.overrides import NewOverride, OverrideView
from domain.on_call.people import PersonOnCall
from domain.on_call.restrictions import Period
from domain.on_call.rotations import MOST_ROTATIONS
from domain.on_call.schedules import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    NewSchedule,
    ScheduleEdit,
    ScheduleView,
)
from domain.on_call.shifts import ScheduleNow, Shift, ShownDuty
from domain.on_call.swaps import NewSwap, SwapView
from domain.types.base import (
    Body,
    GivenTime,
    OffsetQuery,
    PagedQuery,
    PageSize,
    Query,
    RequiredText,
    Resource,
    Text,
    Time,
    one_of,
)
from web.api.schemas.accounts.people import UserReference
from web.api.schemas.on_call.on_call_rotations import OnCallRotation, OnCallRotationBody
from web.http.public_urls import public_url

#: Of a list of shifts.
LONGEST_WINDOW = timedelta(days=92)
_USUAL_WINDOW = timedelta(days=14)
_Rotations = Annotated[tuple[OnCallRotationBody, ...], Field(max_length=MOST_ROTATIONS)]
_Name = Annotated[Text, Field(max_length=LONGEST_NAME)]
_Description = Annotated[Text, Field(max_length=LONGEST_DESCRIPTION)]
_Zone = Annotated[Text, Field(max_length=64)]


class OnCallScheduleQuery(PagedQuery):
    """The order of a list of schedules."""

    order_by: str = Field(default="id", pattern="^(?:id|name)$")
    sort: Literal["asc", "desc"] = "asc"


class OnCallNowQuery(OffsetQuery):
    """Schedules by name, with who is on call."""

    order_by: Literal["name"] = "name"
    sort: Literal["asc"] = "asc"


class OnCallCalendarQuery(Query):
    """Which shifts the calendar of a secret address has."""

    shifts: Literal["all", "mine"] = "all"


class OnCallChangeQuery(PagedQuery):
    """The order of a list of overrides or swaps."""

    order_by: str = Field(default="id", pattern="^(?:id|starts_at)$")


class ShiftWindow(OffsetQuery):
    """The end of a list of shifts, and its pages."""

    per_page: PageSize = 100
    until: GivenTime | None = Field(
        default=None, description="By default two weeks after `from`; at most 92 days after it."
    )

    def period(self, now: datetime) -> Period:
        """Return the period that is asked for, or raise InvalidError."""
        start: datetime = getattr(self, "from") or now
        end = self.until or start + _USUAL_WINDOW
        return checked_period(start, end, longest=LONGEST_WINDOW, fields=("from", "until"))


_FROM: dict[str, Any] = {
    "from": (GivenTime | None, Field(default=None, description="By default now."))
}
#: A list of shifts. `from` is a word of Python, which no class can name a field by.
ShiftQuery = create_model(
    "ShiftQuery", __base__=ShiftWindow, __doc__="From when to when a list of shifts is.", **_FROM
)


class OnCallScheduleBody(Body):
    """A new on-call schedule."""

    name: Annotated[RequiredText, Field(max_length=LONGEST_NAME)]
    time_zone: Annotated[RequiredText, Field(max_length=64)] = Field(
        description="A name of the IANA database, such as Europe/Berlin."
    )
    description: _Description = ""
    rotations: _Rotations = ()

    @property
    def schedule(self) -> NewSchedule:
        """The schedule."""
        return NewSchedule(
            name=self.name,
            time_zone=self.time_zone,
            description=self.description,
            rotations=[each.rotation for each in self.rotations],
        )


class OnCallScheduleChangeBody(Body):
    """Changes to a schedule; omitted fields are kept."""

    name: _Name | None = None
    time_zone: _Zone | None = None
    description: _Description | None = None
    rotations: _Rotations | None = Field(
        default=None,
        description="All rotations. One that is as before, under the same name, goes on; past "
        "shifts stay as they were.",
    )

    @property
    def edit(self) -> ScheduleEdit:
        """The change."""
        rotations = self.rotations
        return ScheduleEdit(
            name=self.name,
            time_zone=self.time_zone,
            description=self.description,
            rotations=None if rotations is None else [each.rotation for each in rotations],
        )


class OnCallSchedule(Resource):
    """An on-call schedule."""

    id: int
    name: str
    description: str
    time_zone: str
    created_at: Time
    rotations: tuple[OnCallRotation, ...]
    web_url: str

    @classmethod
    def of(
        cls, view: ScheduleView, *, project_path: str, named: dict[int, PersonOnCall]
    ) -> "OnCallSchedule":
        """Present a schedule; `named` are the users of its rotations by id."""
        path = url_for("on_call_schedules.show", project_path=project_path, schedule_id=view.id)
        return cls(
            id=view.id,
            name=view.name,
            description=view.description,
            time_zone=view.time_zone,
            created_at=view.created_at,
            rotations=tuple(OnCallRotation.of(each, named) for each in view.rotations),
            web_url=public_url(path),
        )


class OnCallUser(Resource):
    """A user on call, and why."""

    user: UserReference
    source: Annotated[str, one_of(*(each.value for each in Source))]
    source_id: int = Field(description="The id of the rotation, override or swap.")

    @classmethod
    def of(cls, duty: ShownDuty) -> "OnCallUser":
        """Present a user on call."""
        return cls(
            user=UserReference.of(duty.person),
            source=duty.source.value,
            source_id=duty.source_id,
        )


class OnCallShift(Resource):
    """A time in which the same users are on call; in a gap there are none."""

    starts_at: Time
    ends_at: Time
    is_gap: bool
    users: tuple[UserReference, ...]
    on_call: tuple[OnCallUser, ...]

    @classmethod
    def of(cls, shift: Shift) -> "OnCallShift":
        """Present a shift."""
        return cls(
            starts_at=shift.start,
            ends_at=shift.end,
            is_gap=shift.is_gap,
            users=tuple(map(UserReference.of, shift.people)),
            on_call=tuple(map(OnCallUser.of, shift.duties)),
        )


class OnCallNow(Resource):
    """Who is on call, and until when."""

    users: tuple[UserReference, ...]
    on_call: tuple[OnCallUser, ...]
    until: Time | None = Field(description="Null if nothing changes within 400 days.")


class ScheduleOnCall(Resource):
    """Who is on call in a schedule now, and who is next."""

    schedule_id: int
    name: str
    time_zone: str
    now: OnCallNow
    next: OnCallShift | None = Field(
        description="The next time after that in which somebody is on call; null if there is none "
        "within 400 days."
    )

    @classmethod
    def of(cls, current: ScheduleNow) -> "ScheduleOnCall":
        """Present who is on call now and next."""
        return cls(
            schedule_id=current.schedule.id,
            name=current.schedule.name,
            time_zone=current.schedule.time_zone,
            now=OnCallNow(
                users=tuple(map(UserReference.of, current.now.people)),
                on_call=tuple(map(OnCallUser.of, current.now.duties)),
                until=current.until,
            ),
            next=OnCallShift.of(current.next) if current.next else None,
        )


class OnCallOverrideBody(Body):
    """A time in which one user is on call instead of everybody else."""

    user: RequiredText = Field(description="A user name.")
    starts_at: GivenTime
    ends_at: GivenTime

    @property
    def override(self) -> NewOverride:
        """The override."""
        return NewOverride(username=self.user, starts_at=self.starts_at, ends_at=self.ends_at)


class OnCallOverride(Resource):
    """A time in which one user is on call instead of everybody else."""

    id: int
    user: UserReference
    starts_at: Time
    ends_at: Time
    created_by: UserReference | None
    created_at: Time

    @classmethod
    def of(cls, view: OverrideView) -> "OnCallOverride":
        """Present an override."""
        return cls(
            id=view.id,
            user=UserReference.of(view.person),
            starts_at=view.starts_at,
            ends_at=view.ends_at,
            created_by=UserReference.of(view.created_by) if view.created_by else None,
            created_at=view.created_at,
        )


class OnCallSwapBody(Body):
    """Two shifts of two users, who exchange them."""

    user: RequiredText = Field(description="Who has the first shift.")
    starts_at: GivenTime
    ends_at: GivenTime
    other_user: RequiredText = Field(description="Who has the other shift.")
    other_starts_at: GivenTime
    other_ends_at: GivenTime

    @property
    def swap(self) -> NewSwap:
        """The swap."""
        return NewSwap(
            username=self.user,
            starts_at=self.starts_at,
            ends_at=self.ends_at,
            other_username=self.other_user,
            other_starts_at=self.other_starts_at,
            other_ends_at=self.other_ends_at,
        )


class OnCallSwap(Resource):
    """Two shifts of two users, who exchange them."""

    id: int
    user: UserReference
    starts_at: Time
    ends_at: Time
    other_user: UserReference
    other_starts_at: Time
    other_ends_at: Time
    created_by: UserReference | None
    created_at: Time

    @classmethod
    def of(cls, view: SwapView) -> "OnCallSwap":
        """Present a swap."""
        return cls(
            id=view.id,
            user=UserReference.of(view.person),
            starts_at=view.starts_at,
            ends_at=view.ends_at,
            other_user=UserReference.of(view.other_person),
            other_starts_at=view.other_starts_at,
            other_ends_at=view.other_ends_at,
            created_by=UserReference.of(view.created_by) if view.created_by else None,
            created_at=view.created_at,
        )
