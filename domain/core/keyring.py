"""Hashes and encrypts secrets for storage.

HKDF (RFC 5869) derives a key for hashing and a key for encryption from the master secret. Random
credentials need no slow hash, since nobody can reverse a keyed SHA-256 without the key. A keyring
can also contain older master secrets, so that a rotation loses no data.
"""

import base64
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from domain.core.randomness import generate_credential, is_well_formed

_FINGERPRINT_DIGITS = 16


class CredentialType(StrEnum):
    """The type of a credential. Its value is the credential's prefix."""

    ACCESS_TOKEN = "gba-"  # noqa: S105 - a prefix
    REFRESH_TOKEN = "gbr-"  # noqa: S105 - a prefix
    CLIENT_SECRET = "gbs-"  # noqa: S105 - a prefix
    PERSONAL_ACCESS_TOKEN = "gbp-"  # noqa: S105 - a prefix
    INTEGRATION_KEY = "gbk-"
    AUTHORIZATION_CODE = "gbc-"
    SIGN_IN = "gbi-"
    PUSHED_REQUEST = "gbq-"
    REGISTRATION = "gbg-"
    REGISTRY_NOTIFICATIONS = "gbn-"
    CALENDAR_FEED = "gbf-"
    EMAIL_CONFIRMATION = "gbe-"


class UndecryptableError(Exception):
    """Error for a ciphertext that no key can decrypt.

    This happens if the master secret was replaced instead of rotated.
    """


@dataclass(frozen=True)
class Credential:
    """A new secret: the text to show once, and the digest to store."""

    clear: str = field(repr=False)
    digest: bytes = field(repr=False)


class Keyring:
    """A set of keys that hash and encrypt secrets.

    The newest key hashes and encrypts; all keys verify and decrypt.
    """

    def __init__(self, master: str, *older: str) -> None:
        """Derive the keys from the master secrets.

        `master` is the current master secret, and `older` contains the previous master secrets,
        newest first.
        """
        masters = (master, *older)
        #: True if data may still be hashed or encrypted with an older key.
        self.has_older = bool(older)
        # Prepared hash objects are copied for each hash, since creating a hash object takes longer
        # than hashing a credential.
        self._hashes = tuple(
            hmac.new(_derive_key(each, b"gatebell credential digest"), digestmod="sha256")
            for each in masters
        )
        #: Fingerprints of the keys, newest first. They distinguish keys without revealing them.
        self.fingerprints = tuple(
            _derive_key(each, b"gatebell fingerprint").hex()[:_FINGERPRINT_DIGITS]
            for each in masters
        )
        self._derivation_keys = tuple(_derive_key(each, b"gatebell successor") for each in masters)
        fernets = [
            Fernet(base64.urlsafe_b64encode(_derive_key(each, b"gatebell encryption")))
            for each in masters
        ]
        self._newest_fernet, self._fernet = fernets[0], MultiFernet(fernets)

    def issue_credential(self, credential_type: CredentialType) -> Credential:
        """Return a new random credential."""
        clear = generate_credential(credential_type)
        return Credential(clear=clear, digest=self.compute_digest(clear))

    def derive_credentials(self, text: str, credential_type: CredentialType) -> tuple[str, ...]:
        """Return the credentials derived from a string with each key, newest key first.

        The same string always gives the same credentials. Without the key, the credentials cannot
        be distinguished from random credentials. Without the string, they cannot be predicted.
        """
        message = f"{credential_type} after {text}".encode("utf-8", "surrogatepass")
        seeds = (hmac.digest(key, message, "sha256") for key in self._derivation_keys)
        return tuple(generate_credential(credential_type, seed=seed) for seed in seeds)

    def compute_digest(self, text: str) -> bytes:
        """Return the keyed SHA-256 digest of a string (32 bytes), computed with the newest key."""
        return self.compute_digests(text)[0]

    def compute_digests(
        self, text: str, credential_type: CredentialType | None = None
    ) -> tuple[bytes, ...]:
        """Return the digests of a string, computed with each key, newest key first.

        A credential that is malformed for its type has no digest.
        """
        if credential_type is not None and not is_well_formed(text, prefix=credential_type):
            return ()
        encoded, found = text.encode("utf-8", "surrogatepass"), []
        for each in self._hashes:
            own = each.copy()
            own.update(encoded)
            found.append(own.digest())
        return tuple(found)

    def rehash_if_outdated(self, text: str, digest: bytes) -> bytes | None:
        """Return the digest with the newest key, or None if the given digest is up to date."""
        newest = self.compute_digest(text) if self.has_older else digest
        return None if hmac.compare_digest(newest, digest) else newest

    def matches_any_digest(self, text: str, digests: Sequence[bytes | None]) -> bool:
        """Return whether a string matches any of the digests, using constant-time comparison."""
        found = False
        for candidate in self.compute_digests(text):
            for digest in digests:
                found |= digest is not None and hmac.compare_digest(candidate, digest)
        return found

    def encrypt(self, text: str) -> str:
        """Return the encrypted text (AES-128-CBC with HMAC, as Fernet specifies)."""
        return self._fernet.encrypt(text.encode()).decode()

    def decrypt(self, ciphertext: str) -> str:
        """Return the decrypted text.

        Raise UndecryptableError if no key can decrypt it.
        """
        try:
            return self._fernet.decrypt(ciphertext.encode()).decode()
        except InvalidToken as error:
            raise UndecryptableError from error

    def is_encrypted_with_newest_key(self, ciphertext: str) -> bool:
        """Return whether the newest key can decrypt a ciphertext."""
        try:
            self._newest_fernet.decrypt(ciphertext.encode())
        except InvalidToken:
            return False
        return True


def _derive_key(master: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=b"gatebell", info=purpose).derive(
        master.encode()
    )
