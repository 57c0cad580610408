"""The form for the settings of a section, generated from their metadata."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from wtforms import BooleanField, Field, HiddenField, SelectField, StringField
from wtforms.validators import InputRequired, Length, ValidationError

from forms.base import Form, without_edges

#: Prefix of the hidden fields with the values at the time the page was opened.
_WAS = "was_"
_LONGEST = 1_000


class SettingField(Protocol):
    """The interface of a setting for the form."""

    @property
    def name(self) -> str:
        """The name of the field."""

    @property
    def title(self) -> str:
        """The label of the field."""

    @property
    def text(self) -> str:
        """The value in force, as text."""

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""

    @property
    def unit(self) -> str | None:
        """The unit; None for other kinds than numbers."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices, if any."""

    @property
    def is_yes_or_no(self) -> bool:
        """Whether it is a boolean."""

    @property
    def may_be_empty(self) -> bool:
        """Whether an empty text is allowed."""

    def read(self, text: str) -> Any:
        """Parse a text; raise ValueError with a sentence if it is invalid."""


class SettingsForm(Form):
    """A form for some settings; `form_for` adds the fields."""

    #: Names of the settings, in the order of the page.
    names: tuple[str, ...] = ()

    def changes(self) -> Iterator[tuple[str, str]]:
        """Return the settings that were edited, with their new texts.

        Compared with the values at the time the page was opened: a concurrent change of a setting
        that was not edited here must not be reverted.
        """
        for name in self.names:
            text = _text_of(self[name])
            if text != self[_WAS + name].data:
                yield name, text


def form_for(settings: Sequence[SettingField]) -> SettingsForm:
    """Return a form with a field for each setting and its value in force."""
    fields: dict[str, Any] = {"names": tuple(each.name for each in settings)}
    for each in settings:
        fields[each.name] = _field(each)
        fields[_WAS + each.name] = HiddenField(default=each.text)
    made = cast("type[SettingsForm]", type("SettingsForm", (SettingsForm,), fields))
    return made(data=_values(settings))


def _values(settings: Sequence[SettingField]) -> Mapping[str, Any]:
    return {each.name: each.text == "true" if each.is_yes_or_no else each.text for each in settings}


def _field(setting: SettingField) -> Any:
    if setting.is_yes_or_no:
        return BooleanField(setting.title)
    if setting.choices:
        choices = [(choice, choice) for choice in setting.choices]
        return SelectField(setting.title, choices=choices)
    message = f"{setting.title} may have at most {_LONGEST} characters."
    needed = [] if setting.may_be_empty else [InputRequired(f"Enter {setting.allowed}.")]
    return StringField(
        setting.title,
        filters=[without_edges],
        validators=[*needed, Length(max=_LONGEST, message=message), _Readable(setting)],
    )


class _Readable:
    """Validates that a text is a valid value of the setting."""

    def __init__(self, setting: SettingField) -> None:
        self.setting = setting

    def __call__(self, _form: Form, field: Field) -> None:
        try:
            self.setting.read(field.data or "")
        except ValueError as error:
            raise ValidationError(str(error)) from error


def _text_of(field: Field) -> str:
    """Return the text of a field in the format of settings."""
    if isinstance(field, BooleanField):
        return "true" if field.data else "false"
    return field.data or ""
