"""Attempts to deliver a signed message."""

from collections.abc import Sequence
from datetime import datetime

from domain.outgoing.claims import Attempt
from domain.outgoing.errors import OutgoingError
from domain.outgoing.signing import Message, signed_headers
from domain.outgoing_urls import parse_outgoing_url
from web.outgoing.client import OutgoingClient


def attempt(
    client: OutgoingClient, url: str, message: Message, secrets: Sequence[str], *, now: datetime
) -> Attempt:
    """Send a message once, and return what came of it."""
    headers = signed_headers(message, secrets, now=now)
    try:
        answer = client.post(parse_outgoing_url(url), message.body, headers)
    except OutgoingError as error:
        return Attempt(problem=str(error))
    return Attempt(
        problem=answer.problem,
        asked_seconds=answer.retry_after,
        status=answer.status,
        response=answer.beginning,
        milliseconds=round(answer.seconds * 1000),
    )
