"""The same new pair for the same used refresh token, so that a lost answer signs nobody out.

Nothing but hashes is kept, so the pair cannot be looked up. It is derived instead, from the
instance's key and the refresh token that the client presents: again, if it presents it again.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select

from domain.keyring import Kind
from domain.oauth.context import OAuthContext
from domain.oauth.tokens.issuing import Grant, Pair, id_token_of, new_pair, token_type_of
from models import AccessToken


@dataclass(frozen=True, kw_only=True)
class Successor:
    """A pair that took the place of another, and its row."""

    pair: Pair
    token: AccessToken


def successor_of(refresh_token: str, context: OAuthContext) -> Pair:
    """Return the pair that follows; one that can be made again only where the instance wants it.

    Without a window there is no reason why two tokens should have to do with each other.
    """
    if not context.policy.refresh_replay:
        return new_pair()
    return _pairs_after(refresh_token, context)[0]


def find_successor(
    refresh_token: str, refreshed_at: datetime | None, context: OAuthContext
) -> Successor | None:
    """Return the pair that this token was exchanged for, if it may be sent once more.

    Its time has not run out, and nobody has refreshed or revoked the new pair: who has shown the
    new one has received it, and then whoever comes with the old one is a thief.
    """
    window = context.policy.refresh_replay
    if not window or refreshed_at is None or context.now - refreshed_at > window:
        return None
    for pair in _pairs_after(refresh_token, context):
        digests = context.keyring.credential_digests(pair.access, Kind.ACCESS_TOKEN)
        found = context.session.scalar(
            select(AccessToken).where(
                AccessToken.digest.in_(digests), AccessToken.revoked_at.is_(None)
            )
        )
        if found is not None:
            return Successor(pair=pair, token=found)
    return None


def send_again(successor: Successor, grant: Grant, context: OAuthContext) -> dict[str, Any]:
    """Return the token response once more; `expires_in` is what is left, in seconds.

    `scope` is that of the pair, which may be less than this request would have got.
    """
    token, pair = successor.token, successor.pair
    left = (token.expires_at - context.now).total_seconds() if token.expires_at else 0
    return {
        "access_token": pair.access,
        "token_type": token_type_of(token.key_thumbprint),
        "expires_in": max(0, int(left)),
        "refresh_token": pair.refresh,
        "scope": token.scopes,
        "created_at": int(token.created_at.timestamp()),
        **id_token_of(replace(grant, scopes=token.scopes), pair.access, context),
    }


def _pairs_after(refresh_token: str, context: OAuthContext) -> tuple[Pair, ...]:
    """Return the pair under each key, the newest first."""
    successors = context.keyring.successors
    accesses = successors(refresh_token, Kind.ACCESS_TOKEN)
    refreshes = successors(refresh_token, Kind.REFRESH_TOKEN)
    return tuple(
        Pair(access=access, refresh=refresh)
        for access, refresh in zip(accesses, refreshes, strict=True)
    )
