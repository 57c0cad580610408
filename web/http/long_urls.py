"""Error page for requests whose URL is too long for the web server.

The server rejects such a request before it reaches the application, so API clients receive JSON.
For browsers, the server requests this page with only the path of the URL.
"""

from functools import partial
from http import HTTPStatus
from urllib.parse import unquote

from flask import Flask, Response, g

from web.http.endpoints import ErrorFormat, get_error_format
from web.http.error_formats import render_error_page
from web.http.public_urls import get_base_path
from web.services import get_settings

#: Name of the page function in the application's extensions.
LONG_REQUESTS_EXTENSION = "gatebell_long_requests"


def register_long_url_page(app: Flask) -> None:
    """Make the error page for long requests available to the web server."""
    app.extensions[LONG_REQUESTS_EXTENSION] = partial(_build_long_url_page, app)


def _build_long_url_page(app: Flask, path: str) -> Response | None:
    """Return the page for a path without its query, or None if the path belongs to an API."""
    with app.app_context():
        base_url = get_settings().base_url
    below = path.removeprefix(get_base_path(base_url)) or "/"
    with app.test_request_context(unquote(below), base_url=base_url):
        g.asks_no_database = True
        if get_error_format() is not ErrorFormat.PAGE:
            return None
        page = app.process_response(render_error_page(HTTPStatus.REQUEST_URI_TOO_LONG, None, {}))
        # The cookies of the request are unknown, so none of them may be replaced.
        page.headers.remove("Set-Cookie")
        return page
