"""The form for the settings of a section, generated from their metadata."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from wtforms import BooleanField, Field, HiddenField, SelectField, StringField, TextAreaField
from wtforms.validators import InputRequired, Length, ValidationError

from forms.base import Form, without_edges
from forms.releases import ReleaseDatesField

#: Prefix of the hidden fields with the values from when the page was opened.
_WAS = "was_"
_LONGEST, _LONGEST_OF_SEVERAL_LINES = 1_000, 10_000


class _Setting(Protocol):
    """The attributes of a setting that the form uses.

    `SettingView` in `web/admin/settings.py` has them and their descriptions.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def allowed(self) -> str: ...
    @property
    def choices(self) -> tuple[str, ...]: ...
    @property
    def is_yes_or_no(self) -> bool: ...
    @property
    def is_long(self) -> bool: ...
    @property
    def has_release_dates(self) -> bool: ...
    @property
    def may_be_empty(self) -> bool: ...
    def read(self, text: str) -> Any: ...


class SettingsForm(Form):
    """A form for several settings. `form_for` adds the fields."""

    #: Names of the settings, in the order of the page.
    names: tuple[str, ...] = ()

    def changes(self) -> Iterator[tuple[str, str]]:
        """Return the edited settings with their new texts.

        A field counts as edited if it differs from its value when the page was opened. Concurrent
        changes to other settings are therefore not reverted.
        """
        for name in self.names:
            text = _text_of(self[name])
            if text != _unix_lines(self[_WAS + name].data or ""):
                yield name, text


def form_for(settings: Sequence[_Setting]) -> SettingsForm:
    """Return a form with a field for each setting and its current value."""
    fields: dict[str, Any] = {"names": tuple(each.name for each in settings)}
    for each in settings:
        fields[each.name] = _field(each)
        fields[_WAS + each.name] = HiddenField(default=each.text)
    made = cast("type[SettingsForm]", type("SettingsForm", (SettingsForm,), fields))
    return made(data=_values(settings))


def _values(settings: Sequence[_Setting]) -> Mapping[str, Any]:
    return {each.name: each.text == "true" if each.is_yes_or_no else each.text for each in settings}


def _field(setting: _Setting) -> Any:
    if setting.is_yes_or_no:
        return BooleanField(setting.title)
    if setting.choices:
        choices = [(choice, choice) for choice in setting.choices]
        return SelectField(setting.title, choices=choices)
    if setting.has_release_dates:
        return ReleaseDatesField(setting.title, validators=[_Readable(setting)])
    kind, longest = (
        (TextAreaField, _LONGEST_OF_SEVERAL_LINES) if setting.is_long else (StringField, _LONGEST)
    )
    message = f"{setting.title} may have at most {longest} characters."
    needed = [] if setting.may_be_empty else [InputRequired(f"Enter {setting.allowed}.")]
    return kind(
        setting.title,
        filters=[without_edges],
        validators=[*needed, Length(max=longest, message=message), _Readable(setting)],
    )


class _Readable:
    """A validator that checks whether a text is a valid value of the setting."""

    def __init__(self, setting: _Setting) -> None:
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
    return _unix_lines(field.data or "")


def _unix_lines(text: str) -> str:
    """Return a text without the carriage returns that browsers add to line ends."""
    return text.replace("\r\n", "\n")
