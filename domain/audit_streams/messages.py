"""Messages to destinations of the audit log."""

from collections.abc import Mapping
from datetime import datetime

import orjson

from domain.access.actor import Actor
from domain.audit.events import EventKind
from domain.audit.log import in_words
from domain.clock import written
from domain.outgoing.signing import Message, new_message_id


def message_of(message_id: str, shown: Mapping[str, object]) -> Message:
    """Return the message for an event, given as the API shows it."""
    body = {"type": shown["event_name"], "timestamp": shown["created_at"], "data": shown}
    return Message(id=f"evt_{message_id}", body=orjson.dumps(body))


def message_of_test(actor: Actor, *, now: datetime) -> Message:
    """Return a message that only shows that a destination is reached."""
    kind, message_id = EventKind.AUDIT_STREAM_TESTED.value, new_message_id()
    shown = {
        "id": message_id,
        "author_id": -1 if actor.id is None else actor.id,
        "entity_id": None,
        "entity_type": "Instance",
        "event_name": kind,
        "details": {
            "author_name": actor.name,
            "custom_message": in_words(kind),
        },
        "created_at": written(now),
    }
    return message_of(message_id, shown)
