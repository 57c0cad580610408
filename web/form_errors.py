"""Shows the domain's objection at the field that caused it."""

from typing import TypeVar

from flask_wtf import FlaskForm
from wtforms.fields.core import Field

from domain.errors import InvalidError

SomeForm = TypeVar("SomeForm", bound=FlaskForm)


def show_on(form: SomeForm, error: InvalidError) -> SomeForm:
    """Add the sentence to the field that the error names, or to the form as a whole."""
    field: Field | None = form._fields.get(error.field)  # noqa: SLF001 - WTForms has no other way
    if field is None:
        form.form_errors.append(str(error))
    else:
        field.errors = [*field.errors, str(error)]
    return form
