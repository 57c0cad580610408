"""Builds public URLs from BASE_URL, and never from the request.

Host, scheme and base path come only from BASE_URL. A proxy can either strip or keep the base path.
Both work because no top-level group can have the name of the base path's first segment
(`web/policies/reserved_names.py`).
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flask import current_app, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RoutingException

from web.http.url_converters import API_PREFIX, restore_encoded_slashes
from web.services import get_settings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def get_base_path(base_url: str) -> str:
    """Return the path of a base URL without a trailing slash: `/gate`, or an empty string."""
    return urlsplit(base_url).path.rstrip("/")


def build_public_url(path: str) -> str:
    """Return the absolute URL of a path from `url_for`."""
    parts = urlsplit(get_settings().base_url)
    return f"{parts.scheme}://{parts.netloc}{path}"


def add_base_path(path: str) -> str:
    """Return a path such as `/-/pictures/A-1.svg` with the base path in front."""
    return f"{request.script_root}{path}"


#: Part of each receiver's path. Links and redirects omit the query of such a URL, because it may
#: contain a key.
_RECEIVER_PATH = "/alerts/notify"


def get_current_path_and_query() -> str:
    """Return the path and the query of this request as the browser sent them.

    For receiver URLs, the query is omitted.
    """
    path = f"{request.script_root}{request.full_path}".rstrip("?")
    return path.partition("?")[0] if _RECEIVER_PATH in request.path.lower() else path


def find_page_url() -> str | None:
    """Return the URL of this page, or None if the page is only a response to a form."""
    rule = request.url_rule
    return get_current_path_and_query() if rule and "GET" in (rule.methods or ()) else None


def find_nearest_page_url() -> str:
    """Return the URL of this page, or the URL of the nearest page above it."""
    if here := find_page_url():
        return here
    adapter, path = current_app.create_url_adapter(request), request.path
    while adapter is not None and (path := path.rpartition("/")[0]):
        with suppress(HTTPException, RoutingException):
            endpoint, _ = adapter.match(path, "GET")
            if endpoint.rpartition(".")[0] == request.blueprint:
                return add_base_path(path)
    return add_base_path("/")


def find_parent_list_link() -> tuple[str, str] | None:
    """Return the URL and the name of the list that would contain a missing page, or None."""
    adapter, path = current_app.create_url_adapter(request), request.path
    while adapter is not None and (path := path.rpartition("/")[0]):
        with suppress(HTTPException, RoutingException):
            endpoint, _ = adapter.match(path, "GET")
            if endpoint == f"{request.blueprint}.index":
                return add_base_path(path), path.rpartition("/")[2].replace("_", " ")
    return None


class PathMiddleware:
    """WSGI middleware that sets SCRIPT_NAME (PEP 3333) to the base path and corrects PATH_INFO."""

    def __init__(self, app: "WSGIApplication", base_url: str) -> None:
        """Wrap an application, and parse the base URL."""
        parts = urlsplit(base_url)
        self._app = app
        self._scheme, self._host, self._path = parts.scheme, parts.netloc, get_base_path(base_url)
        self._below = f"{self._path}/"

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Any:
        """Set the scheme, host and paths of a request, and pass it to the application."""
        environ["wsgi.url_scheme"], environ["HTTP_HOST"] = self._scheme, self._host
        environ["SCRIPT_NAME"] = self._path
        path = environ["PATH_INFO"]
        if self._path and f"{path}/".startswith(self._below):  # the proxy has kept the base path
            path = path[len(self._path) :] or "/"
        if path.startswith(API_PREFIX):
            path = restore_encoded_slashes(path, environ.get("RAW_URI", ""))
        environ["PATH_INFO"] = path
        return self._app(environ, start_response)
