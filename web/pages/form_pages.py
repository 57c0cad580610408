"""Pages with a form, which show what is wrong with what was entered."""

from typing import Any

from flask import render_template
from flask_wtf import FlaskForm


def form_page(template: str, form: FlaskForm, **context: Any) -> tuple[str, int]:
    """Return a page with a form: its status is 422 if it shows mistakes."""
    return render_template(template, form=form, **context), 422 if form.errors else 200
