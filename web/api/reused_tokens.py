"""Rotation of access tokens: reuse of a token that was rotated revokes its family."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Response

from domain.audit.events import Event, EventKind
from domain.oauth.personal_tokens.tokens import end_family
from domain.oauth.presented_tokens.bearer import BearerRefusedError, Refusal
from web.access.bearer_token import API_LOCATIONS, presented_token
from web.extensions import db
from web.http.audit_events import record_event
from web.http.errors import bearer_refusal
from web.services import now, services


def ends_family_of_reused_token(view: Callable[..., Response]) -> Callable[..., Response]:
    """Let a request with a token that was rotated already revoke the successors of that."""

    @wraps(view)
    def watched(**variables: Any) -> Response:
        try:
            return view(**variables)
        except BearerRefusedError as error:
            if error.refusal is not Refusal.REVOKED:
                raise
            _end_family()
            # Returned and not raised, so that the revocation is committed.
            return bearer_refusal(error)

    return watched


def _end_family() -> None:
    presented = presented_token(*API_LOCATIONS) or ""
    session, keyring = db.session(), services().keyring
    token = end_family(presented, session=session, keyring=keyring, now=now())
    if token is not None:
        details = {"reason": "a token that had been rotated was used to rotate again"}
        record_event(
            Event(
                kind=EventKind.TOKEN_REVOKED,
                user_id=token.user_id,
                subject=token.name,
                details=details,
            )
        )
