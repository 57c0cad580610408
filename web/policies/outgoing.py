"""Function with which actions send messages to the URLs of destinations."""

from collections.abc import Sequence

from domain.delivery.destination_actions import Sending
from domain.delivery.outgoing.claims import Attempt
from domain.delivery.outgoing.signing import Message
from web.outgoing.client import OutgoingClient, attempt
from web.services import now, settings


def sending() -> Sending:
    """Return a function that sends a signed message to a URL."""
    return Sending(_send)


def _send(url: str, message: Message, secrets: Sequence[str]) -> Attempt:
    client = OutgoingClient.of(settings())
    try:
        return attempt(client, url, message, secrets, now=now())
    finally:
        client.close()
