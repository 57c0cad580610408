"""Refresh replay: a used refresh token returns the same pair again for a short time.

Nothing but hashes is kept, so the pair cannot be looked up. It is derived instead, from the
instance's key and the refresh token that the client presents: again, if it presents it again.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import select

from domain.keyring import CredentialType
from domain.oauth.context import OAuthContext
from domain.oauth.tokens.issuing import Grant, TokenPair, id_token_of, new_pair, token_type_of
from models import AccessToken


@dataclass(frozen=True, kw_only=True)
class RefreshReplay:
    """The pair that a refresh token was redeemed for, and its row."""

    pair: TokenPair
    token: AccessToken


def replayable_pair(refresh_token: str, context: OAuthContext) -> TokenPair:
    """Return the new pair for a refresh token: derived from it if responses may be replayed.

    Without a replay window the pair is random.
    """
    if not context.policy.refresh_replay:
        return new_pair()
    return _pairs_after(refresh_token, context)[0]


def find_replay(
    refresh_token: str, refreshed_at: datetime | None, context: OAuthContext
) -> RefreshReplay | None:
    """Return the pair that this token was redeemed for, if the response may be sent again.

    That is within the replay window, and while the new pair is neither refreshed nor revoked: a
    client that presents the new token has received it, so the old one now comes from a thief.
    """
    window = context.policy.refresh_replay
    if not window or refreshed_at is None or context.now - refreshed_at > window:
        return None
    for pair in _pairs_after(refresh_token, context):
        digests = context.keyring.credential_digests(pair.access, CredentialType.ACCESS_TOKEN)
        found = context.session.scalar(
            select(AccessToken).where(
                AccessToken.digest.in_(digests), AccessToken.revoked_at.is_(None)
            )
        )
        if found is not None:
            return RefreshReplay(pair=pair, token=found)
    return None


def replayed_response(
    replay: RefreshReplay, grant: Grant, context: OAuthContext
) -> dict[str, object]:
    """Return the token response again; `expires_in` is the remaining lifetime in seconds.

    `scope` is that of the pair, which may be less than this request would have got.
    """
    token, pair = replay.token, replay.pair
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


def _pairs_after(refresh_token: str, context: OAuthContext) -> tuple[TokenPair, ...]:
    """Return the pair under each key, the newest first."""
    derived = context.keyring.derived_credentials
    accesses = derived(refresh_token, CredentialType.ACCESS_TOKEN)
    refreshes = derived(refresh_token, CredentialType.REFRESH_TOKEN)
    return tuple(
        TokenPair(access=access, refresh=refresh)
        for access, refresh in zip(accesses, refreshes, strict=True)
    )
