"""GET /api/v4/version and /api/v4/metadata: the running release."""

from flask import Blueprint, Response

from domain.oauth.presented_tokens.bearer import Bearer
from web.access.marks import bearer as with_bearer
from web.http.json_responses import json_response
from web.services import settings

instance = Blueprint("instance", __name__)


@instance.get("/version")
@with_bearer("api", "read_api", "read", "read_user")
def version(bearer: Bearer) -> Response:
    """Return the running release."""
    del bearer
    return json_response({"version": f"{settings().release}.0", "revision": "gatebell"})


@instance.get("/metadata")
@with_bearer("api", "read_api", "read", "read_user")
def metadata(bearer: Bearer) -> Response:
    """Return the running release in the longer form."""
    del bearer
    body = {"version": f"{settings().release}.0", "revision": "gatebell", "enterprise": False}
    return json_response(body)
