"""Messages that only show that an endpoint is reached."""

from datetime import datetime

from domain.outgoing.signing import Message, new_message_id
from domain.webhooks.events import TESTED
from domain.webhooks.payloads import MessageProject, body_of


def message_of_test(project: MessageProject, *, now: datetime) -> Message:
    """Return a message that names the project and nothing else."""
    return Message(id=f"msg_{new_message_id()}", body=body_of(TESTED, now, project).encode())
