"""Keys that sign registry tokens with ES256, with an overlap during rotation.

Registries read trusted certificates when they start. A new key is therefore not used until
operators have had time to install the new bundle in every registry. The bundle contains the current
key, keys that are not used yet, and the previous key until its last token has expired.

The registry's `rootcertbundle` contains self-signed certificates. A token refers to its key in two
ways, either of which is sufficient:

- `x5c` is the certificate itself (RFC 7515 section 4.1.6).
- `kid` is the libtrust fingerprint of the key. Registries before version 3 compute it for each
  certificate in the bundle.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID
from joserfc.jwk import ECKey
from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session

from domain.core.database.locks import AdvisoryLock
from domain.core.errors import InvalidError
from domain.core.keyring import Keyring, UndecryptableError
from domain.core.types.base import get_column_values
from models import RegistryKey

#: Expiry time that means no expiry (RFC 5280 section 4.1.2.5). Operators replace keys by rotation.
#: With an expired certificate, a registry could reject every token.
_NO_EXPIRY = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
#: Tolerance for registries whose clocks are slow.
_CLOCK_SKEW = timedelta(days=1)
_FINGERPRINT_BYTES = 30
_KID_GROUP_LENGTH = 4


def build_self_signed_certificate(
    key: EllipticCurvePrivateKey, *, now: datetime
) -> x509.Certificate:
    """Return a self-signed certificate that never expires."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Gatebell registry tokens")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(_NO_EXPIRY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )


def compute_libtrust_kid(certificate: x509.Certificate) -> str:
    """Return the fingerprint of a certificate's key: 240 bits of SHA-256 in base32, in groups."""
    public = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    text = base64.b32encode(sha256(public).digest()[:_FINGERPRINT_BYTES]).decode()
    groups = (
        text[start : start + _KID_GROUP_LENGTH] for start in range(0, len(text), _KID_GROUP_LENGTH)
    )
    return ":".join(groups)


SIGNING_ALGORITHM = "ES256"
_CURVE = "P-256"
#: Default time before a new key is used to sign tokens.
DEFAULT_NOTICE_PERIOD = timedelta(hours=24)
MAX_NOTICE_PERIOD = timedelta(days=90)
#: Retention period of previous keys. It exceeds the lifetime of tokens plus the minute that
#: registries add.
FORMER_KEY_RETENTION = timedelta(days=1)


class KeyState(StrEnum):
    """The state of a signing key: waiting, signing or former."""

    WAITING = "waiting"
    SIGNING = "signing"
    FORMER = "former"


@dataclass(frozen=True, kw_only=True)
class TokenSigner:
    """The current signing key, with its identifiers for token headers."""

    key: ECKey
    kid: str
    x5c: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class KeyStatus:
    """A key in the bundle, as shown on web pages and by commands."""

    kid: str
    certificate: str
    created_at: datetime
    signs_from: datetime
    state: KeyState


def get_signer(*, session: Session, keyring: Keyring, now: datetime) -> TokenSigner:
    """Return the current signing key.

    The first call creates the key, so the transaction must allow writes.
    """
    found = _find_signer(session, keyring, now)
    if found is not None:
        return found
    AdvisoryLock.REGISTRY_KEYS.acquire(session)
    # Another process may have created the key in the meantime.
    found = _find_signer(session, keyring, now)
    if found is not None:
        return found
    stored = _store_new_key(now, session=session, keyring=keyring, now=now)
    return _decrypt_signer(stored.private_ciphertext, stored.certificate, keyring)


def has_signer(*, session: Session, keyring: Keyring, now: datetime) -> bool:
    """Return whether there is a current signing key."""
    return _find_signer(session, keyring, now) is not None


def list_keys(*, session: Session, keyring: Keyring, now: datetime) -> tuple[KeyStatus, ...]:
    """Return the keys in the bundle, newest first."""
    signing = _find_signer(session, keyring, now)
    kid = signing.kid if signing else ""
    rows = session.scalars(_select_keys_newest_first())
    return tuple(
        KeyStatus(**get_column_values(row, KeyStatus), state=_get_state(row, kid, now))
        for row in rows
    )


def rotate_signing_key(
    notice: timedelta, *, session: Session, keyring: Keyring, now: datetime
) -> str:
    """Create a key that signs after a notice period, and return its `kid`.

    Raise InvalidError for a period that is out of range.
    """
    if not timedelta(0) <= notice <= MAX_NOTICE_PERIOD:
        most = int(MAX_NOTICE_PERIOD.total_seconds() // 3600)
        message = f"The notice period must be 0 to {most:,} hours."
        raise InvalidError(message, field="notice")
    AdvisoryLock.REGISTRY_KEYS.acquire(session)
    # A new key replaces other keys that have not been used yet, because no tokens depend on them.
    session.execute(delete(RegistryKey).where(RegistryKey.signs_from > now))
    return _store_new_key(now + notice, session=session, keyring=keyring, now=now).kid


def delete_former_keys(*, session: Session, keyring: Keyring, now: datetime) -> int:
    """Delete all keys that are older than the current key.

    Return the number of deleted keys.
    """
    AdvisoryLock.REGISTRY_KEYS.acquire(session)
    signing = _find_signer(session, keyring, now)
    if signing is None:
        return 0
    newest = select(RegistryKey.id).where(RegistryKey.kid == signing.kid).scalar_subquery()
    gone = session.scalars(
        delete(RegistryKey).where(RegistryKey.id < newest).returning(RegistryKey.id)
    )
    return len(gone.all())


def _select_keys_newest_first() -> Select[RegistryKey]:
    return select(RegistryKey).order_by(RegistryKey.signs_from.desc(), RegistryKey.id.desc())


def _find_signer(session: Session, keyring: Keyring, now: datetime) -> TokenSigner | None:
    """Return the newest key in use that this keyring can decrypt."""
    for row in session.scalars(_select_keys_newest_first().where(RegistryKey.signs_from <= now)):
        try:
            return _decrypt_signer(row.private_ciphertext, row.certificate, keyring)
        except UndecryptableError:
            continue
    return None


@lru_cache(maxsize=8)
def _decrypt_signer(ciphertext: str, certificate: str, keyring: Keyring) -> TokenSigner:
    parsed = x509.load_pem_x509_certificate(certificate.encode())
    return TokenSigner(
        key=ECKey.import_key(json.loads(keyring.decrypt(ciphertext))),
        kid=compute_libtrust_kid(parsed),
        # The chain contains one certificate: its DER encoding in base64, not base64url.
        x5c=[base64.b64encode(parsed.public_bytes(Encoding.DER)).decode()],
    )


def _store_new_key(
    signs_from: datetime, *, session: Session, keyring: Keyring, now: datetime
) -> RegistryKey:
    key = ECKey.generate_key(_CURVE)
    certificate = build_self_signed_certificate(
        cast("EllipticCurvePrivateKey", key.private_key), now=now
    )
    row = RegistryKey(
        kid=compute_libtrust_kid(certificate),
        certificate=certificate.public_bytes(Encoding.PEM).decode(),
        private_ciphertext=keyring.encrypt(json.dumps(key.as_dict(private=True))),
        created_at=now,
        signs_from=signs_from,
    )
    session.add(row)
    session.flush()  # Make the key visible in the same transaction.
    return row


def _get_state(row: RegistryKey, signing: str, now: datetime) -> KeyState:
    if row.signs_from > now:
        return KeyState.WAITING
    return KeyState.SIGNING if row.kid == signing else KeyState.FORMER
