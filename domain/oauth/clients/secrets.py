"""Client secrets. An application can have two secrets, which allows rotation without downtime."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    bindparam,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.core.database.statements import RunStatement
from domain.core.errors import NotFoundError
from domain.core.grace_period import GracePeriod
from domain.core.keyring import CredentialType, Keyring
from domain.oauth.clients.credential_rows import ClientRow
from models import Application, ApplicationSecret

#: Minimum time between two stored uses of an application or secret, to limit the number of writes.
_MIN_INTERVAL_BETWEEN_USES = timedelta(minutes=1)
#: Period after the last use during which an old secret is considered in use.
_IN_USE_PERIOD = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class SecretView:
    """The metadata of a valid client secret."""

    id: int
    created_at: datetime
    last_used_at: datetime | None
    #: Time when the older of two secrets expires; None for the current secret.
    expires_at: datetime | None

    @property
    def is_current(self) -> bool:
        """True for the newest secret, which does not expire."""
        return self.expires_at is None


class SecretRotationStatus(StrEnum):
    """The progress of replacing an application's old secret."""

    #: Status in which the new secret has not been used.
    NEW_IS_UNUSED = "new is unused"
    #: Status in which the old secret was used within the last hour.
    OLD_IS_IN_USE = "old is in use"
    #: Status in which the old secret is no longer in use.
    OLD_IS_UNUSED = "old is unused"


def get_secret_rotation_status(
    secrets: Sequence[SecretView], *, now: datetime
) -> SecretRotationStatus | None:
    """Return the rotation status of an application, or None if it has only one valid secret."""
    new = next((each for each in secrets if each.is_current), None)
    old = next((each for each in secrets if not each.is_current), None)
    if new is None or old is None:
        return None
    if new.last_used_at is None:
        return SecretRotationStatus.NEW_IS_UNUSED
    is_in_use = old.last_used_at is not None and old.last_used_at > now - _IN_USE_PERIOD
    return SecretRotationStatus.OLD_IS_IN_USE if is_in_use else SecretRotationStatus.OLD_IS_UNUSED


def build_live_secret_condition(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    """Return an SQL condition that is true for secrets that have not expired."""
    return or_(ApplicationSecret.expires_at.is_(None), ApplicationSecret.expires_at > now)


def list_secrets(application_id: int, *, session: Session, now: datetime) -> tuple[SecretView, ...]:
    """Return the valid secrets of an application, at most two, newest first."""
    rows = session.execute(
        select(
            ApplicationSecret.id,
            ApplicationSecret.created_at,
            ApplicationSecret.last_used_at,
            ApplicationSecret.expires_at,
        )
        .where(ApplicationSecret.application_id == application_id, build_live_secret_condition(now))
        .order_by(ApplicationSecret.id.desc())
    )
    return tuple(SecretView(**row) for row in rows.mappings())


def renew_secret(
    application_id: int,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
    grace_period: GracePeriod = GracePeriod.NOW,
) -> str:
    """Create a secret and return it.

    The previous secret stays valid for a grace period. Any older secret is deleted immediately. The
    application is locked, so concurrent renewals wait for each other. Raise NotFoundError if the
    application has been deleted.
    """
    _lock_secrets(application_id, session=session)
    mine = ApplicationSecret.application_id == application_id
    before = session.scalar(
        select(ApplicationSecret.id)
        .where(mine, ApplicationSecret.expires_at.is_(None))
        .order_by(ApplicationSecret.id.desc())
        .limit(1)
    )
    kept = (before,) if grace_period.length and before is not None else ()
    session.execute(
        build_bulk_delete(ApplicationSecret).where(mine, ApplicationSecret.id.not_in(kept))
    )
    session.execute(
        build_bulk_update(ApplicationSecret)
        .where(ApplicationSecret.id.in_(kept))
        .values(expires_at=now + grace_period.length)
    )
    credential = keyring.issue_credential(CredentialType.CLIENT_SECRET)
    session.add(
        ApplicationSecret(application_id=application_id, digest=credential.digest, created_at=now)
    )
    return credential.clear


def revoke_secret(application_id: int, secret_id: int, *, session: Session) -> None:
    """Revoke the older of two secrets.

    Raise NotFoundError for any other secret.
    """
    _lock_secrets(application_id, session=session)
    ended = session.scalar(
        build_bulk_delete(ApplicationSecret)
        .where(
            ApplicationSecret.id == secret_id,
            ApplicationSecret.application_id == application_id,
            ApplicationSecret.expires_at.is_not(None),
        )
        .returning(ApplicationSecret.id)
    )
    if ended is None:
        raise NotFoundError("That secret is already revoked.")


def _lock_secrets(application_id: int, *, session: Session) -> None:
    """Lock the secrets of an application until the transaction ends.

    SQLite ignores the lock, since it has only one writer. Raise NotFoundError if the application
    has been deleted.
    """
    held = session.scalar(
        select(Application.id)
        .where(Application.id == application_id)
        # FOR NO KEY UPDATE does not block inserts that only reference the row.
        .with_for_update(key_share=True)
    )
    if held is None:
        raise NotFoundError("Application not found.")


#: Statements that record a use. Like renewals, they lock the application first, which prevents
#: deadlocks.
_RECORD_USE = tuple(
    update(row)
    .where(
        row.id == bindparam(key),
        or_(row.last_used_at.is_(None), row.last_used_at <= bindparam("stale")),
    )
    .values(last_used_at=bindparam("now"))
    for row, key in ((Application, "application_id"), (ApplicationSecret, "secret_id"))
)


def record_secret_use(
    application_id: int, secret_id: int | None, *, run: RunStatement, now: datetime
) -> None:
    """Store when an application and its secret were last used, to the minute."""
    values = {"application_id": application_id, "secret_id": secret_id}
    for statement in _RECORD_USE[: 1 if secret_id is None else 2]:
        run(statement, {**values, "stale": now - _MIN_INTERVAL_BETWEEN_USES, "now": now})


_REHASH_SECRET = (
    update(ApplicationSecret)
    .where(
        ApplicationSecret.id == bindparam("secret_id"),
        ApplicationSecret.digest == bindparam("former"),
    )
    .values(digest=bindparam("newest"), keyed_at=bindparam("moment"))
)


def rehash_secret(client: ClientRow, newest: bytes, *, run: RunStatement, now: datetime) -> None:
    """Replace the hash of a secret with a hash made with the newest key."""
    values = {"secret_id": client.secret_id, "former": client.secret_digest}
    run(_REHASH_SECRET, {**values, "newest": newest, "moment": now})


def is_recent_use(last_used_at: datetime | None, now: datetime) -> bool:
    """Return whether the last use was less than a minute ago and need not be stored again."""
    return last_used_at is not None and last_used_at > now - _MIN_INTERVAL_BETWEEN_USES
