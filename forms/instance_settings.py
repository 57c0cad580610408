"""The form for the settings in a section, generated from the metadata of the settings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from wtforms import BooleanField, Field, HiddenField, SelectField, StringField, TextAreaField
from wtforms.validators import InputRequired, Length, ValidationError

from forms.base import Form, strip_text
from forms.releases import ReleaseDatesField

#: Prefix of the hidden fields that contain the values at the time the page was opened.
_FORMER_VALUE_PREFIX = "was_"
_MAX_LENGTH, _MAX_MULTILINE_LENGTH = 1_000, 10_000


class _Setting(Protocol):
    """The attributes of a setting that the form uses.

    `SettingView` in `web/admin/settings.py` describes the attributes.
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
    def parse_text(self, text: str) -> Any: ...


class SettingsForm(Form):
    """A form for several settings. `build_settings_form` adds the fields."""

    #: Names of the settings, in the order of the page.
    names: tuple[str, ...] = ()

    def iterate_changes(self) -> Iterator[tuple[str, str]]:
        """Yield the edited settings with their new values as text.

        A field is treated as edited if it differs from its value at the time the page was opened.
        Therefore, concurrent changes to other settings are not reverted.
        """
        for name in self.names:
            text = _format_field(self[name])
            if text != _normalize_line_ends(self[_FORMER_VALUE_PREFIX + name].data or ""):
                yield name, text


def build_settings_form(settings: Sequence[_Setting]) -> SettingsForm:
    """Return a form with a field for each setting and its current value."""
    fields: dict[str, Any] = {"names": tuple(each.name for each in settings)}
    for each in settings:
        fields[each.name] = _build_field(each)
        fields[_FORMER_VALUE_PREFIX + each.name] = HiddenField(default=each.text)
    made = cast("type[SettingsForm]", type("SettingsForm", (SettingsForm,), fields))
    return made(data=_get_current_values(settings))


def _get_current_values(settings: Sequence[_Setting]) -> Mapping[str, Any]:
    return {each.name: each.text == "true" if each.is_yes_or_no else each.text for each in settings}


def _build_field(setting: _Setting) -> Any:
    if setting.is_yes_or_no:
        return BooleanField(setting.title)
    if setting.choices:
        choices = [(choice, choice) for choice in setting.choices]
        return SelectField(setting.title, choices=choices)
    if setting.has_release_dates:
        return ReleaseDatesField(setting.title, validators=[_ValueValidator(setting)])
    kind, longest = (
        (TextAreaField, _MAX_MULTILINE_LENGTH) if setting.is_long else (StringField, _MAX_LENGTH)
    )
    message = f"{setting.title} may have at most {longest} characters."
    limits = f"{setting.title} must be {setting.allowed}."
    needed = [] if setting.may_be_empty else [InputRequired(limits)]
    return kind(
        setting.title,
        filters=[strip_text],
        validators=[*needed, Length(max=longest, message=message), _ValueValidator(setting)],
    )


class _ValueValidator:
    """A validator that checks whether text is a valid value of the setting."""

    def __init__(self, setting: _Setting) -> None:
        self.setting = setting

    def __call__(self, _form: Form, field: Field) -> None:
        try:
            self.setting.parse_text(field.data or "")
        except ValueError as error:
            raise ValidationError(str(error)) from error


def _format_field(field: Field) -> str:
    """Return the value of a field as text, in the format in which settings are stored."""
    if isinstance(field, BooleanField):
        return "true" if field.data else "false"
    return _normalize_line_ends(field.data or "")


def _normalize_line_ends(text: str) -> str:
    """Remove the carriage returns that browsers add at the ends of lines."""
    return text.replace("\r\n", "\n")
