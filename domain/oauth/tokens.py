"""Issues, redeems and revokes pairs of access and refresh tokens.

If a client repeats a refresh request within a short time (the replay window), the client receives
the same new pair. Only hashes are stored, so the pair cannot be looked up. Instead, the pair is
derived from the instance's secret key and the refresh token.
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

from domain.core.database.bulk_statements import build_bulk_update
from domain.core.keyring import CredentialType
from domain.core.randomness import generate_credential
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.credential_lookup import (
    CredentialLookup,
    LookupWithWrite,
    build_lookup_with_write,
    select_single_value,
)
from domain.oauth.clients.credential_rows import ClientRow, GrantRow
from domain.oauth.context import OAuthContext
from domain.oauth.openid.id_tokens import GrantAuthentication, IdTokenAudience, create_id_token
from domain.oauth.openid.userinfo import build_id_token_claims
from domain.oauth.personal_tokens.application_created_tokens import revoke_created_tokens
from models import AccessToken, Application, Authorization, DeviceAuthorization


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The user, the application and the scopes for which a token pair is issued."""

    user_id: int
    #: Row ID of the application; None for a password grant without a client.
    application_id: int | None
    #: client_id of the application; None for a password grant without a client.
    application_uid: str | None
    authorization_id: int | None
    scopes: str
    #: Thumbprint of the key that the pair is bound to (RFC 9449), or None.
    key_thumbprint: str | None
    #: True if a refresh token is issued with the access token.
    is_renewable: bool = True
    #: Details of the sign-in; no ID token is issued without these details.
    authentication: GrantAuthentication | None = None
    #: True if the pair replaces a pair older than the `admin_mode` scope, and keeps its rights.
    keeps_admin_mode: bool = False
    #: True if the pair is the result of a token exchange.
    is_exchanged: bool = False
    #: Lifetime of the access token, or None for the lifetime in the policy.
    lifetime: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class TokenPair:
    """An access token and its refresh token in plain text."""

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)


def build_grant(
    grant: GrantRow,
    client: Client,
    *,
    key_thumbprint: str | None,
    is_renewable: bool = True,
    nonce: str | None = None,
) -> Grant:
    """Build the grant for a token pair from a stored authorization.

    Raise invalid_grant if the client may no longer use any of the granted scopes.
    """
    return Grant(
        user_id=grant.grant_user_id,
        application_id=client.application.id,
        application_uid=client.application.uid,
        authorization_id=grant.grant_id,
        scopes=client.get_granted_scope(grant.grant_scopes),
        key_thumbprint=key_thumbprint,
        is_renewable=is_renewable,
        authentication=GrantAuthentication(
            auth_time=grant.grant_auth_time,
            nonce=nonce,
            methods=grant.grant_methods,
            sid=grant.grant_sid,
        ),
    )


def generate_token_pair(*, is_renewable: bool = True) -> TokenPair:
    """Return a new random token pair."""
    refresh = generate_credential(CredentialType.REFRESH_TOKEN) if is_renewable else None
    return TokenPair(access=generate_credential(CredentialType.ACCESS_TOKEN), refresh=refresh)


def build_pair_values(pair: TokenPair, grant: Grant, context: OAuthContext) -> dict[str, object]:
    """Return the column values of a new token pair."""
    lifetime = grant.lifetime or context.policy.access_token_lifetime
    return {
        **_build_common_values(pair, lifetime, context),
        "authorization_id": grant.authorization_id,
        "application_id": grant.application_id,
        "user_id": grant.user_id,
        "scopes": grant.scopes,
        "key_thumbprint": grant.key_thumbprint,
        "keeps_admin_mode": grant.keeps_admin_mode,
        "is_exchanged": grant.is_exchanged,
    }


def _build_common_values(
    pair: TokenPair, lifetime: timedelta, context: OAuthContext
) -> dict[str, object]:
    """Return the column values of a new token pair, except values that depend on its grant."""
    digest, source = context.keyring.compute_digest, context.source
    return {
        "digest": digest(pair.access),
        "refresh_digest": digest(pair.refresh) if pair.refresh else None,
        "created_at": context.now,
        "expires_at": context.now + lifetime,
        "address": source.address,
        "user_agent": (source.user_agent or "")[:255] or None,
    }


def issue_token_pair(grant: Grant, context: OAuthContext) -> dict[str, object]:
    """Store a new pair in the session's transaction, and return the token response."""
    pair = generate_token_pair(is_renewable=grant.is_renewable)
    context.session.execute(insert(AccessToken).values(build_pair_values(pair, grant, context)))
    return build_token_response(pair, grant, context)


def build_token_response(pair: TokenPair, grant: Grant, context: OAuthContext) -> dict[str, object]:
    """Return the token response for a stored pair (RFC 6749 section 5.1).

    `expires_in` is in seconds, and `created_at` is in seconds since the epoch.
    """
    lifetime = grant.lifetime or context.policy.access_token_lifetime
    return {
        "access_token": pair.access,
        "token_type": get_token_type(grant.key_thumbprint),
        "expires_in": int(lifetime.total_seconds()),
        **({"refresh_token": pair.refresh} if pair.refresh else {}),
        "scope": grant.scopes,
        "created_at": int(context.now.timestamp()),
        **(build_id_token_member(grant, pair.access, context) if "openid" in grant.scopes else {}),
    }


def get_token_type(key_thumbprint: str | None) -> str:
    """Return the token_type, which is DPoP for tokens bound to a key (RFC 9449 section 5)."""
    return "bearer" if key_thumbprint is None else "DPoP"


def build_id_token_member(grant: Grant, access_token: str, context: OAuthContext) -> dict[str, str]:
    """Return the `id_token` member if the `openid` scope was granted (OpenID Connect Core 3.1.3.3).

    Return an empty mapping if no ID token can be issued.
    """
    if "openid" not in grant.scopes.split() or grant.authentication is None:
        return {}
    if grant.application_uid is None:
        return {}  # A password grant without an application has no audience.
    audience = IdTokenAudience(user_id=grant.user_id, application_uid=grant.application_uid)
    scopes, issuer = grant.scopes.split(), context.policy.issuer
    id_token = create_id_token(
        audience,
        grant.authentication,
        access_token,
        user_claims=build_id_token_claims(
            grant.user_id,
            scopes,
            issuer=issuer,
            connection=context.connection,
            today=context.now.date(),
        ),
        context=context,
    )
    return {"id_token": id_token}


def revoke_token_pair(token_id: int, *, session: Session, now: datetime) -> bool:
    """Revoke a pair, and return whether it was still valid.

    If several callers run concurrently, only one of them receives True.
    """
    revoked = session.execute(
        build_bulk_update(AccessToken)
        .where(AccessToken.id == token_id, AccessToken.revoked_at.is_(None))
        .values(revoked_at=now)
        .returning(AccessToken.id)
    )
    return revoked.first() is not None


def can_refresh(application: Application | ClientRow, scopes: str) -> bool:
    """Return whether device and password grants include a refresh token.

    Authorization code grants always include a refresh token.
    """
    return bool(application.refresh_for_devices) or "offline_access" in scopes.split()


def create_authorization(
    application_id: int, user_id: int, scopes: str, context: OAuthContext
) -> int:
    """Store an authorization without a code, so that its token pairs can be revoked together."""
    authorization = Authorization(
        application_id=application_id,
        user_id=user_id,
        scopes=scopes,
        auth_time=context.now,
        # The authorization has no code, so its row can be deleted with its last pair.
        code_expires_at=context.now,
        code_used_at=context.now,
        created_at=context.now,
    )
    context.session.add(authorization)
    context.session.flush()  # This assigns the ID that the pairs refer to.
    return authorization.id


def revoke_authorization(authorization_id: int, *, session: Session, now: datetime) -> bool:
    """Revoke a grant and all tokens derived from it (RFC 9700 section 4.14.2).

    Return whether a pair was still valid. If several callers run concurrently, only one of them
    receives True.
    """
    session.execute(
        build_bulk_update(Authorization)
        .where(Authorization.id == authorization_id, Authorization.revoked_at.is_(None))
        .values(revoked_at=now)
    )
    revoked = session.execute(
        build_bulk_update(AccessToken)
        .where(AccessToken.authorization_id == authorization_id, AccessToken.revoked_at.is_(None))
        .values(revoked_at=now)
        .returning(AccessToken.id)
    ).all()
    ended = select(Authorization.id).where(Authorization.id == authorization_id)
    revoke_created_tokens(ended, session=session, now=now)
    return bool(revoked)


_PAIR_TABLE_COLUMNS = AccessToken.__table__.c
_PAIR_COLUMN_NAMES = (
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
#: Column values of a pair that is not bound to a key.
_UNBOUND_VALUES: Mapping[str, ColumnElement[Any]] = {
    "created_at": _NOW,
    "key_thumbprint": null(),
    "keeps_admin_mode": false(),
    "is_exchanged": false(),
}
_INSERT_PAIR = insert(AccessToken)


def _build_authorization_lock_cte(grant_id: ColumnElement[int]) -> CTE:
    """Return the CTE that locks a grant.

    The CTE is empty if the grant is revoked. A concurrent revocation of the grant either runs
    first, or waits and finds the new pair.
    """
    return (
        select(Authorization.id)
        .where(Authorization.id == grant_id, Authorization.revoked_at.is_(None))
        .with_for_update(key_share=True)
        .cte("family")
    )


def _build_live_pair_update(token_id: ColumnElement[int], grant_id: ColumnElement[int]) -> Update:
    return (
        build_bulk_update(AccessToken)
        .where(
            AccessToken.id == token_id,
            AccessToken.revoked_at.is_(None),
            exists(select(_build_authorization_lock_cte(grant_id).c.id)),
        )
        .returning(AccessToken.id)
    )


def build_consume_pair_update(token_id: ColumnElement[int], grant_id: ColumnElement[int]) -> Update:
    """Return the UPDATE that replaces a token pair.

    The statement returns a row if the pair was still valid.
    """
    return _build_live_pair_update(token_id, grant_id).values(revoked_at=_NOW, refreshed_at=_NOW)


def build_consume_code_update(grant_id: ColumnElement[int]) -> Update:
    """Return the UPDATE that redeems a code.

    The statement returns a row if the code was unused.
    """
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


_SPENT_TOKEN, _SPENT_GRANT = (
    bindparam(f"spent_{name}", type_=BigInteger) for name in ("token", "grant")
)
_USE_SUBJECT_TOKEN = _build_live_pair_update(_SPENT_TOKEN, _SPENT_GRANT).values(last_used_at=_NOW)
_FINISH_DEVICE_REQUEST = (
    update(DeviceAuthorization)
    .where(DeviceAuthorization.id == bindparam("spent_device"))
    .values(redeemed_at=_NOW)
)


def _build_pair_insert(rows: FromClause, **known: ColumnElement[Any]) -> Insert:
    """Return the INSERT that stores a pair for each selected row, with the given column values."""
    values = (
        known.get(name, bindparam(name, type_=_PAIR_TABLE_COLUMNS[name].type))
        for name in _PAIR_COLUMN_NAMES
    )
    return insert(AccessToken).from_select(_PAIR_COLUMN_NAMES, select(*values).select_from(rows))


class CredentialRedemption:
    """The statements that redeem one type of credential.

    The first statement returns a row if the credential was valid.
    """

    def __init__(self, *statements: Update) -> None:
        #: Statements, each with the names of its parameters.
        self.statements = [
            (statement, tuple(statement.compile().bind_names.values())) for statement in statements
        ]
        spent = statements[0].cte("spent")
        store = _build_pair_insert(spent)
        for number, statement in enumerate(statements[1:]):
            if_spent = statement.where(exists(select(spent.c.id)))
            store = store.add_cte(if_spent.cte(f"statement_{number}"))
        #: A single statement that runs all statements and stores the new pair (Postgres only).
        self.at_once = store.returning(AccessToken.id)


REFRESH_TOKEN_REDEMPTION = CredentialRedemption(
    build_consume_pair_update(_SPENT_TOKEN, _SPENT_GRANT)
)
CODE_REDEMPTION = CredentialRedemption(build_consume_code_update(_SPENT_GRANT))
DEVICE_CODE_REDEMPTION = CredentialRedemption(
    build_consume_code_update(_SPENT_GRANT), _FINISH_DEVICE_REQUEST
)


class RedemptionLookup:
    """A credential lookup that also redeems the credential for a new pair (Postgres only)."""

    def __init__(
        self,
        lookup: CredentialLookup[Any],
        consume: Callable[[Callable[[str], Any]], Update],
        conditions: Callable[[Any], Sequence[ColumnElement[bool]]],
        **columns: str,
    ) -> None:
        """Build the statement of the lookup.

        `consume` returns the UPDATE that consumes the credential. `columns` maps columns of the new
        pair to the lookup's columns from which they are copied.
        """

        def write(met: CTE) -> CTE:
            spent = consume(lambda name: select_single_value(met, name)).cte("spent")
            known = {name: met.c[column] for name, column in columns.items()}
            store = _build_pair_insert(met.join(spent, true()), **{**_UNBOUND_VALUES, **known})
            return store.returning(AccessToken.id).cte("stored")

        self.statement = build_lookup_with_write(lookup.statement, conditions, write)

    def build_pair_lookup(
        self, pair: TokenPair, context: OAuthContext, **values: object
    ) -> LookupWithWrite:
        """Return the lookup that stores the given pair."""
        own = _build_common_values(pair, context.policy.access_token_lifetime, context)
        return LookupWithWrite(self.statement, {**own, **values}, pair)


def lock_subject_token(token_id: int, authorization_id: int, context: OAuthContext) -> bool:
    """Lock the subject token of an exchange, and return whether it is active.

    The lock is held by the session's transaction. The exchange does not consume the token, but
    updates the time of its last use.
    """
    values = {"spent_token": token_id, "spent_grant": authorization_id, "now": context.now}
    return context.session.execute(_USE_SUBJECT_TOKEN, values).first() is not None


def finish_device_request(device_id: int, context: OAuthContext) -> None:
    """Mark a device request as finished without issuing tokens."""
    context.connection.execute_statement(
        _FINISH_DEVICE_REQUEST, {"spent_device": device_id, "now": context.now}
    )


def redeem_credential(
    redemption: CredentialRedemption,
    pair: TokenPair,
    grant: Grant,
    context: OAuthContext,
    **spent: int,
) -> bool:
    """Redeem a credential for a new pair, and return whether the credential was still valid.

    `spent_token` is the row ID of a refresh token, and `spent_device` is the row ID of a device
    request.
    """
    connection, values = context.connection, build_pair_values(pair, grant, context)
    spending = {**spent, "spent_grant": grant.authorization_id, "now": context.now}

    def run_statements_separately() -> bool:
        (spend, names), *more = redemption.statements
        if not connection.execute_statement(spend, {name: spending[name] for name in names}):
            return False
        for statement, names in more:
            connection.execute_statement(statement, {name: spending[name] for name in names})
        connection.execute_statement(_INSERT_PAIR, values)
        return True

    if connection.dialect_name == "postgresql":
        return bool(connection.execute_statement(redemption.at_once, {**values, **spending}))
    return connection.run_transaction(run_statements_separately)


@dataclass(frozen=True, kw_only=True)
class RefreshReplay:
    """The pair that was issued for a refresh token, and its database row."""

    pair: TokenPair
    token: AccessToken


def generate_refreshed_pair(refresh_token: str, context: OAuthContext) -> TokenPair:
    """Return the new pair for a refresh token.

    The pair is derived from the refresh token if a replay window is configured, and random
    otherwise.
    """
    if not context.policy.refresh_replay:
        return generate_token_pair()
    return _derive_pairs(refresh_token, context)[0]


def find_refresh_replay(
    refresh_token: str, refreshed_at: datetime | None, context: OAuthContext
) -> RefreshReplay | None:
    """Return the pair that was issued for this refresh token, if the response may be repeated.

    The response may be repeated within the replay window while the new pair is neither refreshed
    nor revoked. Once the new refresh token is used, the client must have received it. A later
    request with the old token may therefore come from an attacker.
    """
    window = context.policy.refresh_replay
    if not window or refreshed_at is None or context.now - refreshed_at > window:
        return None
    for pair in _derive_pairs(refresh_token, context):
        digests = context.keyring.compute_digests(pair.access, CredentialType.ACCESS_TOKEN)
        found = context.session.scalar(
            select(AccessToken).where(
                AccessToken.digest.in_(digests), AccessToken.revoked_at.is_(None)
            )
        )
        if found is not None:
            return RefreshReplay(pair=pair, token=found)
    return None


def build_replayed_response(
    replay: RefreshReplay, grant: Grant, context: OAuthContext
) -> dict[str, object]:
    """Return the token response again, with the remaining lifetime in seconds as `expires_in`.

    `scope` is the scope of the stored pair, which may be narrower than the scope of this request.
    """
    token, pair = replay.token, replay.pair
    left = (token.expires_at - context.now).total_seconds() if token.expires_at else 0
    return {
        "access_token": pair.access,
        "token_type": get_token_type(token.key_thumbprint),
        "expires_in": max(0, int(left)),
        "refresh_token": pair.refresh,
        "scope": token.scopes,
        "created_at": int(token.created_at.timestamp()),
        **build_id_token_member(replace(grant, scopes=token.scopes), pair.access, context),
    }


def _derive_pairs(refresh_token: str, context: OAuthContext) -> tuple[TokenPair, ...]:
    """Return the derived pair for each secret key, newest key first."""
    derived = context.keyring.derive_credentials
    accesses = derived(refresh_token, CredentialType.ACCESS_TOKEN)
    refreshes = derived(refresh_token, CredentialType.REFRESH_TOKEN)
    return tuple(
        TokenPair(access=access, refresh=refresh)
        for access, refresh in zip(accesses, refreshes, strict=True)
    )
