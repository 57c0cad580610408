"""The address that people and clients know: BASE_URL, whatever a request says of itself.

Host, scheme and the path below which the service is reached come from the setting alone. Proxies
may take that path away or leave it: requests are told apart by it, so that no top-level group can
be called like its first part (`web/http/routes.py`).
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flask import request

from web.services import settings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def path_of(base_url: str) -> str:
    """Return the path of a base URL without a slash at its end: `/gate`, or nothing."""
    return urlsplit(base_url).path.rstrip("/")


def public(path: str) -> str:
    """Return the whole address of a path that `url_for` has built."""
    parts = urlsplit(settings().base_url)
    return f"{parts.scheme}://{parts.netloc}{path}"


def below(path: str) -> str:
    """Return a path of ours, such as `/-/pictures/A-1.svg`, as browsers have to ask for it."""
    return f"{request.script_root}{path}"


def this_page() -> str:
    """Return the path and the query of this request, as the browser knows them."""
    return f"{request.script_root}{request.full_path}".rstrip("?")


class PublicAddress:
    """Tells the application below which address it is reached (PEP 3333's SCRIPT_NAME)."""

    def __init__(self, app: "WSGIApplication", base_url: str) -> None:
        """Stand before an application."""
        parts = urlsplit(base_url)
        self._app = app
        self._scheme, self._host, self._path = parts.scheme, parts.netloc, path_of(base_url)
        self._below = f"{self._path}/"

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Any:
        """Answer a request."""
        environ["wsgi.url_scheme"], environ["HTTP_HOST"] = self._scheme, self._host
        environ["SCRIPT_NAME"] = self._path
        if self._path:
            asked = environ["PATH_INFO"]
            if asked.startswith(self._below) or asked == self._path:  # the proxy left it
                environ["PATH_INFO"] = asked[len(self._path) :] or "/"
        return self._app(environ, start_response)
