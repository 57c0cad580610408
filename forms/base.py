"""The base of all forms."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask_wtf import FlaskForm
from wtforms import HiddenField, PasswordField
from wtforms.validators import ValidationError

from domain.errors import InvalidError


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

    def object_to(self, field_name: str, sentence: str) -> None:
        """Add an error of the domain to a field, or to the form if it has no such field."""
        if field_name in self:
            field = self[field_name]
            field.errors = [*field.errors, sentence]
        else:
            self.form_errors.append(sentence)


@contextmanager
def objections_beside_the_field() -> Iterator[None]:
    """Show a domain error at the field that it names."""
    try:
        yield
    except (ValueError, InvalidError) as error:
        raise ValidationError(str(error)) from error


def without_edges(value: Any) -> Any:
    """Return a text without leading and trailing spaces."""
    return value.strip() if isinstance(value, str) else value
