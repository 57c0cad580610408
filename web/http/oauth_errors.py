"""Additional fields of OAuth errors: a link to the explanation and the request's id.

`error_uri` is defined in RFC 6749 section 5.2; `request_id` identifies the request in our log.
"""

from collections.abc import Mapping
from typing import Any

from flask import g, request

from web.services import settings

#: Paths with errors in the format of RFC 6749.
ADDRESSES = (
    "/oauth/token",
    "/oauth/par",
    "/oauth/register",
    "/oauth/authorize_device",
    "/oauth/revoke",
    "/oauth/introspect",
    "/oauth/userinfo",
)
#: The page that explains the codes.
HELP_PATH = "/help/errors"


def explained(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error with the link to its explanation and the id of this request."""
    address = f"{settings().base_url}{HELP_PATH}#{body['error']}"
    return {**body, "error_uri": address, "request_id": g.get("request_id", "")}


def advice(status: int) -> str | None:
    """Return advice for a wrong use of one of the endpoints."""
    bare = request.path.rstrip("/")
    if status == 404 and bare != request.path and bare in ADDRESSES:  # noqa: PLR2004
        return f"There is nothing at this address. It has no slash at its end: {_address(bare)}"
    if status == 405 and bare in ADDRESSES:  # noqa: PLR2004
        return f"Send a POST to {_address(bare)} with the parameters in the body."
    return None


def _address(path: str) -> str:
    return f"{settings().base_url}{path}"
