"""The form of the release checker."""

from typing import Any

from werkzeug.datastructures import MultiDict
from wtforms import FileField, SelectField, StringField, TextAreaField

from domain.releases.checker.checker import NEWEST
from domain.releases.listing import releases_on_schedule
from domain.releases.version import Release, parse_release
from forms.base import Form

_RELEASES = [(str(each), str(each)) for each in releases_on_schedule()]


class ReleaseCheckForm(Form):
    """A text or a file, and a release.

    It has no token: it changes nothing, and nobody has to be signed in.
    """

    release = SelectField("Release", choices=_RELEASES, default=str(NEWEST))
    file = FileField("File")
    content = TextAreaField("Or paste the content")
    name = StringField("Name of what you pasted")

    def __init__(self, given: dict[str, Any] | None = None) -> None:
        """Take what was handed in."""
        texts = {name: value for name, value in (given or {}).items() if isinstance(value, str)}
        super().__init__(formdata=MultiDict(texts), meta={"csrf": False})

    def validate(self, extra_validators: Any = None) -> bool:
        """Check the release, and that there is something to check."""
        is_valid = super().validate(extra_validators)
        if not self.text.strip():
            self.object_to("file", "Choose a file or paste something.")
            return False
        return is_valid

    @property
    def text(self) -> str:
        """What was handed in."""
        return self.content.data or ""

    @property
    def shown_name(self) -> str:
        """Its name, or an empty text."""
        return self.name.data or ""

    @property
    def target(self) -> Release:
        """The release, of a valid form."""
        return parse_release(self.release.data)
