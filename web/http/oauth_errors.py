"""Additional fields of OAuth errors: a link to the explanation and the request's id.

`error_uri` is defined in RFC 6749 section 5.2; `request_id` identifies the request in our log.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from flask import g, request

from web.http.routes import existing_methods
from web.services import settings

#: The page that explains the codes.
HELP_PATH = "/help/errors"


def explained(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error with the link to its explanation and the id of this request."""
    address = f"{settings().base_url}{HELP_PATH}#{body['error']}"
    return {**body, "error_uri": address, "request_id": g.get("request_id", "")}


def advice(status: int) -> str | None:
    """Return advice for a request that should have been a POST, or to a URL without a slash."""
    bare = request.path.rstrip("/")
    if status not in {404, 405} or not existing_methods(["POST"], path=bare):
        return None
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"Send a POST to {_address(bare)} with the parameters in the body."
    if bare != request.path:
        return f"There is nothing at this URL. Remove the slash at the end: {_address(bare)}"
    return None


def _address(path: str) -> str:
    return f"{settings().base_url}{path}"
