"""The page for a request whose URL is longer than the web server reads.

The server rejects such a request before the application sees it, so that clients of the API get
JSON. People get a page: the server asks for it with the path alone.
"""

from functools import partial
from http import HTTPStatus
from urllib.parse import unquote

from flask import Flask, Response, g

from web.http.endpoints import ErrorFormat, error_format
from web.http.error_formats import as_page
from web.http.public_urls import path_of
from web.services import settings

#: The name of the function among the extensions of the application.
EXTENSION = "gatebell_long_requests"


def answer_long_requests(app: Flask) -> None:
    """Let the web server find the page."""
    app.extensions[EXTENSION] = partial(_find_page, app)


def _find_page(app: Flask, path: str) -> Response | None:
    """Return the page for a path without its query, or None if the path is for programs."""
    with app.app_context():
        base_url = settings().base_url
    below = path.removeprefix(path_of(base_url)) or "/"
    with app.test_request_context(unquote(below), base_url=base_url):
        g.asks_no_database = True
        if error_format() is not ErrorFormat.PAGE:
            return None
        page = app.process_response(as_page(HTTPStatus.REQUEST_URI_TOO_LONG, None, {}))
        # The cookies of the request are not known: none of them may be replaced.
        page.headers.remove("Set-Cookie")
        return page
