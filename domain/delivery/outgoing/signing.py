"""Messages that are signed according to Standard Webhooks.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from standardwebhooks.webhooks import Webhook

from domain.core.errors import InvalidError
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_base64, generate_random_hex
from models.destination import Destination

_KEY_PREFIX = "whsec_"
_SECRET_BYTES = 32
_MESSAGE_ID_BYTES = 16
MAX_SECRET_OVERLAP = timedelta(days=90)
DEFAULT_SECRET_OVERLAP = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class OutgoingMessage:
    """A message to send. Each attempt uses the same `id`."""

    id: str
    body: bytes = field(repr=False)


def generate_message_id() -> str:
    """Return a random ID for a message, without the prefix that is added when it is sent."""
    return generate_random_hex(_MESSAGE_ID_BYTES)


def generate_signing_secret() -> str:
    """Return a random secret of 256 bits: `whsec_`, followed by base64."""
    return _KEY_PREFIX + generate_random_base64(_SECRET_BYTES)


def build_signed_headers(
    message: OutgoingMessage, secrets: Sequence[str], *, now: datetime
) -> dict[str, str]:
    """Return the headers for a delivery attempt, with a signature for each secret."""
    text = message.body.decode()
    signatures = [Webhook(secret).sign(message.id, now, text) for secret in secrets]
    return {
        **build_unsigned_headers(message.id, now=now),
        "webhook-signature": " ".join(signatures),
    }


def build_unsigned_headers(message_id: str, *, now: datetime) -> dict[str, str]:
    """Return the headers for a delivery attempt, without signatures."""
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
    }


def list_signing_secrets(row: Destination, *, keyring: Keyring, now: datetime) -> list[str]:
    """Return the signing secrets of a destination, newest first."""
    found = [keyring.decrypt(row.secret_ciphertext)]
    previous, ends = row.previous_secret_ciphertext, get_previous_secret_expiry(row, now=now)
    if previous is not None and ends is not None:
        found.append(keyring.decrypt(previous))
    return found


def get_previous_secret_expiry(row: Destination, *, now: datetime) -> datetime | None:
    """Return the time at which the previous secret expires, or None if there is no such secret."""
    ends = row.previous_secret_expires_at
    return ends if ends is not None and ends > now else None


def replace_signing_secret(
    row: Destination, *, previous_until: datetime, keyring: Keyring, now: datetime
) -> str:
    """Create a new secret.

    Messages are also signed with the old secret until `previous_until`, which may be now. An even
    older secret expires immediately, so there are never more than two secrets. Raise InvalidError
    if the overlap is too long.
    """
    if previous_until > now + MAX_SECRET_OVERLAP:
        raise InvalidError(
            f"The old secret can remain valid for at most {MAX_SECRET_OVERLAP.days} days.",
            field="previous_secret_expires_at",
        )
    secret, keeps = generate_signing_secret(), previous_until > now
    row.previous_secret_ciphertext = row.secret_ciphertext if keeps else None
    row.previous_secret_expires_at = previous_until if keeps else None
    row.secret_ciphertext = keyring.encrypt(secret)
    return secret
