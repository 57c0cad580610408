"""Tracks the secret keys used with a database, to detect a wrong key at startup.

The database stores a fingerprint of each key, and the time at which the key was last used to write.
A process may start only if it has every key in use. Otherwise, it could not read data that other
processes have written.
"""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_session_insert
from domain.core.errors import DomainError
from domain.core.hosts import MAX_HOST_REPORT_AGE
from domain.core.keyring import Keyring, UndecryptableError
from models import (
    AuditKey,
    AuditStream,
    IdentityProvider,
    Integration,
    PushKey,
    RegistryKey,
    SecretKeyUse,
    SigningKey,
    TotpDevice,
)

#: Maximum number of stored secrets of each kind that are decrypted as a test.
_SAMPLE_SIZE = 20
_WRONG_KEY_ADVICE = (
    "Set it to the key that this database was used with, or add that key to "
    "SECRET_KEY_FALLBACKS. If the key is lost, run `gatebell secrets forget`, which invalidates "
    "all tokens and stored keys."
)


class WrongSecretKeyError(DomainError):
    """Error for a keyring without a key that is needed to read the stored data."""


def find_missing_fingerprints(keyring: Keyring, *, session: Session) -> tuple[str, ...]:
    """Return the fingerprints of keys that are in use, but not in the keyring."""
    uses = session.execute(select(SecretKeyUse.fingerprint, SecretKeyUse.last_used_at)).all()
    latest = max((use.last_used_at for use in uses), default=None)
    return tuple(
        use.fingerprint
        for use in uses
        if latest is not None
        and use.last_used_at > latest - MAX_HOST_REPORT_AGE
        and use.fingerprint not in keyring.fingerprints
    )


def check_keyring(keyring: Keyring, *, session: Session) -> None:
    """Check that the keyring contains every key in use.

    Raise WrongSecretKeyError if a key is missing.
    """
    if missing := find_missing_fingerprints(keyring, session=session):
        what = f"in use: {', '.join(missing)}; given: {', '.join(keyring.fingerprints)}"
        message = f"SECRET_KEY is not the right key for this database (fingerprints: {what})."
        raise WrongSecretKeyError(f"{message} {_WRONG_KEY_ADVICE}")


def check_and_record_key_use(keyring: Keyring, *, session: Session, now: datetime) -> None:
    """Record that a process writes with the newest key of the keyring.

    Raise WrongSecretKeyError if a key in use is not in the keyring. If the first two processes
    start at the same time with different keys, the second process is rejected.
    """
    if session.get_bind().dialect.name == "postgresql":  # SQLite has only one writer
        session.execute(text("LOCK TABLE secret_key_uses IN SHARE ROW EXCLUSIVE MODE"))
    check_keyring(keyring, session=session)
    is_first = session.scalar(select(SecretKeyUse.fingerprint).limit(1)) is None
    if is_first and not _can_decrypt_any(keyring, session=session):
        message = (
            "SECRET_KEY is not the right key for this database: it cannot decrypt anything in it."
        )
        raise WrongSecretKeyError(f"{message} {_WRONG_KEY_ADVICE}")
    record_key_use(keyring, session=session, now=now)


def record_key_use(keyring: Keyring, *, session: Session, now: datetime) -> None:
    """Record the current time as the last use of the newest key."""
    session.execute(
        build_session_insert(SecretKeyUse, session=session)
        .values(fingerprint=keyring.fingerprints[0], first_used_at=now, last_used_at=now)
        .on_conflict_do_update(
            index_elements=[SecretKeyUse.fingerprint], set_={"last_used_at": now}
        )
    )


def delete_missing_keys(keyring: Keyring, *, session: Session) -> tuple[str, ...]:
    """Delete the records of keys that are not in the keyring, and return the keys' fingerprints."""
    known = SecretKeyUse.fingerprint.in_(keyring.fingerprints)
    gone = session.scalars(delete(SecretKeyUse).where(~known).returning(SecretKeyUse.fingerprint))
    return tuple(gone)


def _can_decrypt_any(keyring: Keyring, *, session: Session) -> bool:
    """Return whether the keyring can decrypt a stored secret, or True if no secret is stored."""
    kept = list(_iterate_ciphertexts(session))
    return not kept or any(_can_decrypt(keyring, each) for each in kept)


def _iterate_ciphertexts(session: Session) -> Iterable[str]:
    samples = (
        select(SigningKey.private_ciphertext).order_by(SigningKey.id.desc()),
        select(Integration.key_ciphertext).order_by(Integration.id.desc()),
        select(TotpDevice.seed_ciphertext).order_by(TotpDevice.id.desc()),
        select(AuditKey.ciphertext),
        select(AuditStream.secret_ciphertext).order_by(AuditStream.id.desc()),
        select(IdentityProvider.client_secret_ciphertext).order_by(IdentityProvider.id.desc()),
        select(RegistryKey.private_ciphertext).order_by(RegistryKey.id.desc()),
        select(PushKey.private_ciphertext).order_by(PushKey.id.desc()),
    )
    for sample in samples:
        yield from session.scalars(sample.limit(_SAMPLE_SIZE))


def _can_decrypt(keyring: Keyring, ciphertext: str) -> bool:
    try:
        keyring.decrypt(ciphertext)
    except UndecryptableError:
        return False
    return True
