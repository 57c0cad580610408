"""Forms for schedules, rotations, overrides, swaps and cover."""

from collections.abc import Sequence
from datetime import datetime, time
from hashlib import sha256
from typing import Any, ClassVar, cast
from zoneinfo import ZoneInfo

from wtforms import (
    DateField,
    FieldList,
    FileField,
    FormField,
    HiddenField,
    IntegerField,
    RadioField,
    SelectField,
    SelectMultipleField,
    TimeField,
)
from wtforms import Form as PlainForm
from wtforms.validators import (
    DataRequired,
    InputRequired,
    NumberRange,
    Optional,
    ValidationError,
)

from domain.core.errors import InvalidError
from domain.core.time_zones import convert_to_utc, get_zone
from domain.paging.on_call.absences.types import (
    MAX_CALENDAR_NAME_LENGTH,
    MAX_NOTE_LENGTH,
    NewAbsence,
    NewImportedCalendar,
)
from domain.paging.on_call.my_on_call_types import NewCover, OnCallTurn, OwnSchedule
from domain.paging.on_call.rotation_syntax import WEEKDAYS
from domain.paging.on_call.schedule_plans import TurnUnit
from domain.paging.on_call.types import (
    MAX_LAYER,
    MAX_ROTATION_RESTRICTIONS,
    MAX_ROTATION_USERS,
    MAX_SCHEDULE_DESCRIPTION_LENGTH,
    MAX_SCHEDULE_NAME_LENGTH,
    NewOverride,
    NewRotation,
    NewSwap,
    OnCallPeriod,
    OnCallRotation,
    OnCallSchedule,
)
from forms.base import (
    Form,
    LocalTimeField,
    TextLineField,
    TextLinesField,
    TimeZoneField,
    limit_length,
)

_WEEKDAY_LABELS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MAX_USERNAME_LENGTH = 255
#: Number of empty rows for users, and number of rows that "Add more" adds.
_EMPTY_ROWS = 3
#: Choice that replaces no user. It is not a valid username.
_NOBODY_CHOICE = "+"
_DEFAULT_HANDOFF_TIME = time(9)
_DEFAULT_WEEKDAYS = ("mon",)


class MoveConfirmationForm(Form):
    """A form for a change that has to be confirmed if it moves or ends swaps and overrides."""

    #: Sentences that describe the moves.
    moves: Sequence[str] = ()
    confirmed_moves = HiddenField()

    def confirms_moves(self, moves: Sequence[str]) -> bool:
        """Return whether there are no moves, or the form confirms exactly the given moves."""
        digest = sha256("\n".join(moves).encode()).hexdigest()[:32]
        if not moves or self.confirmed_moves.data == digest:
            return True
        self.moves, self.confirmed_moves.data = moves, digest
        return False


class ScheduleForm(MoveConfirmationForm):
    """The form for the name and time zone of a schedule."""

    name = TextLineField(
        "Name",
        DataRequired("Enter a name, such as Primary."),
        limit_length(MAX_SCHEDULE_NAME_LENGTH, "A name"),
    )
    time_zone = TimeZoneField(default="UTC")
    description = TextLinesField(
        "Description", limit_length(MAX_SCHEDULE_DESCRIPTION_LENGTH, "A description")
    )


class RestrictionForm(PlainForm):
    """The fields for a period on selected weekdays. Empty fields stand for every day, all day."""

    weekdays = SelectMultipleField(
        "Days", choices=list(zip(WEEKDAYS, _WEEKDAY_LABELS, strict=True))
    )
    start_time = TimeField("From", validators=[Optional()])
    end_time = TimeField("Until", validators=[Optional()])

    def validate(self, extra_validators: Any = None) -> bool:
        """Require both times or neither."""
        is_valid = bool(super().validate(extra_validators))
        if is_valid and (self.start_time.data is None) != (self.end_time.data is None):
            self.end_time.errors = ["Enter both times, or neither for whole days."]
            return False
        return is_valid

    @property
    def entered_restriction(self) -> dict[str, object]:
        """The entered restriction, or an empty dictionary if the row is empty."""
        start, end = self.start_time.data or time(), self.end_time.data or time()
        days = {"weekdays": self.weekdays.data} if self.weekdays.data else {}
        is_empty = not days and self.start_time.data is None
        return {} if is_empty else {"start_time": start, "end_time": end, **days}


class RotationForm(MoveConfirmationForm):
    """The form for the users, turns and times of a rotation."""

    #: Names of form fields by the domain's names. Errors in `rotations` are shown at the `users`
    #: field.
    fields_of: ClassVar = {"rotations": "users"}
    name = TextLineField("Name", limit_length(MAX_SCHEDULE_NAME_LENGTH, "A name"))
    users = FieldList(
        TextLineField("User", limit_length(_MAX_USERNAME_LENGTH, "A username")),
        "Users in the order of their turns",
        min_entries=_EMPTY_ROWS,
        max_entries=MAX_ROTATION_USERS,
    )
    kind = RadioField(
        "Turns",
        choices=[("daily", "Daily"), ("weekly", "Weekly"), ("custom", "Custom length")],
        default="weekly",
        validators=[InputRequired("Choose the length of a turn.")],
    )
    every = IntegerField(
        "Length of a custom turn",
        default=1,
        validators=[Optional(), NumberRange(1, 1000, "Enter a length from 1 to 1000.")],
    )
    unit = SelectField("Unit of a custom turn", choices=[(unit, unit) for unit in TurnUnit])
    weekdays = SelectMultipleField(
        "Handoff days",
        choices=list(zip(WEEKDAYS, _WEEKDAY_LABELS, strict=True)),
        default=_DEFAULT_WEEKDAYS,
    )
    handover_time = TimeField(
        "Handoff time",
        default=_DEFAULT_HANDOFF_TIME,
        validators=[InputRequired("Enter a time of day, such as 09:00.")],
    )
    starts_on = DateField("First day", validators=[Optional()])
    layer = IntegerField(
        "Layer",
        validators=[
            Optional(),
            NumberRange(0, MAX_LAYER, f"Enter a layer from 0 to {MAX_LAYER}."),
        ],
    )
    restrictions = FieldList(
        FormField(RestrictionForm),
        "Only at these times",
        min_entries=1,
        max_entries=MAX_ROTATION_RESTRICTIONS,
    )

    @classmethod
    def from_rotation(cls, rotation: OnCallRotation) -> "RotationForm":
        """Return the form with the values of an existing rotation."""
        return cls(
            data={
                **dict(rotation),
                "users": [*(each.username for each in rotation.users), ""],
                "kind": rotation.type,
                "weekdays": rotation.weekdays or _DEFAULT_WEEKDAYS,
                "restrictions": [dict(each) for each in rotation.restrictions],
            }
        )

    def build_form_with_empty_rows(self) -> "RotationForm":
        """Return the posted form with empty rows for more users and times."""
        empty = [""] * _EMPTY_ROWS
        return RotationForm(
            formdata=None,
            data={
                **self.data,
                "users": [*self._usernames, *empty][:MAX_ROTATION_USERS],
                "restrictions": [*self.restrictions.data, {}][:MAX_ROTATION_RESTRICTIONS],
            },
        )

    def validate_users(self, field: Any) -> None:
        """Require at least one user."""
        if not any(field.data):
            raise ValidationError("Choose at least one user.")

    def validate_weekdays(self, field: SelectMultipleField) -> None:
        """Reject weekly turns without a handoff day."""
        is_of_weeks = self.kind.data == "weekly" or (
            self.kind.data == "custom" and self.unit.data == TurnUnit.WEEKS
        )
        if is_of_weeks and not field.data:
            raise ValidationError("Choose at least one handoff day.")

    @property
    def entered_rotation(self) -> NewRotation:
        """The entered users, turns and times as the request body for a rotation.

        Raise InvalidParametersError for invalid values.
        """
        return self.build_entered_body(
            NewRotation,
            type=self.kind.data,
            users=self._usernames,
            restrictions=self._entered_restrictions,
        )

    @property
    def _usernames(self) -> list[str]:
        return [name for name in self.users.data if name]

    @property
    def _entered_restrictions(self) -> list[dict[str, object]]:
        return [given for entry in self.restrictions if (given := entry.form.entered_restriction)]


class OverrideForm(Form):
    """The form for an override: a user, a period, and the user to replace."""

    user = SelectField("Who is on call", validators=[InputRequired("Choose a user.")])
    instead_of = SelectField("Instead of", default="")
    starts_at = LocalTimeField("From", InputRequired("Enter a start."))
    ends_at = LocalTimeField("Until", InputRequired("Enter an end."))

    def __init__(
        self,
        *args: Any,
        schedule: OnCallSchedule,
        names: Sequence[str],
        start: datetime,
        end: datetime | None,
        **kw: Any,
    ) -> None:
        """Offer the users who can be on call, and propose a period."""
        super().__init__(*args, **kw)
        self._zone = get_zone(schedule.time_zone)
        self.user.choices = [(name, name) for name in names]
        self.instead_of.choices = [
            ("", "Everybody else"),
            (_NOBODY_CHOICE, "Nobody (in addition)"),
            *self.user.choices,
        ]
        if not self.is_submitted():
            self.starts_at.data = start.astimezone(self._zone)
            self.ends_at.data = end.astimezone(self._zone) if end else None

    @property
    def entered_override(self) -> NewOverride:
        """The entered override. Its times are in the schedule's time zone."""
        return NewOverride(
            user=self.user.data,
            instead_of="" if self.instead_of.data == _NOBODY_CHOICE else self.instead_of.data,
            in_addition=self.instead_of.data == _NOBODY_CHOICE,
            starts_at=self._parse_local_time(self.starts_at),
            ends_at=self._parse_local_time(self.ends_at),
        )

    def _parse_local_time(self, field: LocalTimeField) -> datetime:
        return convert_to_utc(cast("datetime", field.data), self._zone)


class SwapForm(Form):
    """The form that swaps the shifts of two users."""

    fields_of: ClassVar = {
        **dict.fromkeys(("user", "starts_at", "ends_at"), "shift"),
        **dict.fromkeys(("other_user", "other_starts_at", "other_ends_at"), "other_shift"),
    }
    shift = SelectField("Shift", validators=[InputRequired("Choose a shift.")])
    other_shift = SelectField("In exchange for", validators=[InputRequired("Choose a shift.")])

    def __init__(
        self,
        *args: Any,
        schedule: OnCallSchedule,
        turns: Sequence[OnCallTurn],
        own: str | None,
        **kw: Any,
    ) -> None:
        """Offer the shifts that can be swapped.

        Unless `own` is None, the first shift must belong to the user `own`.
        """
        super().__init__(*args, **kw)
        self._shifts = {
            f"{turn.user.username}@{turn.starts_at:%Y%m%dT%H%M%S}": (turn, turn.user.username)
            for turn in turns
        }
        place = get_zone(schedule.time_zone)
        choices = [
            (key, f"{name}: {_format_shift(shift, place)}")
            for key, (shift, name) in self._shifts.items()
        ]
        mine = [each for each in choices if own is None or self._shifts[each[0]][1] == own]
        theirs = [each for each in choices if own is None or self._shifts[each[0]][1] != own]
        self.shift.choices, self.other_shift.choices = mine, theirs
        if mine and not self.other_shift.data:
            first, name = self._shifts.get(self.shift.data, self._shifts[mine[0][0]])
            others = (
                key
                for key, (turn, other) in self._shifts.items()
                if other != name
                and (turn.starts_at >= first.ends_at or turn.ends_at <= first.starts_at)
            )
            self.other_shift.data = next(others, None)

    def offers_shift_of(self, username: str) -> bool:
        """Return whether a user has a shift, which is required to request a swap."""
        return any(name == username for _, name in self._shifts.values())

    @property
    def entered_swap(self) -> NewSwap:
        """The two users and shifts that the form exchanges."""
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


class AbsenceForm(Form):
    """The form for a period in which the current user is absent."""

    starts_at = LocalTimeField("From", InputRequired("Enter a start."))
    ends_at = LocalTimeField("Until", InputRequired("Enter an end."))
    note = TextLineField("Note", limit_length(MAX_NOTE_LENGTH, "A note"))

    def build_absence(self, time_zone: str) -> NewAbsence:
        """Return the entered absence, with times in the given time zone."""
        start, end = (
            convert_to_utc(cast("datetime", each.data), get_zone(time_zone))
            for each in (self.starts_at, self.ends_at)
        )
        return self.build_entered_body(NewAbsence, starts_at=start, ends_at=end)


class ImportedCalendarForm(Form):
    """The form for a calendar with absences or holidays, as a URL or a file."""

    fields_of: ClassVar = {"content": "file"}
    name = TextLineField(
        "Name",
        DataRequired("Enter a name for the calendar."),
        limit_length(MAX_CALENDAR_NAME_LENGTH, "A name"),
    )
    url = TextLineField("URL of the calendar")
    file = FileField("Or a file (.ics)")

    @property
    def entered_calendar(self) -> NewImportedCalendar:
        """The entered name and the URL or file content as the request body for a calendar.

        Raise InvalidError unless there is either a URL or a file.
        """
        content = self.file.data.read().decode(errors="replace") if self.file.data else ""
        if bool(self.url.data) == bool(content):
            raise InvalidError("Enter either a URL or a file.", field="url")
        return self.build_entered_body(NewImportedCalendar, content=content)


class CoverForm(Form):
    """The form for a user who covers the current user's shifts in a period or a turn."""

    fields_of: ClassVar = {"schedules": "what"}
    what = SelectField("Shifts", validators=[InputRequired("Choose the shifts to cover.")])
    user = SelectField("Who covers you", validators=[InputRequired("Choose a user.")])
    starts_at = LocalTimeField("From", Optional())
    ends_at = LocalTimeField("Until", Optional())
    #: Cover for which the page has shown a preview. A different cover needs a new preview.
    seen = HiddenField()

    def __init__(
        self,
        *args: Any,
        schedules: Sequence[OwnSchedule],
        names: Sequence[str],
        time_zone: str,
        **kw: Any,
    ) -> None:
        """Offer all shifts, the shifts of each schedule, and each turn."""
        super().__init__(*args, **kw)
        self._zone = zone = get_zone(time_zone)
        self._turns = {
            f"{schedule.schedule_id}@{turn.starts_at:%Y%m%dT%H%M%S}": (schedule, turn)
            for schedule in schedules
            for turn in schedule.turns
        }
        self.what.choices = [
            *([("all", "All my shifts in the period below")] if len(schedules) > 1 else []),
            *(
                (str(each.schedule_id), f"{_format_schedule_name(each)}, in the period below")
                for each in schedules
            ),
            *(
                (key, f"My shift {_format_shift(turn, zone)}: {_format_schedule_name(schedule)}")
                for key, (schedule, turn) in self._turns.items()
            ),
        ]
        self.user.choices = [(name, name) for name in names]

    def validate(self, extra_validators: Any = None) -> bool:
        """Require times unless a turn is selected."""
        is_valid = super().validate(extra_validators)
        if self.what.data not in self._turns:
            for each, what in ((self.starts_at, "a start"), (self.ends_at, "an end")):
                if each.data is None and not each.errors:
                    self.add_error(each.name, f"Enter {what}, or choose one of your shifts.")
                    is_valid = False
        return is_valid

    @property
    def entered_cover(self) -> NewCover:
        """The period and the schedules in which another user covers the current user's shifts."""
        schedules: tuple[int, ...] = ()
        if self.what.data in self._turns:
            schedule, turn = self._turns[self.what.data]
            schedules, start, end = (schedule.schedule_id,), turn.starts_at, turn.ends_at
        else:
            schedules = () if self.what.data == "all" else (int(self.what.data),)
            start, end = (
                convert_to_utc(cast("datetime", each.data), self._zone)
                for each in (self.starts_at, self.ends_at)
            )
        return NewCover(user=self.user.data, starts_at=start, ends_at=end, schedules=schedules)

    def check_and_mark_cover_shown(self, cover: NewCover) -> bool:
        """Return whether the page has already shown the cover, and mark the cover as shown."""
        text = cover.model_dump_json()
        had, self.seen.data = self.seen.data == text, text
        return had


def _format_schedule_name(schedule: OwnSchedule) -> str:
    return f"{schedule.name} of {schedule.project_path}"


def _format_shift(shift: OnCallPeriod, time_zone: ZoneInfo) -> str:
    """Format a shift so that it fits into a select box on a phone."""
    start, end = shift.starts_at.astimezone(time_zone), shift.ends_at.astimezone(time_zone)
    if start.date() == end.date():
        return f"{_format_local_time(start)} to {end:%H:%M}"
    same_month = (start.year, start.month) == (end.year, end.month)
    until = f"{end:%a} {end.day} {end:%H:%M}" if same_month else _format_local_time(end)
    return f"{_format_local_time(start)} to {until}"


def _format_local_time(local_time: datetime) -> str:
    return f"{local_time:%a} {local_time.day} {local_time:%b} {local_time:%H:%M}"
