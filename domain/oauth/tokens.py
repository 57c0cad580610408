"""Issues and kills pairs of access and refresh tokens."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from domain.keyring import Kind
from domain.oauth.context import OAuthContext
from domain.oauth.id_tokens import Audience, Authentication, make_id_token
from domain.randomness import random_credential
from models import AccessToken, Application, Authorization


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What a new pair is issued for."""

    user_id: int
    #: None for a password that was sent without a client.
    application_id: int | None
    authorization_id: int | None
    scopes: str
    #: A refresh token comes with the access token.
    is_renewable: bool = True
    #: How the user signed in; without it there is no ID token, whatever the scopes.
    authentication: Authentication | None = None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An access token and its refresh token, in the clear."""

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)


def issue_pair(grant: Grant, context: OAuthContext) -> dict[str, Any]:
    """Store a new pair and return the token response of RFC 6749 section 5.1.

    `expires_in` is in seconds, `created_at` in seconds since the epoch.
    """
    refresh = random_credential(Kind.REFRESH_TOKEN) if grant.is_renewable else None
    return store_pair(
        Pair(access=random_credential(Kind.ACCESS_TOKEN), refresh=refresh), grant, context
    )


def store_pair(pair: Pair, grant: Grant, context: OAuthContext) -> dict[str, Any]:
    """Store a pair that has been made and return the token response."""
    lifetime, digest = context.policy.access_token_lifetime, context.keyring.digest
    context.session.execute(
        insert(AccessToken).values(
            authorization_id=grant.authorization_id,
            application_id=grant.application_id,
            user_id=grant.user_id,
            digest=digest(pair.access),
            refresh_digest=digest(pair.refresh) if pair.refresh else None,
            scopes=grant.scopes,
            created_at=context.now,
            expires_at=context.now + lifetime,
            address=context.origin.address,
            user_agent=(context.origin.user_agent or "")[:255] or None,
            key_thumbprint=context.key_thumbprint,
        )
    )
    return {
        "access_token": pair.access,
        "token_type": token_type_of(context.key_thumbprint),
        "expires_in": int(lifetime.total_seconds()),
        **({"refresh_token": pair.refresh} if pair.refresh else {}),
        "scope": grant.scopes,
        "created_at": int(context.now.timestamp()),
        **id_token_of(grant, pair.access, context),
    }


def token_type_of(key_thumbprint: str | None) -> str:
    """Return how a token is shown: with a proof if it is bound to a key (RFC 9449 section 5)."""
    return "bearer" if key_thumbprint is None else "DPoP"


def id_token_of(grant: Grant, access_token: str, context: OAuthContext) -> dict[str, str]:
    """Return the `id_token` of an answer, if openid was granted (OpenID Connect Core 3.1.3.3)."""
    if "openid" not in grant.scopes.split() or grant.authentication is None:
        return {}
    if grant.application_id is None:
        return {}  # there is nobody whom it would be for
    application = context.session.get_one(Application, grant.application_id)
    audience = Audience(user_id=grant.user_id, application_uid=application.uid)
    return {
        "id_token": make_id_token(audience, grant.authentication, access_token, context=context)
    }


def note_use(application: Application, *, now: datetime) -> None:
    """Remember that the application was at work; to the minute, to spare writes."""
    last = application.last_used_at
    if last is None or (now - last).total_seconds() >= 60:  # noqa: PLR2004 - a minute
        application.last_used_at = now


def revoke_pair(token_id: int, *, session: Session, now: datetime) -> bool:
    """Kill one pair; tell whether it was alive (of parallel callers one is told so)."""
    return _kill(token_id, session, revoked_at=now)


def may_refresh(application: Application, scopes: str) -> bool:
    """Tell whether a device or a password gets a refresh token as well; a code always does."""
    return application.refresh_for_devices or "offline_access" in scopes.split()


def begin_family(application: Application, user_id: int, scopes: str, context: OAuthContext) -> int:
    """Store a grant that had no code, so that all its pairs can be revoked together."""
    authorization = Authorization(
        application_id=application.id,
        user_id=user_id,
        scopes=scopes,
        auth_time=context.now,
        # There is no code to wait for: the row may go when its last pair has gone.
        code_expires_at=context.now,
        code_used_at=context.now,
        created_at=context.now,
    )
    context.session.add(authorization)
    context.session.flush()  # to learn the id that the pairs point to
    return authorization.id


def retire_pair(token_id: int, *, session: Session, now: datetime) -> bool:
    """Kill one pair because a new one takes its place; tell whether it was alive."""
    return _kill(token_id, session, revoked_at=now, refreshed_at=now)


def _kill(token_id: int, session: Session, **moments: datetime) -> bool:
    killed = session.execute(
        update(AccessToken)
        .where(AccessToken.id == token_id, AccessToken.revoked_at.is_(None))
        .values(**moments)
        .returning(AccessToken.id)
        .execution_options(synchronize_session=False)
    )
    return killed.first() is not None


def hold_family(authorization_id: int | None, *, session: Session) -> bool:
    """Tell whether the grant lives on, and let nobody revoke it before this transaction ends.

    Else a pair that is being issued would escape a revocation of its family at the same time.
    """
    if authorization_id is None:
        return True
    alive = select(Authorization.id).where(
        Authorization.id == authorization_id, Authorization.revoked_at.is_(None)
    )
    return session.scalar(alive.with_for_update()) is not None


def revoke_family(authorization_id: int, *, session: Session, now: datetime) -> None:
    """Kill a grant and every pair that descends from it (RFC 9700 section 4.14.2)."""
    session.execute(
        update(Authorization)
        .where(Authorization.id == authorization_id, Authorization.revoked_at.is_(None))
        .values(revoked_at=now)
        .execution_options(synchronize_session=False)
    )
    session.execute(
        update(AccessToken)
        .where(AccessToken.authorization_id == authorization_id, AccessToken.revoked_at.is_(None))
        .values(revoked_at=now)
        .execution_options(synchronize_session=False)
    )
