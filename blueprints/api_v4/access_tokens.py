"""/api/v4/personal_access_tokens and {projects,groups}/:id/access_tokens: tokens for scripts."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Response

from domain.oauth.personal_tokens import actions
from domain.oauth.token_authentication.bearer import InvalidTokenError, TokenRejectionReason
from web.access.bearer_token import API_TOKEN_LOCATIONS, find_presented_token
from web.api.openapi.view_descriptions import declare_error_statuses
from web.api.operations import ResourceBlueprint
from web.http.errors import build_bearer_error_response
from web.http.unit_of_work import get_unit_of_work


def _revoke_token_family_on_reuse(view: Callable[..., Response]) -> Callable[..., Response]:
    """Revoke the successors of a rotated token when a request presents the rotated token."""

    @wraps(view)
    def revoke_on_reuse(**variables: Any) -> Response:
        try:
            return view(**variables)
        except InvalidTokenError as error:
            if error.refusal is not TokenRejectionReason.REVOKED:
                raise
            actions.revoke_reused_token_family(
                get_unit_of_work(), find_presented_token(*API_TOKEN_LOCATIONS) or ""
            )
            # The error is returned and not raised, so that the revocation is committed.
            return build_bearer_error_response(error)

    return revoke_on_reuse


_TOKEN_PATH = "/<int:token_id>"  # noqa: S105 - a part of a URL
_COLLECTION_PATH = "/personal_access_tokens"
_SELF_PATH, _ITEM_PATH = f"{_COLLECTION_PATH}/self", f"{_COLLECTION_PATH}{_TOKEN_PATH}"
personal_access_tokens = ResourceBlueprint("personal_access_tokens", __name__)
personal_access_tokens.bind_action("GET", _COLLECTION_PATH, actions.list_tokens)
personal_access_tokens.bind_action(
    "GET", _SELF_PATH, actions.show_presented_token, around=[declare_error_statuses(404)]
)
personal_access_tokens.bind_action("GET", _ITEM_PATH, actions.show_token)
personal_access_tokens.bind_action(
    "POST",
    f"{_SELF_PATH}/rotate",
    actions.rotate_presented_token,
    status=200,
    around=[_revoke_token_family_on_reuse, declare_error_statuses(404, 405)],
)
personal_access_tokens.bind_action(
    "POST",
    f"{_ITEM_PATH}/rotate",
    actions.rotate_token,
    status=200,
    around=[_revoke_token_family_on_reuse],
)
personal_access_tokens.bind_action(
    "DELETE", _SELF_PATH, actions.revoke_presented_token, around=[declare_error_statuses(404)]
)
personal_access_tokens.bind_action("DELETE", _ITEM_PATH, actions.revoke_token)
personal_access_tokens.bind_action(
    "POST", "/users/<int:user_id>/personal_access_tokens", actions.create_token
)

resource_tokens = ResourceBlueprint(
    "resource_tokens",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/access_tokens",
)
resource_tokens.bind_action("GET", "", actions.list_resource_tokens)
resource_tokens.bind_action("POST", "", actions.create_resource_token)
resource_tokens.bind_action("GET", _TOKEN_PATH, actions.show_resource_token)
resource_tokens.bind_action(
    "POST",
    "/self/rotate",
    actions.rotate_presented_resource_token,
    status=200,
    around=[_revoke_token_family_on_reuse, declare_error_statuses(405)],
)
resource_tokens.bind_action(
    "POST",
    f"{_TOKEN_PATH}/rotate",
    actions.rotate_resource_token,
    status=200,
    around=[_revoke_token_family_on_reuse],
)
resource_tokens.bind_action("DELETE", _TOKEN_PATH, actions.revoke_resource_token)
