"""Finds a client together with its presented credential, with one statement.

What is found may be revoked, used or another client's: grants and endpoints check that. The columns
are those of `found_rows`, in its order: first the client, then the credential.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Select,
    SQLColumnExpression,
    and_,
    bindparam,
    outerjoin,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute

from domain.database.statements import Row, columns_for
from domain.keyring import CredentialType
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
    """A lookup of a credential in a parameter, together with its client.

    The statement takes `client_id`, `now` and `digest`. It returns a row for each live secret of
    the client, each with the same credential; the columns of a credential are NULL without one.
    """

    statement: Select[Any]
    parameter: str
    #: Makes the credential of the columns that follow those of the client.
    read: Callable[[Sequence[object]], Found]
    #: Nothing for codes of devices, which have no prefix.
    credential_type: CredentialType | None = None


_CLIENT = columns_for(FoundClient._fields, {"secret_": ApplicationSecret, "": Application})
_CLIENT_COLUMNS = len(_CLIENT)
_SECRETS = outerjoin(
    Application,
    ApplicationSecret,
    and_(ApplicationSecret.application_id == Application.id, is_live(bindparam("now"))),
)
_IS_NAMED = Application.uid == bindparam("client_id")


#: Takes `client_id` and `now`.
CLIENT_ALONE = select(*_CLIENT).select_from(_SECRETS).where(_IS_NAMED)


class FoundTogether(NamedTuple, Generic[Found]):
    """A client, once for each of its live secrets, with the credential that it brings."""

    #: Empty for an unknown client.
    clients: list[FoundClient]
    #: None without a lookup or a match.
    credential: Found | None


def find_client(
    client_id: str,
    text: str | None,
    lookup: CredentialLookup[Found] | None,
    context: OAuthContext,
) -> FoundTogether[Found]:
    """Look up a client together with the credential that `text` is, in one statement."""
    digests: tuple[bytes, ...] = ()
    if lookup is not None and text is not None:
        digests = context.keyring.digests(text, lookup.credential_type)
    values = {"client_id": client_id, "now": context.now}
    if lookup is None or not digests:
        alone = context.connection.look_up(CLIENT_ALONE, values)
        return FoundTogether([FoundClient._make(row) for row in alone], None)
    found: Found | None = None
    rows: Sequence[Row] = ()
    for digest in digests:  # the likeliest first
        rows = context.connection.look_up(lookup.statement, {**values, "digest": digest})
        credential = rows[0][_CLIENT_COLUMNS:] if rows else (None,)
        if credential[0] is not None:
            found = lookup.read(credential)
        if found is not None or not rows:
            break
    return FoundTogether([FoundClient._make(row[:_CLIENT_COLUMNS]) for row in rows], found)


def _with(
    digest: InstrumentedAttribute[Any],
    columns: Sequence[SQLColumnExpression[Any]],
    *more: tuple[type[Any], ColumnElement[bool]],
) -> Select[Any]:
    """Return a statement that also finds the row with a digest, and what belongs to it.

    One join after the other: of joins in brackets SQLite would write down the whole tables first.
    """
    is_it = digest == bindparam("digest")
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

#: The last field is the grant, which has columns of its own.
_OF_DEVICE = columns_for(FoundDevice._fields[:-1], _TABLES)


def _device_in(columns: Sequence[object]) -> FoundDevice:
    device, grant = columns[: len(_OF_DEVICE)], columns[len(_OF_DEVICE) :]
    return FoundDevice._make((*device, None if grant[0] is None else FoundGrant._make(grant)))


#: With the grant of its user, if it was approved.
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
