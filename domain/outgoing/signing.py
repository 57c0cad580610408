"""Messages signed as Standard Webhooks specifies.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from standardwebhooks.webhooks import Webhook

from domain.randomness import random_base64, random_hex

_PREFIX = "whsec_"
_SECRET_BYTES = 32
_MESSAGE_ID_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message on its way; `id` stays the same however often it is sent."""

    id: str
    body: bytes = field(repr=False)


def new_message_id() -> str:
    """Return a random id for a message, as it is stored."""
    return random_hex(_MESSAGE_ID_BYTES)


def new_secret() -> str:
    """Return a random secret of 256 bits: `whsec_` and base64."""
    return _PREFIX + random_base64(_SECRET_BYTES)


def signed_headers(message: Message, secrets: Sequence[str], *, now: datetime) -> dict[str, str]:
    """Return the headers of an attempt, with a signature by each secret that is in force."""
    text = message.body.decode()
    signatures = [Webhook(secret).sign(message.id, now, text) for secret in secrets]
    return {
        **unsigned_headers(message.id, now=now),
        "webhook-signature": " ".join(signatures),
    }


def unsigned_headers(message_id: str, *, now: datetime) -> dict[str, str]:
    """Return the headers of an attempt without its signatures."""
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
    }
