"""Messages to destinations of the audit log, signed as Standard Webhooks specifies.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import orjson
from standardwebhooks.webhooks import Webhook

from domain.audit.events import Actor, EventKind
from domain.audit.log import in_words
from domain.clock import written
from domain.randomness import random_base64, random_hex

_PREFIX = "whsec_"
_SECRET_BYTES = 32
_MESSAGE_ID_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Message:
    """An event on its way; `id` stays the same however often it is sent."""

    id: str
    body: bytes = field(repr=False)


def new_message_id() -> str:
    """Return a random id for a message, as it is stored."""
    return random_hex(_MESSAGE_ID_BYTES)


def new_secret() -> str:
    """Return a random secret of 256 bits: `whsec_` and base64."""
    return _PREFIX + random_base64(_SECRET_BYTES)


def message_of(message_id: str, shown: Mapping[str, object]) -> Message:
    """Return the message for an event, given as the API shows it."""
    body = {"type": shown["event_name"], "timestamp": shown["created_at"], "data": shown}
    return Message(id=f"evt_{message_id}", body=orjson.dumps(body))


def message_of_test(actor: Actor | None, *, now: datetime) -> Message:
    """Return a message that only shows that a destination is reached."""
    kind, message_id = EventKind.AUDIT_STREAM_TESTED.value, new_message_id()
    shown = {
        "id": message_id,
        "author_id": actor.id if actor else -1,
        "entity_id": None,
        "entity_type": "Instance",
        "event_name": kind,
        "details": {
            "author_name": actor.name if actor else "",
            "custom_message": in_words(kind),
        },
        "created_at": written(now),
    }
    return message_of(message_id, shown)


def signed_headers(message: Message, secrets: Sequence[str], *, now: datetime) -> dict[str, str]:
    """Return the headers of an attempt, with a signature by each secret that is in force."""
    text = message.body.decode()
    signatures = [Webhook(secret).sign(message.id, now, text) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
