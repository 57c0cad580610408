"""Issues and kills pairs of access and refresh tokens."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from domain.keyring import Kind
from domain.oauth.context import OAuthContext
from models import AccessToken, Application, Authorization


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What a new pair is issued for."""

    user_id: int
    application_id: int
    authorization_id: int | None
    scopes: str


def issue_pair(grant: Grant, context: OAuthContext) -> dict[str, Any]:
    """Store a new pair and return the token response of RFC 6749 section 5.1.

    `expires_in` is in seconds, `created_at` in seconds since the epoch.
    """
    access = context.keyring.issue(Kind.ACCESS_TOKEN)
    refresh = context.keyring.issue(Kind.REFRESH_TOKEN)
    lifetime = context.policy.access_token_lifetime
    context.session.execute(
        insert(AccessToken).values(
            authorization_id=grant.authorization_id,
            application_id=grant.application_id,
            user_id=grant.user_id,
            digest=access.digest,
            refresh_digest=refresh.digest,
            scopes=grant.scopes,
            created_at=context.now,
            expires_at=context.now + lifetime,
        )
    )
    return {
        "access_token": access.clear,
        "token_type": "bearer",
        "expires_in": int(lifetime.total_seconds()),
        "refresh_token": refresh.clear,
        "scope": grant.scopes,
        "created_at": int(context.now.timestamp()),
    }


def note_use(application: Application, *, now: datetime) -> None:
    """Remember that the application was at work; to the minute, to spare writes."""
    last = application.last_used_at
    if last is None or (now - last).total_seconds() >= 60:  # noqa: PLR2004 - a minute
        application.last_used_at = now


def revoke_pair(token_id: int, *, session: Session, now: datetime) -> bool:
    """Kill one pair; tell whether it was alive (of parallel callers one is told so)."""
    killed = session.execute(
        update(AccessToken)
        .where(AccessToken.id == token_id, AccessToken.revoked_at.is_(None))
        .values(revoked_at=now)
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
