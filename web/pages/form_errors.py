"""Displays domain errors on the next page."""

from collections.abc import Iterator
from contextlib import contextmanager

from flask import flash


@contextmanager
def show_errors_on_next_page(*kinds: type[Exception]) -> Iterator[None]:
    """Show these errors on the next page, and skip the rest of the block."""
    try:
        yield
    except kinds as error:
        flash(str(error), "error")
