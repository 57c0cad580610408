"""The delivery log of an endpoint, and deliveries that are sent again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from domain.alerts.reading.payload_fields import pretty
from domain.database.paging import Page, Slice, fetch_page
from domain.errors import ConflictError, NotFoundError
from domain.outgoing.claims import Attempt
from domain.outgoing.signing import Message, unsigned_headers
from domain.webhooks.deliveries import note_attempt
from domain.webhooks.delivery_states import DeliveryState
from domain.webhooks.events import TESTED
from domain.webhooks.queueing import new_delivery
from models import WebhookDelivery, WebhookEndpoint

_RECENT = 5


@dataclass(frozen=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries of an endpoint a list has."""

    endpoint_id: int
    state: DeliveryState | None = None


@dataclass(frozen=True, kw_only=True)
class DeliveryView:
    """A delivery and the result of its last attempt."""

    id: int
    message_id: str
    event: str
    state: DeliveryState
    created_at: datetime
    tries: int
    last_try_at: datetime | None
    next_try_at: datetime | None
    #: Of the last response, if there was one.
    status_code: int | None
    #: Of the last attempt, in milliseconds.
    duration: int | None
    error: str | None
    #: As it is sent; None in lists.
    body: str | None = None
    #: The first bytes of the last response; None in lists.
    response: str | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the last attempt without its signatures."""
        return unsigned_headers(self.message_id, now=self.last_try_at or self.created_at)

    @property
    def pretty_body(self) -> str:
        """The body with indentation."""
        return pretty((self.body or "").encode())


def list_deliveries(wanted: DeliveryFilter, part: Slice, *, session: Session) -> Page[DeliveryView]:
    """Return a page of the deliveries of an endpoint, the newest first."""
    statement = (
        select(WebhookDelivery)
        .where(WebhookDelivery.endpoint_id == wanted.endpoint_id)
        .options(defer(WebhookDelivery.body), defer(WebhookDelivery.response))
    )
    if wanted.state is not None:
        statement = statement.where(WebhookDelivery.state == wanted.state.value)
    return fetch_page(
        statement, WebhookDelivery.id, part, session=session, view=lambda row: _view(row[0])
    )


def recent_deliveries(endpoint_id: int, *, session: Session) -> Sequence[DeliveryView]:
    """Return the newest deliveries of an endpoint."""
    wanted = DeliveryFilter(endpoint_id=endpoint_id)
    return list_deliveries(wanted, Slice(size=_RECENT), session=session).items


def get_delivery(endpoint_id: int, delivery_id: int, *, session: Session) -> DeliveryView:
    """Return a delivery with its body and the last response, or raise NotFoundError."""
    row = _row(endpoint_id, delivery_id, session)
    return _view(row, body=row.body, response=row.response)


def _row(endpoint_id: int, delivery_id: int, session: Session) -> WebhookDelivery:
    row = session.get(WebhookDelivery, delivery_id, with_for_update=True)
    if row is None or row.endpoint_id != endpoint_id:
        raise NotFoundError("Delivery not found. It may have been removed from the log.")
    return row


def _view(
    row: WebhookDelivery, *, body: str | None = None, response: str | None = None
) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        message_id=row.message_id,
        event=row.event,
        state=DeliveryState(row.state),
        created_at=row.created_at,
        tries=row.tries,
        last_try_at=row.last_try_at,
        next_try_at=row.next_try_at,
        status_code=row.status_code,
        duration=row.duration,
        error=row.error,
        body=body,
        response=response,
    )


def send_again(endpoint_id: int, delivery_id: int, *, session: Session, now: datetime) -> None:
    """Queue a delivery once more, with the id that it had, without regard to others.

    One that still waits is tried at once.
    """
    row = _row(endpoint_id, delivery_id, session)
    endpoint = session.get_one(WebhookEndpoint, endpoint_id, with_for_update=True)
    if endpoint.paused_at is not None:
        raise ConflictError("The webhook is paused: resume it first.")
    if row.state != DeliveryState.WAITING.value:
        row.state, row.order_key, row.tries = DeliveryState.WAITING.value, None, 0
    row.queued_at = row.next_try_at = now
    endpoint.next_try_at = None
    session.flush()


def store_test(
    endpoint_id: int, message: Message, attempt: Attempt, *, session: Session, now: datetime
) -> int | None:
    """Write a test message that was sent into the log; return its id, or None without endpoint."""
    endpoint = session.get(WebhookEndpoint, endpoint_id)
    if endpoint is None:
        return None
    body = message.body.decode()
    row = WebhookDelivery(**new_delivery(endpoint, TESTED, body, order_key=None, now=now))
    row.message_id, row.next_try_at = message.id, None
    is_taken = attempt.problem is None
    row.state = (DeliveryState.DELIVERED if is_taken else DeliveryState.FAILED).value
    note_attempt(row, attempt, now=now)
    session.add(row)
    session.flush()
    return row.id
