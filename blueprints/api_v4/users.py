"""GET /api/v4/user: who a token speaks for."""

from flask import Blueprint, Response

from domain.accounts.profiles import get_profile
from domain.oauth.bearer import Bearer
from web.access import bearer as with_bearer
from web.fast_json import json_response
from web.services import services, settings

users = Blueprint("users", __name__)


@users.get("/user")
@with_bearer("api", "read_api", "read", "read_user")
def current(bearer: Bearer) -> Response:
    """Return the user of the token."""
    profile = get_profile(bearer.user_id, hot=services().hot)
    return json_response(profile.as_json(settings().base_url))
