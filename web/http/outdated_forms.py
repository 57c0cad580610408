"""Handling of forms whose session has ended or changed: users return to the same page."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from flask import flash, redirect, request
from flask.typing import ResponseReturnValue
from flask_wtf.csrf import CSRFError

from web.http.extensions import csrf

View = TypeVar("View", bound=Callable[..., Any])

OUTDATED_FORM_MESSAGE = (
    "The page was out of date, because you signed in or out in the meantime. Nothing was changed. "
    "Check the page and try again."
)


def redirect_to_form_page() -> ResponseReturnValue:
    """Redirect to the page of the form, and show a notice that the form is outdated."""
    flash(OUTDATED_FORM_MESSAGE, "warning")
    return redirect(request.full_path.rstrip("?"), code=303)


def redirect_outdated_form(
    find_question: Callable[[], ResponseReturnValue],
) -> Callable[[View], View]:
    """Return a decorator that checks a form's CSRF token in place of the global check.

    If the token belongs to another session, the view is not called. The response of `find_question`
    then takes the user back to the page with the form.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def checked_view(*args: Any, **kwargs: Any) -> Any:
            try:
                csrf.protect()
            except CSRFError:
                return find_question()
            return view(*args, **kwargs)

        csrf.exempt(checked_view)
        return cast("View", checked_view)

    return decorate
