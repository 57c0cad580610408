"""Keeps encoded slashes in references of the API: `/api/v4/projects/acme%2Fshop` is one segment.

WSGI servers decode paths, so that the project `acme/members` could not be told from the members of
`acme`. What was sent is in RAW_URI, by gunicorn and by Werkzeug's test client.
"""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_API = "/api/v4/"
_ENCODED = re.compile(r"(/api/v4/(?:projects|groups)/)([^/?#]*%2[fF][^/?#]*)")
_SLASH = "%2F"


def decoded_reference(reference: str) -> str:
    """Return the path in a reference whose slashes were kept encoded."""
    return reference.replace(_SLASH, "/")


class EncodedReferenceMiddleware:
    """WSGI middleware that leaves the slashes of a reference in PATH_INFO encoded."""

    def __init__(self, app: "WSGIApplication") -> None:
        """Wrap an application."""
        self._app = app

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Any:
        """Handle a request."""
        if environ["PATH_INFO"].startswith(_API):
            environ["PATH_INFO"] = _with_encoded_slashes(
                environ["PATH_INFO"], environ.get("RAW_URI", "")
            )
        return self._app(environ, start_response)


def _with_encoded_slashes(path: str, sent: str) -> str:
    found = _ENCODED.search(sent.partition("?")[0])
    if found is None:
        return path
    before, reference = found[1], unquote_to_bytes(found[2]).decode("latin-1")
    if not path.startswith(before + reference):
        return path
    return before + reference.replace("/", _SLASH) + path[len(before + reference) :]
