"""Keys that sign ID tokens with RS256, one at a time (RFC 7517, RFC 7518).

A new key is published before its first use, since clients cache the key set. An old key stays
published until the last ID token signed with it has expired.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from functools import lru_cache
from typing import NamedTuple

from joserfc.jwk import RSAKey
from pydantic import Field
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    bindparam,
    delete,
    or_,
    select,
)
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.database.locks import AdvisoryLock, commit_to_release_locks
from domain.core.database.statements import StatementConnection
from domain.core.errors import InvalidError
from domain.core.keyring import Keyring, UndecryptableError
from domain.core.tls import MAX_RSA_BITS, MIN_RSA_BITS
from domain.core.types.base import Body, Resource, Time
from models import SigningKey

SIGNING_ALGORITHM = "RS256"
DEFAULT_KEY_BITS = 2048
#: Time for which clients may cache the key set. A key is published this long before its first use.
KEY_NOTICE_PERIOD = timedelta(hours=1)
#: Maximum lifetime of ID tokens; a retired key stays published for this time.
MAX_ID_TOKEN_LIFETIME = timedelta(days=1)


class KeyRotation(StrEnum):
    """The method of replacing the old keys with a new key."""

    #: Rotation in which the new key is published first, and signs after the notice period.
    AFTER_NOTICE = "after-notice"
    #: Rotation in which the new key signs immediately, and the old keys stay published.
    AT_ONCE = "at-once"
    #: Rotation in which the new key signs immediately, and the old keys and their signatures become
    #: invalid.
    OLD_KEYS_LEAKED = "old-keys-leaked"


class PublishedKey(NamedTuple):
    """A key in the key set, with the time when it stops signing."""

    kid: str
    #: Public key in the format of RFC 7517 section 4.
    public_jwk: dict[str, str]
    created_at: datetime
    retired_at: datetime | None


def check_key_size(bits: int) -> None:
    """Check that a key size in bits is allowed.

    Short keys are unsafe, and long keys are slow. Raise InvalidError if the size is not allowed.
    """
    if not MIN_RSA_BITS <= bits <= MAX_RSA_BITS or bits % 8:
        message = f"The key size must be a multiple of 8 from {MIN_RSA_BITS} to {MAX_RSA_BITS}."
        raise InvalidError(message, field="bits")


def _is_in_use(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    return or_(SigningKey.retired_at.is_(None), SigningKey.retired_at > now)


_KEYS_IN_USE_QUERY = (
    select(SigningKey.private_ciphertext)
    .where(_is_in_use(bindparam("now")))
    .order_by(SigningKey.id)
)


def get_or_create_signing_key(*, session: Session, keyring: Keyring, now: datetime) -> RSAKey:
    """Return the current signing key, and create it if it does not exist.

    The call requires an open transaction that may write.
    """
    found = _find_signing_key_in_session(session, keyring, now)
    if found is not None:
        return found
    AdvisoryLock.SIGNING_KEYS.acquire(session)
    # Another process may have created the key while this process waited for the lock.
    found = _find_signing_key_in_session(session, keyring, now)
    return found or _store_key(_generate_key(DEFAULT_KEY_BITS), session, keyring, now)


def find_signing_key_id(*, session: Session, keyring: Keyring, now: datetime) -> str | None:
    """Return the `kid` of the current signing key, or None if there is no key yet."""
    found = _find_signing_key_in_session(session, keyring, now)
    return str(found.kid) if found is not None else None


def find_signing_key(
    *, connection: StatementConnection, keyring: Keyring, now: datetime
) -> RSAKey | None:
    """Return the current signing key, or None if there is no key yet."""
    return _decrypt_first_key(
        (ciphertext for (ciphertext,) in connection.fetch_rows(_KEYS_IN_USE_QUERY, {"now": now})),
        keyring,
    )


def _find_signing_key_in_session(
    session: Session, keyring: Keyring, now: datetime
) -> RSAKey | None:
    return _decrypt_first_key(session.scalars(_KEYS_IN_USE_QUERY, {"now": now}), keyring)


def _decrypt_first_key(ciphertexts: Iterable[str], keyring: Keyring) -> RSAKey | None:
    """Return the oldest key that this keyring can decrypt.

    Keys encrypted with a lost master secret are skipped, since a new key can replace them.
    """
    for ciphertext in ciphertexts:
        try:
            return _decrypt_key(ciphertext, keyring)
        except UndecryptableError:
            continue
    return None


@lru_cache(maxsize=8)
def _decrypt_key(ciphertext: str, keyring: Keyring) -> RSAKey:
    """Return a decrypted private key.

    The result is cached, since checking a key takes longer than creating 100 signatures.
    """
    return RSAKey.import_key(json.loads(keyring.decrypt(ciphertext)))


def _generate_key(bits: int) -> RSAKey:
    # `auto_kid` is the thumbprint of RFC 7638.
    return RSAKey.generate_key(bits, {"use": "sig", "alg": SIGNING_ALGORITHM}, auto_kid=True)


def _store_key(key: RSAKey, session: Session, keyring: Keyring, now: datetime) -> RSAKey:
    session.add(
        SigningKey(
            kid=str(key.kid),
            public_jwk=key.as_dict(private=False),
            private_ciphertext=keyring.encrypt(json.dumps(key.as_dict(private=True))),
            created_at=now,
            retired_at=None,
        )
    )
    session.flush()  # Later queries in the transaction must find the key.
    return key


def rotate_id_token_key(
    rotation: KeyRotation,
    *,
    bits: int = DEFAULT_KEY_BITS,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> str:
    """Create a key, retire the old keys, and return the `kid` of the new key.

    Raise InvalidError if the size is not allowed.
    """
    check_key_size(bits)
    commit_to_release_locks(session)  # Generating a large key takes seconds.
    key = _generate_key(bits)
    AdvisoryLock.SIGNING_KEYS.acquire(session)
    if rotation is KeyRotation.OLD_KEYS_LEAKED:
        session.execute(delete(SigningKey))
    takes_over_at = now + KEY_NOTICE_PERIOD if rotation is KeyRotation.AFTER_NOTICE else now
    session.execute(
        build_bulk_update(SigningKey)
        .where(or_(SigningKey.retired_at.is_(None), SigningKey.retired_at > takes_over_at))
        .values(retired_at=takes_over_at)
    )
    return str(_store_key(key, session, keyring, now).kid)


def _select_published_keys(now: datetime) -> Select[str, dict[str, str], datetime, datetime | None]:
    return (
        select(SigningKey.kid, SigningKey.public_jwk, SigningKey.created_at, SigningKey.retired_at)
        .where(_is_in_use(now - MAX_ID_TOKEN_LIFETIME))
        .order_by(SigningKey.id)
    )


def find_published_keys(
    *, connection: StatementConnection, now: datetime
) -> tuple[PublishedKey, ...]:
    """Return the keys of the key set, oldest first."""
    return tuple(map(PublishedKey._make, connection.execute_statement(_select_published_keys(now))))


def list_published_keys(*, session: Session, now: datetime) -> tuple[PublishedKey, ...]:
    """Return the keys in the key set, oldest first, within the session's transaction."""
    return tuple(map(PublishedKey._make, session.execute(_select_published_keys(now))))


def find_public_key(kid: str, *, session: Session) -> RSAKey | None:
    """Return the public key with this `kid`, or None."""
    jwk = session.scalar(select(SigningKey.public_jwk).where(SigningKey.kid == kid))
    return RSAKey.import_key(dict(jwk)) if jwk is not None else None


class Key(Resource):
    """The ID and the dates of a published signing key."""

    kid: str
    created_at: Time
    #: Time when the key stops signing; null if the key has no successor yet.
    retired_at: Time | None


class Keys(Resource):
    """The published keys, oldest first."""

    keys: list[Key]


class NewKey(Keys):
    """A new key, and all published keys."""

    kid: str


class NewKeyBody(Body):
    """Request body for creating a signing key."""

    handover: KeyRotation = Field(
        default=KeyRotation.AFTER_NOTICE,
        description="When the new key starts signing, and whether the old keys are kept.",
    )
    bits: int = Field(default=DEFAULT_KEY_BITS, description="Size of the key in bits.")


class KeyState(Enum):
    """The state of a key. Its value is shown on the page."""

    #: State of a key that is published so that clients can fetch it before it signs.
    PUBLISHED = "Waiting"
    SIGNING = "Signing"
    #: State of a key that is still published, since ID tokens signed with it are still valid.
    RETIRED = "Retired"


@dataclass(frozen=True, kw_only=True)
class KeyStatus:
    """A published key with its state and its dates."""

    kid: str
    #: Time when the key was created and published.
    created_at: datetime
    state: KeyState
    #: Time when the key stops signing; None if the key has no successor yet.
    signs_until: datetime | None

    @property
    def published_until(self) -> datetime | None:
        """The latest time at which an ID token signed with the key expires."""
        return self.signs_until + MAX_ID_TOKEN_LIFETIME if self.signs_until else None


def list_key_statuses(
    *, session: Session, keyring: Keyring, now: datetime
) -> tuple[KeyStatus, ...]:
    """Return the keys of the key set, newest first."""
    signing = find_signing_key_id(session=session, keyring=keyring, now=now)
    published = list_published_keys(session=session, now=now)
    return tuple(
        KeyStatus(
            kid=key.kid,
            created_at=key.created_at,
            state=_get_key_state(key, signing, now),
            signs_until=key.retired_at,
        )
        for key in reversed(published)
    )


def _get_key_state(key: PublishedKey, signing: str | None, now: datetime) -> KeyState:
    if key.kid == signing:
        return KeyState.SIGNING
    has_ceased = key.retired_at is not None and key.retired_at <= now
    return KeyState.RETIRED if has_ceased else KeyState.PUBLISHED


@read_action("keys.index")
def list_keys(work: UnitOfWork) -> Keys:
    """List the published keys, oldest first."""
    published = list_published_keys(session=work.session, now=work.now)
    return Keys(keys=[Key.model_validate(each) for each in published])


@action("keys.rotate")
def rotate_keys(work: UnitOfWork, new: NewKeyBody) -> NewKey:
    """Create a signing key.

    Unless the old keys have leaked, they stay published until all their ID tokens have expired.
    """
    keyring = work.policy(Keyring)
    kid = rotate_id_token_key(
        new.handover, bits=new.bits, session=work.session, keyring=keyring, now=work.now
    )
    details = {"handover": new.handover.value, "bits": new.bits}
    work.record_audit_event(EventKind.SIGNING_KEY_ROTATED, subject=kid, details=details)
    return NewKey(kid=kid, keys=list_keys(work).keys)
