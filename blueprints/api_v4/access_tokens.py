"""/api/v4/personal_access_tokens and {projects,groups}/:id/access_tokens: tokens for scripts."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Response

from domain.oauth.personal_tokens import actions
from domain.oauth.presented_tokens.bearer import BearerRefusedError, Refusal
from web.access.bearer_token import API_LOCATIONS, presented_token
from web.api.description.described import refuses_with
from web.api.operations import Resources
from web.http.errors import bearer_refusal
from web.http.work import work


def _ends_family_of_reused_token(view: Callable[..., Response]) -> Callable[..., Response]:
    """Revoke the successors of a rotated token when a request presents the rotated token."""

    @wraps(view)
    def watched(**variables: Any) -> Response:
        try:
            return view(**variables)
        except BearerRefusedError as error:
            if error.refusal is not Refusal.REVOKED:
                raise
            actions.end_reused_family(work(), presented_token(*API_LOCATIONS) or "")
            # The error is returned and not raised, so that the revocation is committed.
            return bearer_refusal(error)

    return watched


_TOKEN = "/<int:token_id>"  # noqa: S105 - a part of a URL
_ALL = "/personal_access_tokens"
_SELF, _ONE = f"{_ALL}/self", f"{_ALL}{_TOKEN}"
personal_access_tokens = Resources("personal_access_tokens", __name__)
personal_access_tokens.bind("GET", _ALL, actions.list_tokens)
personal_access_tokens.bind("GET", _SELF, actions.show_presented_token, around=[refuses_with(404)])
personal_access_tokens.bind("GET", _ONE, actions.show_token)
personal_access_tokens.bind(
    "POST",
    f"{_SELF}/rotate",
    actions.rotate_presented_token,
    status=200,
    around=[_ends_family_of_reused_token, refuses_with(404, 405)],
)
personal_access_tokens.bind(
    "POST",
    f"{_ONE}/rotate",
    actions.rotate_token,
    status=200,
    around=[_ends_family_of_reused_token],
)
personal_access_tokens.bind(
    "DELETE", _SELF, actions.revoke_presented_token, around=[refuses_with(404)]
)
personal_access_tokens.bind("DELETE", _ONE, actions.revoke_token)
personal_access_tokens.bind(
    "POST", "/users/<int:user_id>/personal_access_tokens", actions.create_token
)

resource_tokens = Resources(
    "resource_tokens",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/access_tokens",
)
resource_tokens.bind("GET", "", actions.list_resource_tokens)
resource_tokens.bind("POST", "", actions.create_resource_token)
resource_tokens.bind("GET", _TOKEN, actions.show_resource_token)
resource_tokens.bind(
    "POST",
    "/self/rotate",
    actions.rotate_presented_resource_token,
    status=200,
    around=[_ends_family_of_reused_token, refuses_with(405)],
)
resource_tokens.bind(
    "POST",
    f"{_TOKEN}/rotate",
    actions.rotate_resource_token,
    status=200,
    around=[_ends_family_of_reused_token],
)
resource_tokens.bind("DELETE", _TOKEN, actions.revoke_resource_token)
