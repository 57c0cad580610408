"""The scopes and the lifetime of an access token: GET /oauth/token/info."""

from datetime import datetime

from domain.oauth.presented_tokens.bearer import Bearer


def token_info(bearer: Bearer, *, now: datetime) -> dict[str, object]:
    """Return the token info object; `expires_in` is the remaining lifetime in seconds.

    `scopes` and `expires_in_seconds` are the older names, kept for older clients.
    """
    left = bearer.seconds_left(now)
    return {
        "resource_owner_id": bearer.profile.id,
        "scope": list(bearer.scopes),
        "expires_in": left,
        "application": {"uid": bearer.application_uid},
        "created_at": int(bearer.created_at.timestamp()),
        "scopes": list(bearer.scopes),
        "expires_in_seconds": left,
    }
