"""What all forms share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask_wtf import FlaskForm
from wtforms import HiddenField, PasswordField
from wtforms.validators import ValidationError

from domain.errors import InvalidError


class Form(FlaskForm):
    """A form that knows its first error and takes the domain's objections."""

    def validate(self, extra_validators: Any = None) -> bool:
        """Check every field; no text may hold what no column can (a password is only hashed)."""
        is_valid = bool(super().validate(extra_validators))
        for field in self:
            if isinstance(field, PasswordField) or not isinstance(field.data, str):
                continue
            if "\x00" in field.data:
                self.object_to(field.name, "This has a character (NUL) that no text can have.")
                is_valid = False
        return is_valid

    @property
    def first_error(self) -> str | None:
        """Name of the first field with an error: the page gives it the focus."""
        return next((field.name for field in self if field.errors), None)

    @property
    def needs_summary(self) -> bool:
        """Whether what is wrong is said on top as well: a form of one field says it there alone."""
        shown = [field.name for field in self if not isinstance(field, HiddenField)]
        return bool(self.errors) and not (len(shown) == 1 and set(self.errors) == set(shown))

    def object_to(self, field_name: str, sentence: str) -> None:
        """Show what the domain has against a field, or against the whole form if it has none."""
        if field_name in self:
            field = self[field_name]
            field.errors = [*field.errors, sentence]
        else:
            self.form_errors.append(sentence)


@contextmanager
def objections_beside_the_field() -> Iterator[None]:
    """Let the sentence of a broken rule of the domain be shown where it was broken."""
    try:
        yield
    except (ValueError, InvalidError) as error:
        raise ValidationError(str(error)) from error


def without_edges(value: Any) -> Any:
    """Return a text without the spaces that people paste around it."""
    return value.strip() if isinstance(value, str) else value
