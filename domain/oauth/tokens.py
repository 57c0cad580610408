"""Issues pairs of access and refresh tokens, redeems credentials for them, and revokes them.

Refresh replay: a used refresh token returns the same pair again for a short time. Nothing but
hashes is kept, so the pair cannot be looked up. It is derived instead, from the instance's key and
the refresh token that the client presents: again, if it presents it again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    FromClause,
    Insert,
    Update,
    bindparam,
    exists,
    false,
    insert,
    null,
    select,
    true,
    update,
)
from sqlalchemy.orm import Session

from domain.core.database.rows import update_rows
from domain.core.keyring import CredentialType
from domain.core.randomness import random_credential
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.credential_lookup import (
    CredentialLookup,
    LookupWithWrite,
    lookup_with_write,
    single_value,
)
from domain.oauth.clients.found_rows import FoundClient, FoundGrant
from domain.oauth.context import OAuthContext
from domain.oauth.openid.id_tokens import Audience, Authentication, make_id_token
from domain.oauth.openid.userinfo import claims_of
from domain.oauth.personal_tokens.made_by_applications import end_made_tokens
from models import AccessToken, Application, Authorization, DeviceAuthorization


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
    """Return the grant of an authorization; raise invalid_grant if none of its scopes is left."""
    return Grant(
        user_id=found.grant_user_id,
        application_id=client.application.id,
        application_uid=client.application.uid,
        authorization_id=found.grant_id,
        scopes=client.get_granted_scope(found.grant_scopes),
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
    lifetime = grant.lifetime or context.policy.access_token_lifetime
    return {
        **_values_of(pair, lifetime, context),
        "authorization_id": grant.authorization_id,
        "application_id": grant.application_id,
        "user_id": grant.user_id,
        "scopes": grant.scopes,
        "key_thumbprint": grant.key_thumbprint,
        "keeps_admin_mode": grant.keeps_admin_mode,
        "is_exchanged": grant.is_exchanged,
    }


def _values_of(pair: TokenPair, lifetime: timedelta, context: OAuthContext) -> dict[str, object]:
    """Return the columns of a new pair that do not depend on its grant."""
    digest, source = context.keyring.digest, context.source
    return {
        "digest": digest(pair.access),
        "refresh_digest": digest(pair.refresh) if pair.refresh else None,
        "created_at": context.now,
        "expires_at": context.now + lifetime,
        "address": source.address,
        "user_agent": (source.user_agent or "")[:255] or None,
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


_PAIRS = AccessToken.__table__.c
_COLUMNS = (
    "authorization_id",
    "application_id",
    "user_id",
    "digest",
    "refresh_digest",
    "scopes",
    "created_at",
    "expires_at",
    "address",
    "user_agent",
    "key_thumbprint",
    "keeps_admin_mode",
    "is_exchanged",
)
_NOW = bindparam("now", type_=AccessToken.created_at.type)
#: The columns of an ordinary pair.
_UNBOUND: Mapping[str, ColumnElement[Any]] = {
    "created_at": _NOW,
    "key_thumbprint": null(),
    "keeps_admin_mode": false(),
    "is_exchanged": false(),
}
_STORE = insert(AccessToken)


def _lock_family(grant_id: ColumnElement[int]) -> CTE:
    """Return a grant unless it is revoked.

    A revocation of the family at the same time goes first, or waits and finds the new pair.
    """
    return (
        select(Authorization.id)
        .where(Authorization.id == grant_id, Authorization.revoked_at.is_(None))
        .with_for_update(key_share=True)
        .cte("family")
    )


def _of_live_pair(token_id: ColumnElement[int], grant_id: ColumnElement[int]) -> Update:
    return (
        update_rows(AccessToken)
        .where(
            AccessToken.id == token_id,
            AccessToken.revoked_at.is_(None),
            exists(select(_lock_family(grant_id).c.id)),
        )
        .returning(AccessToken.id)
    )


def consume_pair(token_id: ColumnElement[int], grant_id: ColumnElement[int]) -> Update:
    """Return the UPDATE that replaces a pair; it returns a row if the pair was live."""
    return _of_live_pair(token_id, grant_id).values(revoked_at=_NOW, refreshed_at=_NOW)


def consume_code(grant_id: ColumnElement[int]) -> Update:
    """Return the UPDATE that uses a code; it returns a row if the code was unused."""
    return (
        update(Authorization)
        .where(
            Authorization.id == grant_id,
            Authorization.code_used_at.is_(None),
            Authorization.revoked_at.is_(None),
        )
        .values(code_used_at=_NOW)
        .returning(Authorization.id)
    )


_TOKEN, _GRANT = (bindparam(f"spent_{name}", type_=BigInteger) for name in ("token", "grant"))
_USE_SUBJECT = _of_live_pair(_TOKEN, _GRANT).values(last_used_at=_NOW)
_END_DEVICE = (
    update(DeviceAuthorization)
    .where(DeviceAuthorization.id == bindparam("spent_device"))
    .values(redeemed_at=_NOW)
)


def _store_from(rows: FromClause, **known: ColumnElement[Any]) -> Insert:
    """Return the INSERT of a pair for a row of a selection, some of whose columns are known."""
    values = (known.get(name, bindparam(name, type_=_PAIRS[name].type)) for name in _COLUMNS)
    return insert(AccessToken).from_select(_COLUMNS, select(*values).select_from(rows))


class Redemption:
    """The statements that redeem a type of credential; the first returns a row if it was valid."""

    def __init__(self, *statements: Update) -> None:
        #: Each with the names of its values.
        self.statements = [
            (statement, tuple(statement.compile().bind_names.values())) for statement in statements
        ]
        spent = statements[0].cte("spent")
        store = _store_from(spent)
        for number, statement in enumerate(statements[1:]):
            if_spent = statement.where(exists(select(spent.c.id)))
            store = store.add_cte(if_spent.cte(f"statement_{number}"))
        #: All of them, and the new pair.
        self.at_once = store.returning(AccessToken.id)


FOR_REFRESH_TOKEN = Redemption(consume_pair(_TOKEN, _GRANT))
FOR_CODE = Redemption(consume_code(_GRANT))
FOR_DEVICE_CODE = Redemption(consume_code(_GRANT), _END_DEVICE)


class RedeemingLookup:
    """A lookup of a credential that also redeems it for a new pair, on Postgres."""

    def __init__(
        self,
        lookup: CredentialLookup[Any],
        consume: Callable[[Callable[[str], Any]], Update],
        conditions: Callable[[Any], Sequence[ColumnElement[bool]]],
        **columns: str,
    ) -> None:
        """Take what is consumed, and the names of the columns that the new pair inherits."""

        def write(met: CTE) -> CTE:
            spent = consume(lambda name: single_value(met, name)).cte("spent")
            known = {name: met.c[column] for name, column in columns.items()}
            store = _store_from(met.join(spent, true()), **{**_UNBOUND, **known})
            return store.returning(AccessToken.id).cte("stored")

        self.statement = lookup_with_write(lookup.statement, conditions, write)

    def of(self, pair: TokenPair, context: OAuthContext, **values: object) -> LookupWithWrite:
        """Return the lookup that stores this pair."""
        own = _values_of(pair, context.policy.access_token_lifetime, context)
        return LookupWithWrite(self.statement, {**own, **values}, pair)


def use_subject_token(token_id: int, authorization_id: int, context: OAuthContext) -> bool:
    """Lock a token for its exchange, in the transaction of the session; return whether it is live.

    An exchange does not consume it, but counts as its use.
    """
    values = {"spent_token": token_id, "spent_grant": authorization_id, "now": context.now}
    return context.session.execute(_USE_SUBJECT, values).first() is not None


def end_device(device_id: int, context: OAuthContext) -> None:
    """Mark a device request as finished without issuing tokens."""
    context.connection.all(_END_DEVICE, {"spent_device": device_id, "now": context.now})


def redeem(
    redemption: Redemption, pair: TokenPair, grant: Grant, context: OAuthContext, **spent: int
) -> bool:
    """Store the pair of a grant for what is spent; return whether that was still valid.

    `spent_token` is the id of a refresh token's row, `spent_device` that of a device's.
    """
    connection, values = context.connection, pair_values(pair, grant, context)
    spending = {**spent, "spent_grant": grant.authorization_id, "now": context.now}

    def one_by_one() -> bool:
        (spend, names), *more = redemption.statements
        if not connection.all(spend, {name: spending[name] for name in names}):
            return False
        for statement, names in more:
            connection.all(statement, {name: spending[name] for name in names})
        connection.all(_STORE, values)
        return True

    if connection.dialect_name == "postgresql":
        return bool(connection.all(redemption.at_once, {**values, **spending}))
    return connection.transact(one_by_one)


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
        digests = context.keyring.digests(pair.access, CredentialType.ACCESS_TOKEN)
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
