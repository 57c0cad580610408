"""Looks up a client together with the presented credential in one statement.

The credential may have been revoked, used or issued to another client, so grants and endpoints must
check it. The columns are the fields of `credential_rows` in order: first the client, then the
credential.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import (
    CTE,
    ColumnElement,
    LargeBinary,
    Select,
    SQLColumnExpression,
    Text,
    and_,
    bindparam,
    func,
    literal_column,
    not_,
    or_,
    outerjoin,
    select,
    true,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import InstrumentedAttribute

from domain.access.scopes import ALWAYS_ALLOWED_SCOPES
from domain.accounts.users import ACTIVE
from domain.core.database.failures import is_connection_lost, is_read_only
from domain.core.database.statements import Row, build_columns
from domain.core.keyring import CredentialType
from domain.oauth.clients.credential_rows import ClientRow, DeviceRow, GrantRow, TokenPairRow
from domain.oauth.clients.secrets import build_live_secret_condition
from domain.oauth.context import OAuthContext
from models import (
    AccessToken,
    Application,
    ApplicationSecret,
    Authorization,
    DeviceAuthorization,
    User,
)

CredentialT = TypeVar("CredentialT")


@dataclass(frozen=True, kw_only=True)
class CredentialLookup(Generic[CredentialT]):
    """A lookup of the credential in a request parameter, together with its client.

    The statement has the parameters `client_id`, `now` and `presented_digest`. It returns a row for
    each valid secret of the client, always with the same credential. The credential columns are
    NULL if no credential matches.
    """

    statement: Select[Any]
    parameter: str
    #: Function that creates the credential from the columns after the client's columns.
    read: Callable[[Sequence[object]], CredentialT]
    #: Type of the credential; None for device codes, which have no prefix.
    credential_type: CredentialType | None = None


_CLIENT_FIELDS = build_columns(ClientRow._fields, {"secret_": ApplicationSecret, "": Application})
_CLIENT_FIELD_COUNT = len(_CLIENT_FIELDS)
_CLIENTS_WITH_SECRETS = outerjoin(
    Application,
    ApplicationSecret,
    and_(
        ApplicationSecret.application_id == Application.id,
        build_live_secret_condition(bindparam("now")),
    ),
)
_HAS_CLIENT_ID = Application.uid == bindparam("client_id")


#: Lookup of a client without a credential, with the parameters `client_id` and `now`.
CLIENT_QUERY = select(*_CLIENT_FIELDS).select_from(_CLIENTS_WITH_SECRETS).where(_HAS_CLIENT_ID)


class ClientWithCredential(NamedTuple, Generic[CredentialT]):
    """A client with the presented credential."""

    #: The client with each of its valid secrets; empty if the client is unknown.
    clients: list[ClientRow]
    #: The credential; None if there is no lookup or no match.
    credential: CredentialT | None
    #: Result of the write in the same statement, or None if nothing was written.
    written: Any = None


class LookupWithWrite(NamedTuple):
    """A lookup on Postgres that also writes, if the request is certain to succeed.

    The statement contains the conditions for the write. The endpoint checks the rows in any case. A
    request that does not meet the conditions can still succeed with a second statement.
    """

    #: Statement with the parameters of the lookup, `presented_secret` and `values`. The last column
    #: is NULL if nothing was written.
    statement: Select[Any]
    values: Mapping[str, object]
    #: The written credentials in plain text; None if the endpoint needs the last column.
    result: Any = None


def build_lookup_with_write(
    lookup: Select[Any],
    conditions: Callable[[Any], Sequence[ColumnElement[bool]]],
    write: Callable[[CTE], CTE],
) -> Select[Any]:
    """Return a lookup that also writes if the client is authenticated and all conditions hold.

    `write` receives the one row that meets the conditions, and returns one column. Nothing is
    written for clients that registered themselves or require DPoP proofs, since other conditions
    may apply to them.
    """
    found = lookup.cte("found")
    client, digest = found.c, bindparam("presented_secret", type_=LargeBinary)
    has_no_secret = digest.is_(None) & not_(client.confidential)
    is_proven = or_(client.secret_digest == digest, has_no_secret)
    is_ordinary = not_(client.require_dpop) & client.client_metadata.is_(None)
    met = select(found).where(is_proven, is_ordinary, *conditions(client))
    # A public client may have several secrets, and therefore several rows.
    written = write(met.limit(literal_column("1")).cte("met"))
    return select(*found.c, *written.c).select_from(found.outerjoin(written, true()))


def select_single_value(rows: CTE, column: str) -> Any:
    """Return a column of the only row as a scalar subquery.

    With a join, Postgres might search the table by a less selective condition instead of the key.
    """
    return select(rows.c[column]).scalar_subquery()


def build_registered_scopes_condition(
    scopes: ColumnElement[str], client: Any
) -> ColumnElement[bool]:
    """Return an SQL condition that is true if `Client.get_allowed_scope` keeps all scopes."""
    is_subset: ColumnElement[bool] = _split_words(scopes).contained_by(
        _split_words(client.scopes + _ALWAYS_ALLOWED_SUFFIX)
    )
    return is_subset


#: SQL constants that are written into the statement instead of being sent as parameters.
_SPACE = literal_column("' '", Text)
_ALWAYS_ALLOWED_SUFFIX = literal_column(f"' {' '.join(sorted(ALWAYS_ALLOWED_SCOPES))}'", Text)
ACTIVE_STATE = literal_column(f"'{ACTIVE}'", Text)


def _split_words(text: ColumnElement[str]) -> Any:
    return func.string_to_array(text, _SPACE, type_=postgresql.ARRAY(Text))


def find_client_with_credential(
    client_id: str,
    text: str | None,
    lookup: CredentialLookup[CredentialT] | None,
    context: OAuthContext,
    lookup_with_write: LookupWithWrite | None = None,
) -> ClientWithCredential[CredentialT]:
    """Look up a client and the presented credential in one statement.

    `text` is the presented credential, or None if the request contains no credential.
    """
    values: dict[str, object] = {"client_id": client_id, "now": context.now}
    found: CredentialT | None = None
    rows: Sequence[Row] = ()
    written = None
    digests: tuple[bytes, ...] = ()
    if lookup is not None and text is not None:
        digests = context.keyring.compute_digests(text, lookup.credential_type)
    if lookup is None or not digests:
        rows, written = _run_lookup(
            CLIENT_QUERY, None if lookup else lookup_with_write, values, context
        )
    else:
        for digest in digests:  # The most likely digest comes first.
            own = {**values, "presented_digest": digest}
            rows, written = _run_lookup(lookup.statement, lookup_with_write, own, context)
            credential = rows[0][_CLIENT_FIELD_COUNT:] if rows else (None,)
            if credential[0] is not None:
                found = lookup.read(credential)
            if found is not None or not rows:
                break
    clients = [ClientRow._make(row[:_CLIENT_FIELD_COUNT]) for row in rows]
    return ClientWithCredential(clients, found, written)


def _run_lookup(
    lookup: Select[Any],
    lookup_with_write: LookupWithWrite | None,
    values: Mapping[str, object],
    context: OAuthContext,
) -> tuple[Sequence[Row], Any]:
    """Return the rows of a lookup, and the result of its write."""
    if lookup_with_write is None:
        return context.connection.fetch_rows(lookup, values), None
    try:
        rows = context.connection.execute_statement(
            lookup_with_write.statement, {**values, **lookup_with_write.values}
        )
    except DBAPIError as error:
        if not is_connection_lost(error) and not is_read_only(error):
            raise
        # If the write took effect, the checks detect it, as they do when a client repeats a
        # request.
        return _run_lookup(lookup, None, values, context)
    written = rows[0][-1] if rows else None
    if written is not None and lookup_with_write.result is not None:
        written = lookup_with_write.result
    return [row[:-1] for row in rows], written


def _build_lookup(
    digest: InstrumentedAttribute[Any],
    columns: Sequence[SQLColumnExpression[Any]],
    *more: tuple[type[Any], ColumnElement[bool]],
) -> Select[Any]:
    """Return the statement that finds a client, the credential with a digest, and related rows.

    The joins are consecutive, since SQLite would materialize whole tables for nested joins.
    """
    is_it = digest == bindparam("presented_digest")
    found = (
        select(*_CLIENT_FIELDS, *columns)
        .select_from(_CLIENTS_WITH_SECRETS)
        .outerjoin(digest.class_, is_it)
    )
    for table, condition in more:
        found = found.outerjoin(table, condition)
    return found.where(_HAS_CLIENT_ID)


_TABLES_BY_PREFIX: Mapping[str, type[Any]] = {
    "token_": AccessToken,
    "grant_": Authorization,
    "device_": DeviceAuthorization,
    "user_": User,
    "": User,
}
_PAIR_JOINS = (
    (User, User.id == AccessToken.user_id),
    (Authorization, Authorization.id == AccessToken.authorization_id),
)
_PAIR_COLUMNS = build_columns(TokenPairRow._fields, _TABLES_BY_PREFIX)
ACCESS_TOKEN_LOOKUP = CredentialLookup(
    statement=_build_lookup(AccessToken.digest, _PAIR_COLUMNS, *_PAIR_JOINS),
    parameter="token",
    read=TokenPairRow._make,
    credential_type=CredentialType.ACCESS_TOKEN,
)
REFRESH_TOKEN_LOOKUP = CredentialLookup(
    statement=_build_lookup(AccessToken.refresh_digest, _PAIR_COLUMNS, *_PAIR_JOINS),
    parameter="token",
    read=TokenPairRow._make,
    credential_type=CredentialType.REFRESH_TOKEN,
)
SUBJECT_TOKEN_LOOKUP = replace(ACCESS_TOKEN_LOOKUP, parameter="subject_token")
REFRESH_GRANT_LOOKUP = replace(REFRESH_TOKEN_LOOKUP, parameter="refresh_token")

_GRANT_COLUMNS = build_columns(GrantRow._fields, _TABLES_BY_PREFIX)

_GRANT_USER_JOIN = (User, User.id == Authorization.user_id)

AUTHORIZATION_CODE_LOOKUP = CredentialLookup(
    statement=_build_lookup(Authorization.code_digest, _GRANT_COLUMNS, _GRANT_USER_JOIN),
    parameter="code",
    read=GrantRow._make,
    credential_type=CredentialType.AUTHORIZATION_CODE,
)

#: Columns of a device request, without the last field: the grant has columns of its own.
_DEVICE_COLUMNS = build_columns(DeviceRow._fields[:-1], _TABLES_BY_PREFIX)


def _build_device_row(columns: Sequence[object]) -> DeviceRow:
    device, grant = columns[: len(_DEVICE_COLUMNS)], columns[len(_DEVICE_COLUMNS) :]
    return DeviceRow._make((*device, None if grant[0] is None else GrantRow._make(grant)))


#: Lookup of a device code, with the grant if the request was approved.
DEVICE_CODE_LOOKUP = CredentialLookup(
    statement=_build_lookup(
        DeviceAuthorization.device_code_digest,
        (*_DEVICE_COLUMNS, *_GRANT_COLUMNS),
        (Authorization, Authorization.code_digest == DeviceAuthorization.device_code_digest),
        _GRANT_USER_JOIN,
    ),
    parameter="device_code",
    read=_build_device_row,
)
