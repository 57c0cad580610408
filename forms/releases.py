"""Forms for the release schedule: the checker, the list filters, and the release dates."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import request
from werkzeug.datastructures import MultiDict
from wtforms import Field, FileField, SelectField, StringField, TextAreaField
from wtforms.utils import unset_value
from wtforms.validators import ValidationError

from domain.releases.changes import Interface
from domain.releases.checker.text_checks import NEWEST_RELEASE
from domain.releases.scheduled_changes import (
    ChangeFilter,
    ReleaseChangeState,
    list_scheduled_releases,
)
from domain.releases.version import (
    InvalidReleaseDatesError,
    Release,
    parse_release,
    parse_release_dates,
)
from forms.base import Form

_RELEASE_CHOICES = [(str(each), str(each)) for each in list_scheduled_releases()]


class ReleaseCheckForm(Form):
    """The form for the content to check and the release to check against.

    The form has no CSRF token because the check changes nothing and requires no sign-in.
    """

    release = SelectField("Release", choices=_RELEASE_CHOICES, default=str(NEWEST_RELEASE))
    file = FileField("File")
    content = TextAreaField("Or paste the content")
    name = StringField("Name of the pasted content")

    def __init__(self, given: dict[str, Any] | None = None) -> None:
        """Initialize the form with the submitted content."""
        texts = {name: value for name, value in (given or {}).items() if isinstance(value, str)}
        super().__init__(formdata=MultiDict(texts), meta={"csrf": False})

    def validate(self, extra_validators: Any = None) -> bool:
        """Validate the release, and require content to check."""
        is_valid = super().validate(extra_validators)
        if not self.submitted_text.strip() and not self.submitted_name:
            self.add_error("file", "Choose a file, or paste the content.")
            return False
        return is_valid

    @property
    def submitted_text(self) -> str:
        """Submitted content, or an empty string."""
        return self.content.data or ""

    @property
    def submitted_name(self) -> str:
        """Name of the submitted content, or an empty string."""
        return self.name.data or ""

    @property
    def selected_release(self) -> Release:
        """Selected release. The form must be valid."""
        return parse_release(self.release.data)


#: Maximum number of characters that an error message quotes from an invalid release.
_MAX_ECHO_LENGTH = 40


class ReleaseDateInput(NamedTuple):
    """An input for the date of a release."""

    release: str
    name: str
    #: Date as entered. Browsers without date fields can send any text.
    day: str


class ReleaseDatesField(Field):
    """A field with an input for the date of each release.

    The value is the text of the setting, with a line such as `17.0=2024-05-16` for each date.
    """

    def process(self, formdata: Any, data: Any = unset_value, extra_filters: Any = None) -> None:
        """Read the date inputs if the form contains any.

        The name of each input ends with the release.
        """
        super().process(None, data, extra_filters)
        #: Releases in the schedule, and releases that already have a date.
        self._releases = _list_releases(self.data or "")
        self._entered = _parse_entered_dates(self.data or "")
        self._unknown = self._find_unknown_releases(formdata or {})
        if formdata is not None and any(
            self._build_input_name(each) in formdata for each in self._releases
        ):
            given = {
                each: formdata.get(self._build_input_name(each), "") for each in self._releases
            }
            self._entered = {each: day.strip() for each, day in given.items()}
            self.data = "\n".join(f"{each}={day}" for each, day in self._entered.items() if day)

    @property
    def date_inputs(self) -> Sequence[ReleaseDateInput]:
        """Date inputs in release order."""
        return [
            ReleaseDateInput(each, self._build_input_name(each), self._entered.get(each, ""))
            for each in self._releases
        ]

    def pre_validate(self, form: Any) -> None:
        """Reject dates for releases that have no field in the form."""
        del form
        for release in self._unknown:
            raise ValidationError(
                f"Release {release} is not on the release schedule. To set its date, use "
                "gatebell settings set release_dates."
            )

    def _find_unknown_releases(self, formdata: Mapping[str, str]) -> Sequence[str]:
        """Return the submitted releases that have a date but no field in the form."""
        beginning = f"{self.name}-"
        given = (
            name.removeprefix(beginning)
            for name in formdata
            if name.startswith(beginning) and formdata[name].strip()
        )
        return [each[:_MAX_ECHO_LENGTH] for each in given if each not in self._releases]

    def _build_input_name(self, release: str) -> str:
        return f"{self.name}-{release}"


def _list_releases(text: str) -> Sequence[str]:
    try:
        known = parse_release_dates(text)
    except InvalidReleaseDatesError:
        known = {}
    return [str(each) for each in sorted({*list_scheduled_releases(), *known})]


def _parse_entered_dates(text: str) -> dict[str, str]:
    try:
        return {str(each): day.isoformat() for each, day in parse_release_dates(text).items()}
    except InvalidReleaseDatesError:
        return {}


_INTERFACE_CHOICES = [(each.value, each.label) for each in Interface]
_STATE_CHOICES = [(each.value, each.label) for each in ReleaseChangeState]


class ReleaseFilterForm(Form):
    """The filter form of the release schedule. Every field is optional."""

    release = SelectField("Release", choices=[("", "Any release"), *_RELEASE_CHOICES], default="")
    interface = SelectField(
        "Interface", choices=[("", "Any interface"), *_INTERFACE_CHOICES], default=""
    )
    state = SelectField("State", choices=[("", "Any state"), *_STATE_CHOICES], default="")
    #: Filter for changes that affect the current user's tokens and applications. The filter
    #: requires a sign-in.
    used_by = SelectField(
        "Used by", choices=[("", "Anyone"), ("me", "Your tokens and applications")], default=""
    )

    def __init__(self) -> None:
        """Read the values from the query without CSRF protection."""
        super().__init__(formdata=request.args, meta={"csrf": False})

    def build_filter(self) -> ChangeFilter:
        """Return the entered filter for scheduled changes."""
        return ChangeFilter(
            release=parse_release(self.release.data) if self.release.data else None,
            interface=Interface(self.interface.data) if self.interface.data else None,
            state=ReleaseChangeState(self.state.data) if self.state.data else None,
        )
