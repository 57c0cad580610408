"""What errors of the OAuth endpoints say beside the code: where it is explained, and which request.

`error_uri` is RFC 6749's own (section 5.2); `request_id` is what our log calls the request.
"""

from collections.abc import Mapping
from typing import Any

from flask import g, request

from web.services import settings

#: Addresses whose errors have the shape of RFC 6749.
ADDRESSES = (
    "/oauth/token",
    "/oauth/par",
    "/oauth/register",
    "/oauth/authorize_device",
    "/oauth/revoke",
    "/oauth/introspect",
    "/oauth/userinfo",
)
#: Where the codes are explained.
HELP_PATH = "/help/errors"


def explained(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error with where it is explained and the id of this request."""
    address = f"{settings().base_url}{HELP_PATH}#{body['error']}"
    return {**body, "error_uri": address, "request_id": g.get("request_id", "")}


def advice(status: int) -> str | None:
    """Return what somebody should know who asked one of the addresses in a wrong way."""
    bare = request.path.rstrip("/")
    if status == 404 and bare != request.path and bare in ADDRESSES:  # noqa: PLR2004
        return f"There is nothing at this address. It has no slash at its end: {_address(bare)}"
    if status == 405 and bare in ADDRESSES:  # noqa: PLR2004
        return f"Send a POST to {_address(bare)} with the parameters in the body."
    return None


def _address(path: str) -> str:
    return f"{settings().base_url}{path}"
