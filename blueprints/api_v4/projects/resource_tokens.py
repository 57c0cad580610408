"""/api/v4/{projects,groups}/:id/access_tokens: access tokens of one project or group."""

from domain.oauth.personal_tokens import actions
from web.api.description.described import refuses_with
from web.api.operations import Resources
from web.api.reused_tokens import ends_family_of_reused_token

_ONE = "/<int:token_id>"

resource_tokens = Resources(
    "resource_tokens",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/access_tokens",
)
resource_tokens.bind("GET", "", actions.list_resource_tokens)
resource_tokens.bind("POST", "", actions.create_resource_token)
resource_tokens.bind("GET", _ONE, actions.show_resource_token)
resource_tokens.bind(
    "POST",
    "/self/rotate",
    actions.rotate_presented_resource_token,
    status=200,
    around=[ends_family_of_reused_token, refuses_with(405)],
)
resource_tokens.bind(
    "POST",
    f"{_ONE}/rotate",
    actions.rotate_resource_token,
    status=200,
    around=[ends_family_of_reused_token],
)
resource_tokens.bind("DELETE", _ONE, actions.revoke_resource_token)
