"""Looks up bearer tokens together with their users (RFC 6750), without the ORM."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import Update, bindparam, select, type_coerce, update
from sqlalchemy.exc import DBAPIError

from domain.access.scopes import ADMIN_MODE, SUDO
from domain.accounts.profiles import PROFILE_COLUMNS, Profile, build_profile
from domain.accounts.users import ACTIVE, MACHINE_KINDS
from domain.core.database.bulk_statements import asynchronous_commit
from domain.core.database.statements import Row, StatementConnection, build_columns
from domain.core.errors import ForbiddenError
from domain.core.keyring import CredentialType, Keyring
from models import AccessToken, Application, Authorization, PersonalAccessToken, User
from models.base import NEVER, UTCDateTime

#: Minimum time between two stored uses of a token, to limit the number of writes.
_MIN_INTERVAL_BETWEEN_USES = timedelta(minutes=1)


class TokenRejectionReason(StrEnum):
    """The reason why a token is rejected."""

    MISSING = "The request has no access token."
    UNKNOWN = "The access token is invalid."
    EXPIRED = "The access token expired."
    REVOKED = "The access token was revoked."


class InvalidTokenError(Exception):
    """Error for a token that is missing, unknown, expired or revoked (RFC 6750 section 3.1)."""

    def __init__(self, refusal: TokenRejectionReason) -> None:
        """Store the reason for the rejection."""
        super().__init__(refusal.value)
        self.refusal = refusal


class InsufficientScopeError(Exception):
    """Error for a token that has none of the accepted scopes (RFC 6750 section 3.1)."""

    def __init__(self, accepted_scopes: tuple[str, ...]) -> None:
        """Store the accepted scopes, any of which is sufficient."""
        super().__init__("The request requires higher privileges than the access token has.")
        self.accepted = accepted_scopes


@dataclass(frozen=True, kw_only=True, slots=True)
class Bearer:
    """An active token and its user."""

    profile: Profile
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    #: client_id of the application; None for a personal token or a password grant without a client.
    application_uid: str | None
    #: True for the bot of a project or group access token, and for a service account.
    is_bot: bool = False
    #: Row ID of an OAuth token; None for a personal token.
    access_token_id: int | None = None
    #: Row ID of a personal token; None for an OAuth token.
    personal_token_id: int | None = None
    #: Keyed hash of a personal token; empty for an OAuth token.
    digest: bytes = field(default=b"", repr=False)
    #: Row ID of an OAuth token's grant, or of the grant with which an application created a
    #: personal token. None if there is no grant.
    authorization_id: int | None = None
    #: Time of the last use, to the minute; None if the token has not been used.
    last_used_at: datetime | None = None
    #: Thumbprint of the key that the token is bound to (RFC 9449), or None.
    key_thumbprint: str | None = None
    #: True for a token older than the `admin_mode` scope, which has the scope's rights without the
    #: scope.
    keeps_admin_mode: bool = False
    #: Administrator who acts as the user in `profile`, or None.
    sudo_by: Profile | None = None

    @property
    def user_id(self) -> int:
        """The ID of the user that the token belongs to."""
        return self.profile.id

    @property
    def username(self) -> str:
        """The username of the user that the token belongs to."""
        return self.profile.username

    @property
    def is_admin(self) -> bool:
        """True if the token has the rights of an instance administrator."""
        has_admin_mode = self.keeps_admin_mode or ADMIN_MODE in self.scopes
        return self.profile.is_admin and has_admin_mode

    @property
    def belongs_to_application(self) -> bool:
        """True for tokens of applications, including personal tokens that applications created."""
        return self.application_uid is not None or self.authorization_id is not None

    def require_administrator(self) -> None:
        """Check that the token has the rights of an administrator.

        Raise ForbiddenError if the user is not an administrator, or InsufficientScopeError if only
        the scope is missing.
        """
        if not self.profile.is_admin:
            raise ForbiddenError("Only administrators of the instance can do this.")
        if not self.is_admin:
            raise InsufficientScopeError((ADMIN_MODE,))

    def require_sudo(self) -> None:
        """Check that the token may act as another user.

        Raise InsufficientScopeError if the token does not have the scope or is not a personal
        token. Raise ForbiddenError if the user is not an administrator.
        """
        is_personal = self.personal_token_id is not None and not self.belongs_to_application
        if not is_personal or SUDO not in self.scopes:
            raise InsufficientScopeError((SUDO,))
        if not self.profile.is_admin:
            raise ForbiddenError("Only administrators of the instance can act as another user.")

    def get_seconds_left(self, now: datetime) -> int | None:
        """Return the remaining lifetime in whole seconds, or None if the token never expires."""
        if self.expires_at is None:
            return None
        return max(0, int((self.expires_at - now).total_seconds()))

    def require_any_scope(self, *accepted: str) -> None:
        """Check that the token has one of these scopes.

        Raise InsufficientScopeError if the token has none of the scopes.
        """
        if not set(accepted) & set(self.scopes):
            raise InsufficientScopeError(accepted)


class AccessTokenRow(NamedTuple):
    """A row of `ACCESS_TOKEN_QUERY` without the profile columns: an OAuth access token."""

    kind: str
    access_token_id: int
    authorization_id: int | None
    last_used_at: datetime | None
    scopes: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    key_thumbprint: str | None
    keeps_admin_mode: bool
    #: client_id of the application.
    uid: str | None


class PersonalTokenRow(NamedTuple):
    """A row of `PERSONAL_TOKEN_QUERY` without the profile columns: a personal access token."""

    kind: str
    personal_token_id: int
    digest: bytes
    last_used_at: datetime | None
    scopes: str
    created_at: datetime
    #: End of validity; NEVER for a token that does not expire.
    expires_at: datetime
    revoked_at: datetime | None
    authorization_id: int | None
    key_thumbprint: str | None
    keeps_admin_mode: bool
    grant_revoked_at: datetime | None


ACCESS_TOKEN_QUERY = (
    select(
        *PROFILE_COLUMNS,
        *build_columns(
            AccessTokenRow._fields,
            {"access_token_": AccessToken, "": AccessToken},
            kind=User.kind,
            uid=Application.uid,
        ),
    )
    .join(User, User.id == AccessToken.user_id)
    .outerjoin(Application, Application.id == AccessToken.application_id)
    .where(AccessToken.digest == bindparam("digest"))
)

PERSONAL_TOKEN_QUERY = (
    select(
        *PROFILE_COLUMNS,
        *build_columns(
            PersonalTokenRow._fields,
            {"personal_token_": PersonalAccessToken, "": PersonalAccessToken},
            kind=User.kind,
            # The value is read in its stored form, since a conversion would slow down every row.
            expires_at=type_coerce(PersonalAccessToken.expires_at, UTCDateTime),
            grant_revoked_at=Authorization.revoked_at,
        ),
    )
    .join(User, User.id == PersonalAccessToken.user_id)
    .outerjoin(Authorization, Authorization.id == PersonalAccessToken.authorization_id)
    .where(PersonalAccessToken.digest == bindparam("digest"))
)


def _build_token_use_update(table: type[AccessToken | PersonalAccessToken]) -> Update:
    # Only the first of several concurrent requests writes, without waiting for the disk. Otherwise
    # a client with a thousand tokens would wait for the disk with each token once a minute.
    return (
        update(table)
        .where(
            table.id == bindparam("token_id"),
            table.last_used_at.is_(None) | (table.last_used_at <= bindparam("stale")),
            asynchronous_commit(),
        )
        .values(last_used_at=bindparam("moment"), last_used_address=bindparam("sender"))
    )


_RECORD_ACCESS_TOKEN_USE = _build_token_use_update(AccessToken)
_RECORD_PERSONAL_TOKEN_USE = _build_token_use_update(PersonalAccessToken)
_REHASH_TOKEN = (
    update(PersonalAccessToken)
    .where(
        PersonalAccessToken.id == bindparam("token_id"),
        PersonalAccessToken.digest == bindparam("former"),
    )
    .values(digest=bindparam("newest"), keyed_at=bindparam("moment"))
)
_PROFILE_COLUMN_COUNT = len(PROFILE_COLUMNS)
_QUERIES_BY_TYPE = {
    CredentialType.ACCESS_TOKEN: ACCESS_TOKEN_QUERY,
    CredentialType.PERSONAL_ACCESS_TOKEN: PERSONAL_TOKEN_QUERY,
}


def get_access_token_bearer(
    token: str, *, connection: StatementConnection, keyring: Keyring, now: datetime
) -> Bearer:
    """Return the bearer of an active OAuth access token.

    Raise InvalidTokenError if the token is unknown, revoked or expired.
    """
    row = _find_token_row(
        token, CredentialType.ACCESS_TOKEN, connection=connection, keyring=keyring
    )
    if row is None:
        raise InvalidTokenError(TokenRejectionReason.UNKNOWN)
    return _build_access_token_bearer(row, now)


def get_bearer(
    token: str, *, connection: StatementConnection, keyring: Keyring, now: datetime
) -> Bearer:
    """Return the bearer of an active OAuth or personal access token.

    Raise InvalidTokenError if the token is unknown, revoked or expired.
    """
    row = _find_token_row(
        token, CredentialType.ACCESS_TOKEN, connection=connection, keyring=keyring
    )
    if row is not None:
        return _build_access_token_bearer(row, now)
    row = _find_token_row(
        token, CredentialType.PERSONAL_ACCESS_TOKEN, connection=connection, keyring=keyring
    )
    if row is None:
        raise InvalidTokenError(TokenRejectionReason.UNKNOWN)
    found = _build_personal_token_bearer(row, now)
    _rehash_token(token, found, connection=connection, keyring=keyring, now=now)
    return found


def record_token_use(
    bearer: Bearer, *, address: str | None, connection: StatementConnection, now: datetime
) -> None:
    """Store the time and IP address of a token's last use, at most once a minute."""
    last, stale = bearer.last_used_at, now - _MIN_INTERVAL_BETWEEN_USES
    if last is not None and last > stale:
        return
    is_personal = bearer.personal_token_id is not None
    statement = _RECORD_PERSONAL_TOKEN_USE if is_personal else _RECORD_ACCESS_TOKEN_USE
    values = {
        "token_id": bearer.personal_token_id if is_personal else bearer.access_token_id,
        "stale": stale,
        "moment": now,
        "sender": address,
    }
    # A failure to store the last use must not fail the request.
    with suppress(DBAPIError):
        connection.execute_statement(statement, values)


def _find_token_row(
    token: str, kind: CredentialType, *, connection: StatementConnection, keyring: Keyring
) -> Row | None:
    for digest in keyring.compute_digests(token, kind):
        row = connection.fetch_first_row(_QUERIES_BY_TYPE[kind], {"digest": digest})
        if row is not None:
            return row
    return None


def _rehash_token(
    token: str, bearer: Bearer, *, connection: StatementConnection, keyring: Keyring, now: datetime
) -> None:
    """Replace the hash of a personal token with a hash made with the newest secret key.

    Personal tokens may remain valid longer than a secret key.
    """
    newest = keyring.rehash_if_outdated(token, bearer.digest)
    if newest is None:
        return
    values = {"token_id": bearer.personal_token_id, "former": bearer.digest}
    # The request must not fail if the new hash cannot be stored.
    with suppress(DBAPIError):
        connection.execute_statement(_REHASH_TOKEN, {**values, "newest": newest, "moment": now})


def _build_access_token_bearer(row: Row, now: datetime) -> Bearer:
    profile, token = build_profile(row), AccessTokenRow._make(row[_PROFILE_COLUMN_COUNT:])
    _check_token_is_active(profile, token.revoked_at, token.expires_at, now)
    return Bearer(
        profile=profile,
        scopes=tuple(token.scopes.split()),
        created_at=token.created_at,
        expires_at=token.expires_at,
        application_uid=token.uid,
        is_bot=token.kind in MACHINE_KINDS,
        access_token_id=token.access_token_id,
        authorization_id=token.authorization_id,
        last_used_at=token.last_used_at,
        key_thumbprint=token.key_thumbprint,
        keeps_admin_mode=token.keeps_admin_mode,
    )


def _build_personal_token_bearer(row: Row, now: datetime) -> Bearer:
    profile, token = build_profile(row), PersonalTokenRow._make(row[_PROFILE_COLUMN_COUNT:])
    _check_token_is_active(
        profile, token.revoked_at or token.grant_revoked_at, token.expires_at, now
    )
    return Bearer(
        profile=profile,
        scopes=tuple(token.scopes.split()),
        created_at=token.created_at,
        expires_at=None if token.expires_at == NEVER else token.expires_at,
        application_uid=None,
        is_bot=token.kind in MACHINE_KINDS,
        personal_token_id=token.personal_token_id,
        digest=token.digest,
        authorization_id=token.authorization_id,
        last_used_at=token.last_used_at,
        key_thumbprint=token.key_thumbprint,
        keeps_admin_mode=token.keeps_admin_mode,
    )


def _check_token_is_active(
    profile: Profile, revoked_at: datetime | None, expires_at: datetime | None, now: datetime
) -> None:
    """Check that a token is neither revoked nor expired, and that its user is active.

    Raise InvalidTokenError otherwise.
    """
    if profile.state != ACTIVE:
        raise InvalidTokenError(TokenRejectionReason.UNKNOWN)
    if revoked_at is not None:
        raise InvalidTokenError(TokenRejectionReason.REVOKED)
    if expires_at is not None and expires_at <= now:
        raise InvalidTokenError(TokenRejectionReason.EXPIRED)
