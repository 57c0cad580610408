"""Base classes and fields for all forms."""

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
    StringField,
    TextAreaField,
    URLField,
)
from wtforms.validators import DataRequired, Length, ValidationError

from domain.core.durations import format_duration, parse_duration
from domain.core.errors import InvalidError, InvalidParametersError
from domain.core.types.validation import validate_body

Result = TypeVar("Result")
SomeBody = TypeVar("SomeBody", bound=BaseModel)


class Form(FlaskForm):
    """A form that can show errors from the domain."""

    def validate(self, extra_validators: Any = None) -> bool:
        """Validate every field, and reject NUL characters except in passwords."""
        is_valid = bool(super().validate(extra_validators))
        for field in self:
            if isinstance(field, PasswordField) or not isinstance(field.data, str):
                continue
            if "\x00" in field.data:
                self.add_error(field.name, "This contains a NUL character, which is not allowed.")
                is_valid = False
        return is_valid

    @property
    def first_error(self) -> str | None:
        """Name of the first field with an error. The field receives the focus."""
        return next((field.name for field in self if field.errors), None)

    @property
    def needs_error_summary(self) -> bool:
        """True if the page shows a summary of errors. A form with one field needs no summary."""
        shown = [field.name for field in self if not isinstance(field, HiddenField)]
        return bool(self.errors) and not (len(shown) == 1 and set(self.errors) == set(shown))

    #: Names of form fields, by the domain's name for the value, if the names differ.
    fields_of: ClassVar[Mapping[str, str]] = {}

    def add_error(self, field_name: str, sentence: str) -> None:
        """Add an error from the domain to a field, or to the form if it has no such field."""
        field_name = self.fields_of.get(field_name, field_name)
        if field_name in self:
            field = self[field_name]
            field.errors = [*field.errors, sentence]
        else:
            self.form_errors.append(sentence)

    def run_if_valid(self, run_action: Callable[[], Result]) -> Result | None:
        """Run an action if the form was submitted and is valid, and return the action's result.

        Return None otherwise, or if the action fails. Errors are shown at their fields.
        """
        return self.run(run_action) if self.validate_on_submit() else None

    def run(self, run_action: Callable[[], Result]) -> Result | None:
        """Run an action, and return its result.

        If the action raises InvalidError, show the errors at their fields and return None.
        """
        try:
            return run_action()
        except InvalidError as error:
            self.show_domain_error(error)
            return None

    def show_domain_error(self, error: InvalidError) -> None:
        """Show an error from the domain at the fields that it names."""
        if isinstance(error, InvalidParametersError):
            for field, reason in error.problems:
                label = self[field].label.text if field in self else field
                self.add_error(field, f"{label} {reason.removesuffix('.')}.")
        else:
            for sentence in error.sentences:
                self.add_error(error.field, sentence)

    def build_entered_body(self, body: type[SomeBody], **more: Any) -> SomeBody:
        """Return the entered values as a request body of the given type.

        Form fields are matched to body fields with the same name; `more` overrides them. An empty
        field is treated as omitted, unless it is a text field. Raise InvalidParametersError for
        invalid values.
        """
        entered = {field.name: field.data for field in self if field.name in body.model_fields}
        return validate_body(body, {**entered, **more})


@contextmanager
def convert_domain_errors() -> Iterator[None]:
    """Convert domain errors to errors of the field that is being validated."""
    try:
        yield
    except (ValueError, InvalidError) as error:
        raise ValidationError(str(error)) from error


def check_duration(_form: object, field: Any) -> None:
    """Check that a field contains a duration.

    Raise ValidationError for any other text.
    """
    with convert_domain_errors():
        parse_duration(field.data or "")


def strip_text(value: Any) -> Any:
    """Remove leading and trailing spaces from a string, and return other values unchanged."""
    return value.strip() if isinstance(value, str) else value


def split_lines(text: str | None) -> list[str]:
    """Return the non-empty lines of a text."""
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


class TextLineField(StringField):
    """A field for a line of text without leading and trailing spaces."""

    def __init__(self, label: str, *validators: Any, **kwargs: Any) -> None:
        """Accept validators as separate arguments."""
        super().__init__(label, [*validators], filters=[strip_text], **kwargs)


class TextLinesField(TextLineField, TextAreaField):
    """A field for several lines of text without leading and trailing spaces."""


class WordListField(TextLineField):
    """A field for comma-separated words."""

    def process_data(self, value: Any) -> None:
        """Set the value of the field to a list of words or to a string."""
        super().process_data(", ".join(value) if isinstance(value, list | tuple) else value)


class DurationField(TextLineField):
    """A field for a duration, such as 1h30m."""

    def process_data(self, value: Any) -> None:
        """Set the value of the field to a duration or to a string."""
        super().process_data(format_duration(value) if isinstance(value, timedelta) else value)


class EmailLineField(TextLineField, EmailField):
    """A field for an email address, without leading and trailing spaces."""


class UrlLineField(TextLineField, URLField):
    """A field for a URL, without leading and trailing spaces."""


class LocalTimeField(DateTimeLocalField):
    """A field for a local time, which browsers send with or without seconds."""

    def __init__(self, label: str, *validators: Any, **kwargs: Any) -> None:
        """Accept validators as separate arguments."""
        formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
        super().__init__(label, [*validators], format=formats, **kwargs)


class TimeZoneField(TextLineField):
    """A field for the name of a time zone, with suggestions from the `field` macro.

    The domain validates the name.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Accept names with spaces instead of underscores."""
        super().__init__(
            "Time zone",
            DataRequired("Choose a time zone, such as Europe/Berlin or UTC."),
            limit_length(64, "A time zone"),
            **kwargs,
        )
        self.filters = (*self.filters, lambda name: name.replace(" ", "_") if name else name)


def limit_length(max_length: int, what: str) -> Length:
    """Return a validator for a maximum length.

    The error message starts with `what`.
    """
    return Length(max=max_length, message=f"{what} may have at most {max_length:,} characters.")
