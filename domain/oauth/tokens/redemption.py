"""Redeems a credential: consumes it and stores the pair issued for it, both or neither.

On Postgres that is one statement, and of parallel ones with the same credential one finds it
unspent; on SQLite, which has no statement for both, it is one transaction.
"""

from sqlalchemy import Update, bindparam, exists, insert, select, update

from domain.database.rows import update_rows
from domain.oauth.context import OAuthContext
from domain.oauth.tokens.issuing import Grant, TokenPair, pair_values
from models import AccessToken, Authorization, DeviceAuthorization

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
_NOW = bindparam("spent_at", type_=AccessToken.created_at.type)
_STORE = insert(AccessToken)

#: A revocation of the family at the same time goes first, or waits and finds the new pair.
_FAMILY = (
    select(Authorization.id)
    .where(
        Authorization.id == bindparam("spent_grant"),
        Authorization.revoked_at.is_(None),
    )
    .with_for_update(key_share=True)
    .cte("family")
)
_CONSUME_PAIR = (
    update(AccessToken)
    .where(
        AccessToken.id == bindparam("spent_token"),
        AccessToken.revoked_at.is_(None),
        exists(select(_FAMILY.c.id)),
    )
    .values(revoked_at=_NOW, refreshed_at=_NOW)
    .returning(AccessToken.id)
)
_USE_SUBJECT = (
    update_rows(AccessToken)
    .where(
        AccessToken.id == bindparam("spent_token"),
        AccessToken.revoked_at.is_(None),
        exists(select(_FAMILY.c.id)),
    )
    .values(last_used_at=_NOW)
    .returning(AccessToken.id)
)
_CONSUME_CODE = (
    update(Authorization)
    .where(
        Authorization.id == bindparam("spent_grant"),
        Authorization.code_used_at.is_(None),
        Authorization.revoked_at.is_(None),
    )
    .values(code_used_at=_NOW)
    .returning(Authorization.id)
)
_END_DEVICE = (
    update(DeviceAuthorization)
    .where(DeviceAuthorization.id == bindparam("spent_device"))
    .values(redeemed_at=_NOW)
)


class Redemption:
    """The statements that redeem a type of credential; the first returns a row if it was valid."""

    def __init__(self, *statements: Update) -> None:
        #: Each with the names of its values.
        self.statements = [
            (statement, tuple(statement.compile().bind_names.values())) for statement in statements
        ]
        spent = statements[0].cte("spent")
        row = select(*(bindparam(name, type_=_PAIRS[name].type) for name in _COLUMNS))
        store = insert(AccessToken).from_select(_COLUMNS, row.select_from(spent))
        for number, statement in enumerate(statements[1:]):
            if_spent = statement.where(exists(select(spent.c.id)))
            store = store.add_cte(if_spent.cte(f"statement_{number}"))
        #: All of them, and the new pair.
        self.at_once = store.returning(AccessToken.id)


FOR_REFRESH_TOKEN = Redemption(_CONSUME_PAIR)
FOR_CODE = Redemption(_CONSUME_CODE)
FOR_DEVICE_CODE = Redemption(_CONSUME_CODE, _END_DEVICE)


def use_subject_token(token_id: int, authorization_id: int, context: OAuthContext) -> bool:
    """Lock a token for its exchange, in the transaction of the session; return whether it is live.

    An exchange does not consume it, but counts as its use.
    """
    values = {"spent_token": token_id, "spent_grant": authorization_id, "spent_at": context.now}
    return context.session.execute(_USE_SUBJECT, values).first() is not None


def end_device(device_id: int, context: OAuthContext) -> None:
    """Mark a device request as finished without issuing tokens."""
    context.connection.all(_END_DEVICE, {"spent_device": device_id, "spent_at": context.now})


def redeem(
    redemption: Redemption, pair: TokenPair, grant: Grant, context: OAuthContext, **spent: int
) -> bool:
    """Store the pair of a grant for what is spent; return whether that was still valid.

    `spent_token` is the id of a refresh token's row, `spent_device` that of a device's.
    """
    connection, values = context.connection, pair_values(pair, grant, context)
    spending = {**spent, "spent_grant": grant.authorization_id, "spent_at": context.now}

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
