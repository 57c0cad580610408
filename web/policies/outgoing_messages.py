"""Function that actions use to send messages to the URLs of destinations."""

from collections.abc import Sequence

from domain.delivery.destination_actions import ImmediateSender
from domain.delivery.outgoing.attempts import DeliveryAttempt
from domain.delivery.outgoing.signing import OutgoingMessage
from web.outgoing.client import OutgoingClient, attempt_delivery
from web.services import get_current_time, get_settings


def build_message_sender() -> ImmediateSender:
    """Return a function that sends a signed message to a URL."""
    return ImmediateSender(_send_message)


def _send_message(url: str, message: OutgoingMessage, secrets: Sequence[str]) -> DeliveryAttempt:
    client = OutgoingClient.from_settings(get_settings())
    try:
        return attempt_delivery(client, url, message, secrets, now=get_current_time())
    finally:
        client.close_connection()
