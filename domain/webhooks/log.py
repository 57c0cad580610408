"""The delivery log of an endpoint, and deliveries that are sent again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from domain.database.paging import Page, Slice, fetch_page
from domain.errors import ConflictError, NotFoundError
from domain.outgoing.claims import Attempt
from domain.outgoing.signing import Message, unsigned_headers
from domain.webhooks.endpoints import note_attempt
from domain.webhooks.queueing import new_delivery
from domain.webhooks.types import TESTED, DeliveryState, WebhookDelivery, WebhookDeliveryDetail
from models import WebhookDelivery as DeliveryRow
from models import WebhookEndpoint

_RECENT = 5


@dataclass(frozen=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries of an endpoint a list has."""

    endpoint_id: int
    state: DeliveryState | None = None


def list_deliveries(
    wanted: DeliveryFilter, part: Slice, *, session: Session
) -> Page[WebhookDelivery]:
    """Return a page of the deliveries of an endpoint, the newest first."""
    statement = (
        select(DeliveryRow)
        .where(DeliveryRow.endpoint_id == wanted.endpoint_id)
        .options(defer(DeliveryRow.body), defer(DeliveryRow.response))
    )
    if wanted.state is not None:
        statement = statement.where(DeliveryRow.state == wanted.state.value)
    return fetch_page(
        statement,
        DeliveryRow.id,
        part,
        session=session,
        view=lambda row: WebhookDelivery.model_validate(row[0]),
    )


def recent_deliveries(endpoint_id: int, *, session: Session) -> Sequence[WebhookDelivery]:
    """Return the newest deliveries of an endpoint."""
    wanted = DeliveryFilter(endpoint_id=endpoint_id)
    return list_deliveries(wanted, Slice(size=_RECENT), session=session).items


def get_delivery(endpoint_id: int, delivery_id: int, *, session: Session) -> WebhookDeliveryDetail:
    """Return a delivery with its body and the last response, or raise NotFoundError."""
    row = _row(endpoint_id, delivery_id, session)
    return WebhookDeliveryDetail(
        **dict(WebhookDelivery.model_validate(row)),
        headers=unsigned_headers(row.message_id, now=row.last_try_at or row.created_at),
        body=row.body,
        response=row.response,
    )


def _row(endpoint_id: int, delivery_id: int, session: Session) -> DeliveryRow:
    row = session.get(DeliveryRow, delivery_id, with_for_update=True)
    if row is None or row.endpoint_id != endpoint_id:
        raise NotFoundError("Delivery not found. It may have been removed from the log.")
    return row


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
    row = DeliveryRow(**new_delivery(endpoint, TESTED, body, order_key=None, now=now))
    row.message_id, row.next_try_at = message.id, None
    is_taken = attempt.problem is None
    row.state = (DeliveryState.DELIVERED if is_taken else DeliveryState.FAILED).value
    note_attempt(row, attempt, now=now)
    session.add(row)
    session.flush()
    return row.id
