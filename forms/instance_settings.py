"""The form that changes settings of one section, made from what is known of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from wtforms import BooleanField, Field, HiddenField, SelectField, StringField
from wtforms.validators import InputRequired, Length, ValidationError

from forms.base import Form, without_edges

#: Before a field's name: what the value was when the page was opened.
_WAS = "was_"
_LONGEST = 1_000


class Changeable(Protocol):
    """What the form has to know of a setting."""

    @property
    def name(self) -> str:
        """The field's name."""

    @property
    def title(self) -> str:
        """The field's label."""

    @property
    def text(self) -> str:
        """The value in force, as it is written."""

    @property
    def allowed(self) -> str:
        """What it may be, in words."""

    @property
    def unit(self) -> str | None:
        """What it counts; None for what is no number."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What there is to choose from, if it is a choice."""

    @property
    def is_yes_or_no(self) -> bool:
        """Whether it is on or off."""

    @property
    def may_be_empty(self) -> bool:
        """Whether leaving it empty means something."""

    def read(self, text: str) -> Any:
        """Return the value that a text means, or raise ValueError with a sentence."""


class SettingsForm(Form):
    """Some settings; `form_for` adds the fields."""

    #: Without `was_`, in the order of the page.
    names: tuple[str, ...] = ()

    def changes(self) -> Iterator[tuple[str, str]]:
        """Return the settings that this person changed, and to what.

        Not what merely differs by now: somebody else may have changed it since the page was
        opened, and whoever did not touch it should not change it back.
        """
        for name in self.names:
            text = _text_of(self[name])
            if text != self[_WAS + name].data:
                yield name, text


def form_for(settings: Sequence[Changeable]) -> SettingsForm:
    """Return a form with a field for each setting, filled in with what is in force."""
    fields: dict[str, Any] = {"names": tuple(each.name for each in settings)}
    for each in settings:
        fields[each.name] = _field(each)
        fields[_WAS + each.name] = HiddenField(default=each.text)
    made = cast("type[SettingsForm]", type("SettingsForm", (SettingsForm,), fields))
    return made(data=_values(settings))


def _values(settings: Sequence[Changeable]) -> Mapping[str, Any]:
    return {each.name: each.text == "true" if each.is_yes_or_no else each.text for each in settings}


def _field(setting: Changeable) -> Any:
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
    """Refuses a text that the setting cannot be."""

    def __init__(self, setting: Changeable) -> None:
        self.setting = setting

    def __call__(self, _form: Form, field: Field) -> None:
        try:
            self.setting.read(field.data or "")
        except ValueError as error:
            raise ValidationError(str(error)) from error


def _text_of(field: Field) -> str:
    """Return what a field says, written as a setting is."""
    if isinstance(field, BooleanField):
        return "true" if field.data else "false"
    return field.data or ""
