"""Looks up a client together with the presented credential in one statement.

The credential may be revoked, used or issued to another client, so grants and endpoints must check
it. The columns are the fields of `found_rows` in order: first the client, then the credential.
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

from domain.access.scopes import FREE
from domain.accounts.users import ACTIVE
from domain.core.database.failures import is_lost, is_read_only
from domain.core.database.statements import Row, columns_for
from domain.core.keyring import CredentialType
from domain.oauth.clients.found_rows import FoundClient, FoundDevice, FoundGrant, FoundPair
from domain.oauth.clients.secrets import is_live
from domain.oauth.context import OAuthContext
from models import (
    AccessToken,
    Application,
    ApplicationSecret,
    Authorization,
    DeviceAuthorization,
    User,
)

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class CredentialLookup(Generic[Found]):
    """A lookup of the credential in a parameter, together with its client.

    The statement has the parameters `client_id`, `now` and `presented_digest`. It returns a row for
    each live secret of the client, always with the same credential. The credential columns are NULL
    if no credential matches.
    """

    statement: Select[Any]
    parameter: str
    #: Function that creates the credential from the columns after the client's columns.
    read: Callable[[Sequence[object]], Found]
    #: Type of the credential; None for device codes, which have no prefix.
    credential_type: CredentialType | None = None


_CLIENT = columns_for(FoundClient._fields, {"secret_": ApplicationSecret, "": Application})
_CLIENT_COLUMNS = len(_CLIENT)
_SECRETS = outerjoin(
    Application,
    ApplicationSecret,
    and_(ApplicationSecret.application_id == Application.id, is_live(bindparam("now"))),
)
_IS_NAMED = Application.uid == bindparam("client_id")


#: Lookup of a client without a credential, with the parameters `client_id` and `now`.
CLIENT_ALONE = select(*_CLIENT).select_from(_SECRETS).where(_IS_NAMED)


class FoundTogether(NamedTuple, Generic[Found]):
    """A client with the presented credential."""

    #: The client with each of its live secrets; empty if the client is unknown.
    clients: list[FoundClient]
    #: The credential; None without a lookup or a match.
    credential: Found | None
    #: Result of the write in the same statement, or None if nothing was written.
    written: Any = None


class LookupWithWrite(NamedTuple):
    """A lookup on Postgres that also writes, if the request is certain to succeed.

    The statement contains the conditions of the write. The endpoint checks the rows in any case. A
    request that does not meet the conditions can still succeed with a second statement.
    """

    #: Statement with the parameters of the lookup, `presented_secret` and `values`. The last column
    #: is NULL if nothing was written.
    statement: Select[Any]
    values: Mapping[str, object]
    #: The written credentials in plain text; None if the endpoint needs the last column.
    result: Any = None


def lookup_with_write(
    lookup: Select[Any],
    conditions: Callable[[Any], Sequence[ColumnElement[bool]]],
    write: Callable[[CTE], CTE],
) -> Select[Any]:
    """Return a lookup that also writes if the client is authenticated and all conditions hold.

    `write` receives the one row that meets them, and returns one column. Nothing is written for
    clients that registered themselves or require DPoP proofs, since other conditions may apply to
    them.
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


def single_value(rows: CTE, column: str) -> Any:
    """Return a column of the only row as a scalar subquery.

    With a join, Postgres might search the table by a less selective condition instead of the key.
    """
    return select(rows.c[column]).scalar_subquery()


def are_registered(scopes: ColumnElement[str], client: Any) -> ColumnElement[bool]:
    """Return the condition that `Client.get_allowed_scope` removes none of these scopes."""
    is_subset: ColumnElement[bool] = _words(scopes).contained_by(_words(client.scopes + _FREE))
    return is_subset


#: Constants in the text of the statement, so that they are not sent as parameters.
_SPACE = literal_column("' '", Text)
_FREE = literal_column(f"' {' '.join(sorted(FREE))}'", Text)
IS_ACTIVE = literal_column(f"'{ACTIVE}'", Text)


def _words(text: ColumnElement[str]) -> Any:
    return func.string_to_array(text, _SPACE, type_=postgresql.ARRAY(Text))


def find_client(
    client_id: str,
    text: str | None,
    lookup: CredentialLookup[Found] | None,
    context: OAuthContext,
    write: LookupWithWrite | None = None,
) -> FoundTogether[Found]:
    """Look up a client and the credential with this text in one statement."""
    values: dict[str, object] = {"client_id": client_id, "now": context.now}
    found: Found | None = None
    rows: Sequence[Row] = ()
    written = None
    digests: tuple[bytes, ...] = ()
    if lookup is not None and text is not None:
        digests = context.keyring.digests(text, lookup.credential_type)
    if lookup is None or not digests:
        rows, written = _run(CLIENT_ALONE, None if lookup else write, values, context)
    else:
        for digest in digests:  # most likely digest first
            own = {**values, "presented_digest": digest}
            rows, written = _run(lookup.statement, write, own, context)
            credential = rows[0][_CLIENT_COLUMNS:] if rows else (None,)
            if credential[0] is not None:
                found = lookup.read(credential)
            if found is not None or not rows:
                break
    clients = [FoundClient._make(row[:_CLIENT_COLUMNS]) for row in rows]
    return FoundTogether(clients, found, written)


def _run(
    lookup: Select[Any],
    write: LookupWithWrite | None,
    values: Mapping[str, object],
    context: OAuthContext,
) -> tuple[Sequence[Row], Any]:
    """Return the rows of a lookup, and the result of its write."""
    if write is None:
        return context.connection.look_up(lookup, values), None
    try:
        rows = context.connection.all(write.statement, {**values, **write.values})
    except DBAPIError as error:
        if not is_lost(error) and not is_read_only(error):
            raise
        # If the write took effect, the checks detect it, as they do when a client repeats a
        # request.
        return _run(lookup, None, values, context)
    written = rows[0][-1] if rows else None
    if written is not None and write.result is not None:
        written = write.result
    return [row[:-1] for row in rows], written


def _with(
    digest: InstrumentedAttribute[Any],
    columns: Sequence[SQLColumnExpression[Any]],
    *more: tuple[type[Any], ColumnElement[bool]],
) -> Select[Any]:
    """Return a statement that also finds the row with a digest, and its related rows.

    The joins are consecutive, since SQLite would materialize whole tables for nested joins.
    """
    is_it = digest == bindparam("presented_digest")
    found = select(*_CLIENT, *columns).select_from(_SECRETS).outerjoin(digest.class_, is_it)
    for table, condition in more:
        found = found.outerjoin(table, condition)
    return found.where(_IS_NAMED)


_TABLES: Mapping[str, type[Any]] = {
    "token_": AccessToken,
    "grant_": Authorization,
    "device_": DeviceAuthorization,
    "user_": User,
    "": User,
}
_WITH_PAIR = (
    (User, User.id == AccessToken.user_id),
    (Authorization, Authorization.id == AccessToken.authorization_id),
)
_OF_PAIR = columns_for(FoundPair._fields, _TABLES)
ASKED_ACCESS_TOKEN = CredentialLookup(
    statement=_with(AccessToken.digest, _OF_PAIR, *_WITH_PAIR),
    parameter="token",
    read=FoundPair._make,
    credential_type=CredentialType.ACCESS_TOKEN,
)
ASKED_REFRESH_TOKEN = CredentialLookup(
    statement=_with(AccessToken.refresh_digest, _OF_PAIR, *_WITH_PAIR),
    parameter="token",
    read=FoundPair._make,
    credential_type=CredentialType.REFRESH_TOKEN,
)
SUBJECT_TOKEN = replace(ASKED_ACCESS_TOKEN, parameter="subject_token")
REFRESH_TOKEN = replace(ASKED_REFRESH_TOKEN, parameter="refresh_token")

_OF_GRANT = columns_for(FoundGrant._fields, _TABLES)

_GRANT_USER = (User, User.id == Authorization.user_id)

AUTHORIZATION_CODE = CredentialLookup(
    statement=_with(Authorization.code_digest, _OF_GRANT, _GRANT_USER),
    parameter="code",
    read=FoundGrant._make,
    credential_type=CredentialType.AUTHORIZATION_CODE,
)

#: Columns of a device request, without the last field: the grant has columns of its own.
_OF_DEVICE = columns_for(FoundDevice._fields[:-1], _TABLES)


def _device_in(columns: Sequence[object]) -> FoundDevice:
    device, grant = columns[: len(_OF_DEVICE)], columns[len(_OF_DEVICE) :]
    return FoundDevice._make((*device, None if grant[0] is None else FoundGrant._make(grant)))


#: Lookup of a device code, with the grant if the request was approved.
DEVICE_CODE = CredentialLookup(
    statement=_with(
        DeviceAuthorization.device_code_digest,
        (*_OF_DEVICE, *_OF_GRANT),
        (Authorization, Authorization.code_digest == DeviceAuthorization.device_code_digest),
        _GRANT_USER,
    ),
    parameter="device_code",
    read=_device_in,
)
