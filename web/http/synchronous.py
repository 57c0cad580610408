"""Flask for an application without coroutines, whose URLs of one kind may look like another."""

from collections.abc import Callable
from types import TracebackType
from typing import Any

from flask import Flask, Response
from werkzeug.datastructures import HeaderSet

from web.http.routes import existing_methods


class SynchronousFlask(Flask):
    """Flask without the check whether each view and hook is a coroutine.

    Its answer to OPTIONS names the methods that a path really has.
    """

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function unchanged."""
        return func

    def log_exception(
        self,
        exc_info: tuple[type, BaseException, TracebackType] | tuple[None, None, None],
        *args: object,
    ) -> None:
        """Log nothing: the handler of the error does (`web/http/errors.py`), and in which words."""

    def make_default_options_response(self) -> Response:
        """Return the answer to OPTIONS, without methods of rules whose converter refuses."""
        response = super().make_default_options_response()
        response.allow = HeaderSet(existing_methods(response.allow))
        return response
