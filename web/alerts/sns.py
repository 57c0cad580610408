"""Reads requests of Amazon SNS, which have a media type of their own and ask to be confirmed."""

from domain.alerts.reading.body import read_object
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.receiving import sns
from domain.outgoing.errors import OutgoingError
from domain.outgoing_urls import OutgoingUrl
from web.outgoing.client import OutgoingClient
from web.services import reading, settings


def asks_no_alert(kind: str | None) -> bool:
    """Return whether a request of SNS is about a subscription."""
    return kind in {sns.CONFIRMATION, sns.UNSUBSCRIBED}


def read_subscription(body: bytes, kind: str) -> ParsedBody:
    """Confirm a subscription, or note that it has ended; raise the errors of a receiver."""
    payload = read_object(body, nesting_limit=reading().nesting_limit)
    if kind == sns.UNSUBSCRIBED:
        return sns.note_end(payload)
    return sns.confirm_subscription(payload, get=_get)


def _get(url: OutgoingUrl) -> tuple[int, bytes]:
    try:
        answer = OutgoingClient.of(settings()).get(url)
    except OutgoingError as error:
        raise sns.RefusedSubscriptionError(f"{url.host} was not reached: {error}.") from error
    return answer.status, answer.beginning
