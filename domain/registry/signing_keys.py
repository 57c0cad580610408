"""Keys that sign registry tokens: ES256, with an overlap when one follows another.

Registries read the certificates that they trust when they start. So a new key waits until its
operators have given the new bundle to every registry; the bundle holds the keys that wait, the one
that signs, and the former one until its last token has expired.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from joserfc.jwk import ECKey
from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from domain.clock import written
from domain.database.advisory_locks import AdvisoryLock
from domain.errors import InvalidError
from domain.keyring import Keyring, UndecipherableError
from domain.registry.certificates import libtrust_kid, pem_of, self_signed, x5c_of
from models import RegistryKey

ALGORITHM = "ES256"
_CURVE = "P-256"
#: How long a key waits before it signs, if the operator does not say.
USUAL_NOTICE = timedelta(hours=24)
LONGEST_NOTICE = timedelta(days=90)
#: Longer than any token lives, with the minute that registries add.
FORMER_KEYS_STAY = timedelta(days=1)


class KeyState(Enum):
    """The state of a key; the values are shown on the page."""

    WAITING = "Waiting"
    SIGNING = "Signing"
    FORMER = "Former"


@dataclass(frozen=True, kw_only=True)
class TokenSigner:
    """The key that signs now, with what names it in the header of a token."""

    key: ECKey
    kid: str
    x5c: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class KeyStatus:
    """A key of the bundle, for pages and commands."""

    kid: str
    certificate: str
    created_at: datetime
    signs_from: datetime
    state: KeyState

    def as_json(self) -> dict[str, str]:
        """Return the key as commands print it."""
        return {
            "kid": self.kid,
            "state": self.state.value.lower(),
            "created_at": written(self.created_at),
            "signs_from": written(self.signs_from),
        }


def get_signer(*, session: Session, keyring: Keyring, now: datetime) -> TokenSigner:
    """Return the key that signs now; the first call makes it, for which it has to write."""
    found = _find_signer(session, keyring, now)
    if found is not None:
        return found
    _lock(session)
    # Another process may have made it meanwhile.
    found = _find_signer(session, keyring, now)
    if found is not None:
        return found
    stored = _store(now, session=session, keyring=keyring, now=now)
    return _opened(stored.private_ciphertext, stored.certificate, keyring)


def has_signer(*, session: Session, keyring: Keyring, now: datetime) -> bool:
    """Return whether there is a key that signs now."""
    return _find_signer(session, keyring, now) is not None


def list_keys(*, session: Session, keyring: Keyring, now: datetime) -> tuple[KeyStatus, ...]:
    """Return the keys of the bundle, the newest first."""
    signing = _find_signer(session, keyring, now)
    kid = signing.kid if signing else ""
    rows = session.scalars(_newest_first())
    return tuple(
        KeyStatus(
            kid=row.kid,
            certificate=row.certificate,
            created_at=row.created_at,
            signs_from=row.signs_from,
            state=_state(row, kid, now),
        )
        for row in rows
    )


def rotate(notice: timedelta, *, session: Session, keyring: Keyring, now: datetime) -> str:
    """Make a key that signs after a notice, and return its `kid`.

    Raises InvalidError for a notice that is out of bounds.
    """
    if not timedelta(0) <= notice <= LONGEST_NOTICE:
        message = f"The notice is 0 to {int(LONGEST_NOTICE.total_seconds() // 3600)} hours."
        raise InvalidError(message, field="notice")
    _lock(session)
    # Of keys that wait, the newest counts: what was never used needs no trust.
    session.execute(delete(RegistryKey).where(RegistryKey.signs_from > now))
    return _store(now + notice, session=session, keyring=keyring, now=now).kid


def forget_former_keys(*, session: Session, keyring: Keyring, now: datetime) -> int:
    """Delete the keys before the one that signs, so that the bundle loses them."""
    _lock(session)
    signing = _find_signer(session, keyring, now)
    if signing is None:
        return 0
    newest = select(RegistryKey.id).where(RegistryKey.kid == signing.kid).scalar_subquery()
    gone = session.scalars(
        delete(RegistryKey).where(RegistryKey.id < newest).returning(RegistryKey.id)
    )
    return len(gone.all())


def _newest_first() -> Select[RegistryKey]:
    return select(RegistryKey).order_by(RegistryKey.signs_from.desc(), RegistryKey.id.desc())


def _find_signer(session: Session, keyring: Keyring, now: datetime) -> TokenSigner | None:
    """Return the newest key that signs already and that this keyring decrypts."""
    for row in session.scalars(_newest_first().where(RegistryKey.signs_from <= now)):
        try:
            return _opened(row.private_ciphertext, row.certificate, keyring)
        except UndecipherableError:
            continue
    return None


@lru_cache(maxsize=8)
def _opened(ciphertext: str, certificate: str, keyring: Keyring) -> TokenSigner:
    parsed = x509.load_pem_x509_certificate(certificate.encode())
    return TokenSigner(
        key=ECKey.import_key(json.loads(keyring.decrypt(ciphertext))),
        kid=libtrust_kid(parsed),
        x5c=x5c_of(parsed),
    )


def _store(
    signs_from: datetime, *, session: Session, keyring: Keyring, now: datetime
) -> RegistryKey:
    key = ECKey.generate_key(_CURVE)
    certificate = self_signed(cast("EllipticCurvePrivateKey", key.private_key), now=now)
    row = RegistryKey(
        kid=libtrust_kid(certificate),
        certificate=pem_of(certificate),
        private_ciphertext=keyring.encrypt(json.dumps(key.as_dict(private=True))),
        created_at=now,
        signs_from=signs_from,
    )
    session.add(row)
    session.flush()  # so that the key can be found in the same transaction
    return row


def _lock(session: Session) -> None:
    """Lock the keys until this transaction ends; on SQLite a write transaction does so anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(AdvisoryLock.REGISTRY_KEYS.value)))


def _state(row: RegistryKey, signing: str, now: datetime) -> KeyState:
    if row.signs_from > now:
        return KeyState.WAITING
    return KeyState.SIGNING if row.kid == signing else KeyState.FORMER
