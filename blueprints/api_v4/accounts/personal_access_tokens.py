"""/api/v4/personal_access_tokens: lists, creates, rotates and revokes personal access tokens."""

from domain.oauth.personal_tokens import actions
from web.api.description.described import refuses_with
from web.api.operations import Resources
from web.api.reused_tokens import ends_family_of_reused_token

_ALL = "/personal_access_tokens"
_SELF, _ONE = f"{_ALL}/self", f"{_ALL}/<int:token_id>"

personal_access_tokens = Resources("personal_access_tokens", __name__)
personal_access_tokens.bind("GET", _ALL, actions.list_tokens)
personal_access_tokens.bind("GET", _SELF, actions.show_presented_token, around=[refuses_with(404)])
personal_access_tokens.bind("GET", _ONE, actions.show_token)
personal_access_tokens.bind(
    "POST",
    f"{_SELF}/rotate",
    actions.rotate_presented_token,
    status=200,
    around=[ends_family_of_reused_token, refuses_with(404, 405)],
)
personal_access_tokens.bind(
    "POST",
    f"{_ONE}/rotate",
    actions.rotate_token,
    status=200,
    around=[ends_family_of_reused_token],
)
personal_access_tokens.bind(
    "DELETE", _SELF, actions.revoke_presented_token, around=[refuses_with(404)]
)
personal_access_tokens.bind("DELETE", _ONE, actions.revoke_token)
personal_access_tokens.bind(
    "POST", "/users/<int:user_id>/personal_access_tokens", actions.create_token
)
