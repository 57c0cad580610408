"""Forms for overrides and swaps of an on-call schedule."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, cast
from zoneinfo import ZoneInfo

from wtforms import DateTimeLocalField, SelectField
from wtforms.validators import InputRequired

from domain.on_call.types import NewOverride, NewSwap, OnCallSchedule, OnCallShift
from domain.time_zones import instant, zone
from forms.base import Form

_MINUTES = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]


class OverrideForm(Form):
    """A user, and when they are on call instead of everybody else."""

    user = SelectField("Who is on call", validators=[InputRequired("Choose somebody.")])
    starts_at = DateTimeLocalField(
        "From",
        format=_MINUTES,
        validators=[InputRequired("Enter when it starts.")],
    )
    ends_at = DateTimeLocalField(
        "Until",
        format=_MINUTES,
        validators=[InputRequired("Enter when it ends.")],
    )

    def __init__(
        self,
        *args: Any,
        schedule: OnCallSchedule,
        names: Sequence[str],
        now: datetime,
        **kw: Any,
    ) -> None:
        """Offer the users who can be on call, from now on: most overrides begin immediately."""
        super().__init__(*args, **kw)
        self._zone = zone(schedule.time_zone)
        self.user.choices = [(name, name) for name in names]
        if not self.is_submitted():
            self.starts_at.data = now.astimezone(self._zone)

    @property
    def override(self) -> NewOverride:
        """The posted override; its times are those of the schedule's wall clock."""
        return NewOverride(
            user=self.user.data,
            starts_at=self._moment(self.starts_at),
            ends_at=self._moment(self.ends_at),
        )

    def _moment(self, field: DateTimeLocalField) -> datetime:
        return instant(cast("datetime", field.data), self._zone)


class SwapForm(Form):
    """Two shifts of two users."""

    fields_of: ClassVar = {
        **dict.fromkeys(("user", "starts_at", "ends_at"), "shift"),
        **dict.fromkeys(("other_user", "other_starts_at", "other_ends_at"), "other_shift"),
    }
    shift = SelectField("Shift", validators=[InputRequired("Choose a shift.")])
    other_shift = SelectField("For this shift", validators=[InputRequired("Choose a shift.")])

    def __init__(
        self,
        *args: Any,
        schedule: OnCallSchedule,
        shifts: Sequence[OnCallShift],
        own: str | None,
        **kw: Any,
    ) -> None:
        """Offer shifts: first one of `own`, unless that is None, and one of somebody else."""
        super().__init__(*args, **kw)
        self._shifts = {
            f"{user.username}@{shift.starts_at:%Y%m%dT%H%M%S}": (shift, user.username)
            for shift in shifts
            for user in shift.users
        }
        place = zone(schedule.time_zone)
        choices = [
            (key, f"{name}: {_from_to(shift, place)}")
            for key, (shift, name) in self._shifts.items()
        ]
        mine = [each for each in choices if own is None or self._shifts[each[0]][1] == own]
        self.shift.choices, self.other_shift.choices = mine, choices
        if mine and not self.other_shift.data:
            first = self._shifts[mine[0][0]][1]
            others = (key for key, (_, name) in self._shifts.items() if name != first)
            self.other_shift.data = next(others, None)

    @property
    def swap(self) -> NewSwap:
        """The posted swap."""
        shift, username = self._shifts[self.shift.data]
        other, other_username = self._shifts[self.other_shift.data]
        return NewSwap(
            user=username,
            starts_at=shift.starts_at,
            ends_at=shift.ends_at,
            other_user=other_username,
            other_starts_at=other.starts_at,
            other_ends_at=other.ends_at,
        )


def _from_to(shift: OnCallShift, place: ZoneInfo) -> str:
    """Write a shift so that a select box on a telephone has room for it."""
    start, end = shift.starts_at.astimezone(place), shift.ends_at.astimezone(place)
    if start.date() == end.date():
        return f"{_written(start)} to {end:%H:%M}"
    same_month = (start.year, start.month) == (end.year, end.month)
    until = f"{end:%a} {end.day} {end:%H:%M}" if same_month else _written(end)
    return f"{_written(start)} to {until}"


def _written(local: datetime) -> str:
    return f"{local:%a} {local.day} {local:%b} {local:%H:%M}"
