"""A field with a day for each release of the schedule."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wtforms import Field
from wtforms.utils import unset_value
from wtforms.validators import ValidationError

from domain.releases.dates import ReleaseDatesError, parse_release_dates
from domain.releases.listing import releases_on_schedule

#: So much of a name that is no release is repeated in an error.
_LONGEST_ECHO = 40


class ReleaseDay(NamedTuple):
    """One of the inputs."""

    release: str
    name: str
    #: As it was entered: a browser without date fields sends any text.
    day: str


class ReleaseDatesField(Field):
    """Its data is the text of the setting, a line such as `17.0=2024-05-16` for each day."""

    def process(self, formdata: Any, data: Any = unset_value, extra_filters: Any = None) -> None:
        """Read the inputs if the form has them; their names end with the release."""
        super().process(None, data, extra_filters)
        #: Releases of the schedule, and those that have a date already.
        self._releases = _releases_of(self.data or "")
        self._entered = _entered(self.data or "")
        self._unknown = self._unknown_in(formdata or {})
        if formdata is not None and any(self._name_of(each) in formdata for each in self._releases):
            given = {each: formdata.get(self._name_of(each), "") for each in self._releases}
            self._entered = {each: day.strip() for each, day in given.items()}
            self.data = "\n".join(f"{each}={day}" for each, day in self._entered.items() if day)

    @property
    def days(self) -> Sequence[ReleaseDay]:
        """The inputs, by release."""
        return [
            ReleaseDay(each, self._name_of(each), self._entered.get(each, ""))
            for each in self._releases
        ]

    def pre_validate(self, form: Any) -> None:
        """Refuse a day of a release that has no input here."""
        del form
        for release in self._unknown:
            message = (
                f"{release} is not on the release schedule, so nothing here has its date. "
                "gatebell settings set release_dates takes dates of other releases."
            )
            raise ValidationError(message)

    def _unknown_in(self, formdata: Mapping[str, str]) -> Sequence[str]:
        """Return the releases that have a day, and no input here."""
        beginning = f"{self.name}-"
        given = (
            name.removeprefix(beginning)
            for name in formdata
            if name.startswith(beginning) and formdata[name].strip()
        )
        return [each[:_LONGEST_ECHO] for each in given if each not in self._releases]

    def _name_of(self, release: str) -> str:
        return f"{self.name}-{release}"


def _releases_of(text: str) -> Sequence[str]:
    try:
        known = parse_release_dates(text)
    except ReleaseDatesError:
        known = {}
    return [str(each) for each in sorted({*releases_on_schedule(), *known})]


def _entered(text: str) -> dict[str, str]:
    try:
        return {str(each): day.isoformat() for each, day in parse_release_dates(text).items()}
    except ReleaseDatesError:
        return {}
