"""GET /api/v4/user: who a token speaks for."""

from flask import Blueprint, Response

from domain.oauth.bearer import Bearer
from web.access import bearer as with_bearer
from web.fast_json import json_response
from web.services import settings

users = Blueprint("users", __name__)


@users.get("/user")
@with_bearer("api", "read_api", "read", "read_user")
def current(bearer: Bearer) -> Response:
    """Return the user of the token."""
    return json_response(bearer.profile.as_json(settings().base_url))
