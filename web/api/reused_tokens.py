"""Rotation of access tokens: reuse of a token that was rotated revokes its family."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Response

from domain.oauth.personal_tokens.actions import end_reused_family
from domain.oauth.presented_tokens.bearer import BearerRefusedError, Refusal
from web.access.bearer_token import API_LOCATIONS, presented_token
from web.http.errors import bearer_refusal
from web.http.work import work


def ends_family_of_reused_token(view: Callable[..., Response]) -> Callable[..., Response]:
    """Let a request with a token that was rotated already revoke the successors of that."""

    @wraps(view)
    def watched(**variables: Any) -> Response:
        try:
            return view(**variables)
        except BearerRefusedError as error:
            if error.refusal is not Refusal.REVOKED:
                raise
            end_reused_family(work(), presented_token(*API_LOCATIONS) or "")
            # Returned and not raised, so that the revocation is committed.
            return bearer_refusal(error)

    return watched
