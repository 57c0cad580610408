"""The base of all forms."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from flask_wtf import FlaskForm
from pydantic import BaseModel
from wtforms import (
    DateTimeLocalField,
    EmailField,
    HiddenField,
    PasswordField,
    SelectField,
    StringField,
    TextAreaField,
    URLField,
)
from wtforms.validators import Length, ValidationError

from domain.core.durations import duration_text, parse_duration
from domain.core.errors import InvalidError, InvalidParametersError
from domain.core.time_zones import zone_names
from domain.core.types.reading import read_body

Result = TypeVar("Result")
SomeBody = TypeVar("SomeBody", bound=BaseModel)


class Form(FlaskForm):
    """A form with its first error, and errors added from the domain."""

    def validate(self, extra_validators: Any = None) -> bool:
        """Check every field; except in passwords, NUL characters are refused."""
        is_valid = bool(super().validate(extra_validators))
        for field in self:
            if isinstance(field, PasswordField) or not isinstance(field.data, str):
                continue
            if "\x00" in field.data:
                self.object_to(field.name, "This contains a NUL character, which is not allowed.")
                is_valid = False
        return is_valid

    @property
    def first_error(self) -> str | None:
        """The name of the first field with an error, which gets the focus."""
        return next((field.name for field in self if field.errors), None)

    @property
    def needs_summary(self) -> bool:
        """Whether the page shows a summary of errors: not for a form with one field."""
        shown = [field.name for field in self if not isinstance(field, HiddenField)]
        return bool(self.errors) and not (len(shown) == 1 and set(self.errors) == set(shown))

    #: By what the domain calls a value: the field in which people enter it, if that differs.
    fields_of: ClassVar[Mapping[str, str]] = {}

    def object_to(self, field_name: str, sentence: str) -> None:
        """Add an error of the domain to a field, or to the form if it has no such field."""
        field_name = self.fields_of.get(field_name, field_name)
        if field_name in self:
            field = self[field_name]
            field.errors = [*field.errors, sentence]
        else:
            self.form_errors.append(sentence)

    def carry_out(self, act: Callable[[], Result]) -> Result | None:
        """Return what an action returns, or None with the mistakes beside their fields.

        None is as well what a page returns that is only looked at.
        """
        if not self.validate_on_submit():
            return None
        try:
            return act()
        except InvalidError as error:
            self.object(error)
            return None

    def object(self, error: InvalidError) -> None:
        """Show an error of the domain at the fields that it names."""
        if isinstance(error, InvalidParametersError):
            for field, reason in error.problems:
                label = self[field].label.text if field in self else field
                self.object_to(field, f"{label} {reason}.")
        else:
            for sentence in error.sentences:
                self.object_to(error.field, sentence)

    def read(self, body: type[SomeBody], **more: Any) -> SomeBody:
        """Return what was entered as a body of the domain, or raise InvalidParametersError.

        Fields of the form and of the body with the same name belong together; `more` comes on top.
        A field that was left empty counts as omitted, except in a text.
        """
        entered = {field.name: field.data for field in self if field.name in body.model_fields}
        return read_body(body, {**entered, **more})


@contextmanager
def objections_beside_the_field() -> Iterator[None]:
    """Show a domain error at the field that it names."""
    try:
        yield
    except (ValueError, InvalidError) as error:
        raise ValidationError(str(error)) from error


def is_duration(_form: object, field: Any) -> None:
    """Check that a field has a length of time."""
    with objections_beside_the_field():
        parse_duration(field.data or "")


def without_edges(value: Any) -> Any:
    """Return a text without leading and trailing spaces."""
    return value.strip() if isinstance(value, str) else value


def lines_of(text: str | None) -> list[str]:
    """Return the lines of a text that say something."""
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


class Line(StringField):
    """A field for a line of text, whose leading and trailing spaces do not count."""

    def __init__(self, label: str, *validators: Any, **kwargs: Any) -> None:
        """Take the validators one by one."""
        super().__init__(label, [*validators], filters=[without_edges], **kwargs)


class Lines(Line, TextAreaField):
    """The same for a text of several lines."""


class WordsLine(Line):
    """The same for words that commas separate."""

    def process_data(self, value: Any) -> None:
        """Take words, or a text."""
        super().process_data(", ".join(value) if isinstance(value, list | tuple) else value)


class DurationLine(Line):
    """The same for a length of time, such as 1h30m."""

    def process_data(self, value: Any) -> None:
        """Take a length, or a text."""
        super().process_data(duration_text(value) if isinstance(value, timedelta) else value)


class EmailLine(Line, EmailField):
    """The same for an e-mail address."""


class UrlLine(Line, URLField):
    """The same for a URL."""


class LocalTimeField(DateTimeLocalField):
    """A time of a wall clock, which browsers send with seconds or without."""

    def __init__(self, label: str, *validators: Any, **kwargs: Any) -> None:
        """Take the validators one by one."""
        formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
        super().__init__(label, [*validators], format=formats, **kwargs)


class TimeZoneField(SelectField):
    """A choice among all time zones, which the domain checks."""

    def __init__(self, **kwargs: Any) -> None:
        """Offer them by their names."""
        choices = [(name, name.replace("_", " ")) for name in zone_names()]
        super().__init__("Time zone", choices=choices, validate_choice=False, **kwargs)


def at_most(longest: int, what: str) -> Length:
    """Return the validator of a length, with a message that begins with what is too long."""
    return Length(max=longest, message=f"{what} may have at most {longest:,} characters.")
