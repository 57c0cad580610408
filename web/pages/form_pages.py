"""Renders pages with a form and its validation errors."""

from typing import Any

from flask import render_template
from flask_wtf import FlaskForm


def render_form_page(template: str, form: FlaskForm, **context: Any) -> tuple[str, int]:
    """Return a page with a form, with status 422 if the form has errors."""
    return render_template(template, form=form, **context), 422 if form.errors else 200
