"""Issues and revokes pairs of access and refresh tokens."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from domain.database.rows import update_rows
from domain.keyring import CredentialType
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.found_rows import FoundClient, FoundGrant
from domain.oauth.context import OAuthContext
from domain.oauth.openid.id_tokens import Audience, Authentication, make_id_token
from domain.oauth.openid.userinfo import claims_of
from domain.oauth.personal_tokens.made_by_applications import end_made_tokens
from domain.randomness import random_credential
from models import AccessToken, Application, Authorization


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The grant that a new pair is issued for."""

    user_id: int
    #: None for a password that was sent without a client.
    application_id: int | None
    #: Its client_id.
    application_uid: str | None
    authorization_id: int | None
    scopes: str
    #: Of the key that the pair is bound to (RFC 9449), if it is.
    key_thumbprint: str | None
    #: A refresh token comes with the access token.
    is_renewable: bool = True
    #: How the user signed in; without it there is no ID token, whatever the scopes.
    authentication: Authentication | None = None
    #: As the pair had it that this one replaces.
    keeps_admin_mode: bool = False
    #: An access token was exchanged for it.
    is_exchanged: bool = False
    #: Of the access token; None for that of the policy.
    lifetime: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class TokenPair:
    """An access token and its refresh token, in the clear."""

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)


def grant_in(
    found: FoundGrant,
    client: Client,
    *,
    key_thumbprint: str | None,
    is_renewable: bool = True,
    nonce: str | None = None,
) -> Grant:
    """Return the grant of an authorization."""
    return Grant(
        user_id=found.grant_user_id,
        application_id=client.application.id,
        application_uid=client.application.uid,
        authorization_id=found.grant_id,
        scopes=found.grant_scopes,
        key_thumbprint=key_thumbprint,
        is_renewable=is_renewable,
        authentication=Authentication(
            auth_time=found.grant_auth_time,
            nonce=nonce,
            methods=found.grant_methods,
            sid=found.grant_sid,
        ),
    )


def new_pair(*, is_renewable: bool = True) -> TokenPair:
    """Return a new random pair."""
    refresh = random_credential(CredentialType.REFRESH_TOKEN) if is_renewable else None
    return TokenPair(access=random_credential(CredentialType.ACCESS_TOKEN), refresh=refresh)


def pair_values(pair: TokenPair, grant: Grant, context: OAuthContext) -> dict[str, object]:
    """Return the columns of a new pair."""
    digests, source = context.keyring.digests, context.source
    return {
        "authorization_id": grant.authorization_id,
        "application_id": grant.application_id,
        "user_id": grant.user_id,
        "digest": digests(pair.access)[0],
        "refresh_digest": digests(pair.refresh)[0] if pair.refresh else None,
        "scopes": grant.scopes,
        "created_at": context.now,
        "expires_at": context.now + (grant.lifetime or context.policy.access_token_lifetime),
        "address": source.address,
        "user_agent": (source.user_agent or "")[:255] or None,
        "key_thumbprint": grant.key_thumbprint,
        "keeps_admin_mode": grant.keeps_admin_mode,
        "is_exchanged": grant.is_exchanged,
    }


def issue_pair(grant: Grant, context: OAuthContext) -> dict[str, object]:
    """Store a new pair in the transaction of the session, and return the token response."""
    pair = new_pair(is_renewable=grant.is_renewable)
    context.session.execute(insert(AccessToken).values(pair_values(pair, grant, context)))
    return token_response(pair, grant, context)


def token_response(pair: TokenPair, grant: Grant, context: OAuthContext) -> dict[str, object]:
    """Return the token response for a stored pair (RFC 6749 section 5.1).

    `expires_in` is in seconds, `created_at` in seconds since the epoch.
    """
    lifetime = grant.lifetime or context.policy.access_token_lifetime
    return {
        "access_token": pair.access,
        "token_type": token_type_of(grant.key_thumbprint),
        "expires_in": int(lifetime.total_seconds()),
        **({"refresh_token": pair.refresh} if pair.refresh else {}),
        "scope": grant.scopes,
        "created_at": int(context.now.timestamp()),
        **(id_token_of(grant, pair.access, context) if "openid" in grant.scopes else {}),
    }


def token_type_of(key_thumbprint: str | None) -> str:
    """Return the token_type: DPoP for a token that is bound to a key (RFC 9449 section 5)."""
    return "bearer" if key_thumbprint is None else "DPoP"


def id_token_of(grant: Grant, access_token: str, context: OAuthContext) -> dict[str, str]:
    """Return the `id_token` of a response, if openid was granted (OpenID Connect Core 3.1.3.3)."""
    if "openid" not in grant.scopes.split() or grant.authentication is None:
        return {}
    if grant.application_uid is None:
        return {}  # a token of the password grant without an application has no audience
    audience = Audience(user_id=grant.user_id, application_uid=grant.application_uid)
    scopes, issuer = grant.scopes.split(), context.policy.issuer
    id_token = make_id_token(
        audience,
        grant.authentication,
        access_token,
        user_claims=claims_of(
            grant.user_id,
            scopes,
            issuer=issuer,
            connection=context.connection,
            today=context.now.date(),
        ),
        context=context,
    )
    return {"id_token": id_token}


def revoke_pair(token_id: int, *, session: Session, now: datetime) -> bool:
    """Revoke one pair; return whether it was live (of parallel callers one gets True)."""
    revoked = session.execute(
        update_rows(AccessToken)
        .where(AccessToken.id == token_id, AccessToken.revoked_at.is_(None))
        .values(revoked_at=now)
        .returning(AccessToken.id)
    )
    return revoked.first() is not None


def may_refresh(application: Application | FoundClient, scopes: str) -> bool:
    """Return whether a device or a password gets a refresh token; a code always does."""
    return bool(application.refresh_for_devices) or "offline_access" in scopes.split()


def begin_family(application_id: int, user_id: int, scopes: str, context: OAuthContext) -> int:
    """Store an authorization without a code, so that all its pairs can be revoked together."""
    authorization = Authorization(
        application_id=application_id,
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


def revoke_family(authorization_id: int, *, session: Session, now: datetime) -> bool:
    """Revoke a grant and all tokens that descend from it (RFC 9700 section 4.14.2).

    Returns whether a pair was live (of parallel callers one gets True).
    """
    session.execute(
        update_rows(Authorization)
        .where(Authorization.id == authorization_id, Authorization.revoked_at.is_(None))
        .values(revoked_at=now)
    )
    revoked = session.execute(
        update_rows(AccessToken)
        .where(AccessToken.authorization_id == authorization_id, AccessToken.revoked_at.is_(None))
        .values(revoked_at=now)
        .returning(AccessToken.id)
    ).all()
    ended = select(Authorization.id).where(Authorization.id == authorization_id)
    end_made_tokens(ended, session=session, now=now)
    return bool(revoked)
