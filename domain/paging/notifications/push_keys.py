"""The key pair that identifies this instance to the push services of browsers (RFC 8292).

All hosts share the key. Each subscription of a browser is bound to the public key, so the key is
never rotated. A new key is created only if no known SECRET_KEY can decrypt the stored key.
"""

import json
from datetime import datetime
from functools import lru_cache

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import ECKey
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.database.locks import AdvisoryLock
from domain.core.keyring import Keyring, UndecipherableError
from domain.paging.notifications.push_subscriptions import encode_base64url
from models import PushKey

_CURVE = "P-256"


def get_or_create_push_key(*, session: Session, keyring: Keyring, now: datetime) -> ECKey:
    """Return the key pair. The first call creates it, so the transaction must allow writes."""
    found = _find_push_key(session, keyring)
    if found is not None:
        return found
    AdvisoryLock.PUSH_KEYS.acquire(session)
    # Another process may have created the key before this process acquired the lock.
    found = _find_push_key(session, keyring)
    if found is not None:
        return found
    key = ECKey.generate_key(_CURVE)
    ciphertext = keyring.encrypt(json.dumps(key.as_dict(private=True)))
    session.add(PushKey(private_ciphertext=ciphertext, created_at=now))
    session.flush()  # Make the key visible in the same transaction.
    return key


def encode_public_key(key: ECKey) -> str:
    """Return the public key as browsers expect it: an uncompressed point in base64url."""
    public = key.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return encode_base64url(public)


def _find_push_key(session: Session, keyring: Keyring) -> ECKey | None:
    """Return the newest key that this keyring can decrypt."""
    for ciphertext in session.scalars(
        select(PushKey.private_ciphertext).order_by(PushKey.id.desc())
    ):
        try:
            return _decrypt_key(ciphertext, keyring)
        except UndecipherableError:
            continue
    return None


@lru_cache(maxsize=8)
def _decrypt_key(ciphertext: str, keyring: Keyring) -> ECKey:
    return ECKey.import_key(json.loads(keyring.decrypt(ciphertext)))
