"""Hands the deliveries of an endpoint to one worker at a time.

Those about the same alert or incident are sent in their order: while one waits to be tried again,
later ones wait behind it. Others go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import ColumnElement, Select, exists, func, select
from sqlalchemy.orm import Session

from domain.audit.events import Event, EventKind, EventSource, store_event
from domain.keyring import Keyring
from domain.outgoing import claims
from domain.outgoing.claims import CLAIM_LIFETIME, Attempt, Claim, Delivery, Failure
from domain.outgoing.retries import pause_after
from domain.outgoing.signing import Message
from domain.outgoing.signing_secrets import secrets_of
from domain.outgoing_urls import parse_outgoing_url
from domain.webhooks.delivery_states import DeliveryState
from domain.webhooks.endpoints import PauseReason, pause
from models import WebhookDelivery, WebhookEndpoint

#: A delivery that failed for so long is given up.
GIVE_UP_AFTER = timedelta(days=3)
#: The pauses of an endpoint grow no more after so many failures, so that it is not left alone for
#: hours when it is there again; those of a delivery do.
_MOST_COUNTED_FAILURES = 12
_GONE = 410
#: Threads that endpoints which failed last time do not get.
_RESERVED = 16


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How failures are treated."""

    #: From 0 to 1; it varies the pauses.
    share: float
    #: An endpoint that took nothing for so long is paused.
    pause_after: timedelta


def claim_due_endpoints(*, most: int, session: Session, now: datetime) -> Sequence[Claim]:
    """Claim endpoints that have something to be sent, those first that are well.

    Those that failed last time leave some threads to others: each may take its whole deadline.
    """
    due = _due(now)
    last = func.coalesce(WebhookEndpoint.last_delivered_at, WebhookEndpoint.created_at)
    well = due.where(WebhookEndpoint.tries == 0).order_by(last).limit(most)
    found = claims.claim_all(WebhookEndpoint, well, session=session, now=now)
    left = max(most - len(found) - _RESERVED, 0)
    failing = due.where(WebhookEndpoint.tries > 0).order_by(WebhookEndpoint.next_try_at)
    others = claims.claim_all(WebhookEndpoint, failing.limit(left), session=session, now=now)
    return [*found, *others]


def has_due_endpoints(*, session: Session, now: datetime) -> bool:
    """Return whether there is something to claim; it reads a few rows and writes nothing."""
    return session.scalar(_due(now).limit(1)) is not None


def _due(now: datetime) -> Select[int]:
    has_deliveries = exists().where(
        WebhookDelivery.endpoint_id == WebhookEndpoint.id, *_may_be_sent(now)
    )
    return select(WebhookEndpoint.id).where(*claims.is_due(WebhookEndpoint, now), has_deliveries)


def _may_be_sent(now: datetime) -> tuple[ColumnElement[bool], ...]:
    is_waiting = WebhookDelivery.state == DeliveryState.WAITING.value
    return is_waiting, WebhookDelivery.next_try_at <= now


def next_delivery(
    claim: Claim, *, session: Session, keyring: Keyring, now: datetime
) -> Delivery | None:
    """Renew a claim and return the next delivery, or give the claim up and return None.

    There is none if all was sent, or if the endpoint was paused, removed, or claimed by another.
    """
    endpoint = session.scalar(
        select(WebhookEndpoint)
        .where(*claims.is_ours(WebhookEndpoint, claim), WebhookEndpoint.paused_at.is_(None))
        .with_for_update()
    )
    found = _first(endpoint.id, session=session, now=now) if endpoint else None
    if endpoint is None or found is None:
        release(claim, session=session)
        return None
    endpoint.claimed_until = now + CLAIM_LIFETIME
    return Delivery(
        entry_id=found.id,
        url=endpoint.url,
        message=Message(id=found.message_id, body=found.body.encode()),
        secrets=secrets_of(endpoint, keyring=keyring, now=now),
    )


def _first(endpoint_id: int, *, session: Session, now: datetime) -> WebhookDelivery | None:
    mine = WebhookDelivery.endpoint_id == endpoint_id
    due = (
        select(WebhookDelivery)
        .where(mine, *_may_be_sent(now))
        .order_by(WebhookDelivery.next_try_at, WebhookDelivery.id)
        .limit(1)
    )
    while (found := session.scalar(due)) is not None:
        before = session.scalar(
            select(WebhookDelivery.next_try_at)
            .where(
                mine,
                WebhookDelivery.state == DeliveryState.WAITING.value,
                WebhookDelivery.order_key == found.order_key,
                WebhookDelivery.id < found.id,
            )
            .order_by(WebhookDelivery.id)
            .limit(1)
        )
        if before is None:
            return found
        # An earlier one of the same alert has to go first; of equal times the lower id is first.
        found.next_try_at = before
        session.flush()
    return None


def release(claim: Claim, *, session: Session) -> None:
    """Give up a claim, so that others need not wait for its end."""
    claims.release(WebhookEndpoint, claim, session=session)


def record_delivered(
    claim: Claim, delivery: Delivery, attempt: Attempt, *, session: Session, now: datetime
) -> None:
    """Record that a delivery was taken, even if the claim was lost meanwhile."""
    row = session.get(WebhookDelivery, delivery.entry_id, with_for_update=True)
    if row is not None:
        note_attempt(row, attempt, now=now)
        row.state, row.next_try_at = DeliveryState.DELIVERED.value, None
    claims.record_success(WebhookEndpoint, claim, session=session, now=now)


def record_failure(
    claim: Claim,
    delivery: Delivery | None,
    attempt: Attempt,
    *,
    retries: RetryPolicy,
    session: Session,
    now: datetime,
) -> Failure | None:
    """Schedule the next attempt of an endpoint and of a delivery; return None if it was lost.

    What has failed for days is given up, and an endpoint that took nothing for days is paused.
    """
    after = partial(pause_after, share=retries.share, asked_seconds=attempt.asked_seconds)
    failure = claims.record_failure(
        WebhookEndpoint,
        claim,
        attempt,
        pause=lambda failures: after(min(failures, _MOST_COUNTED_FAILURES)),
        session=session,
        now=now,
    )
    if failure is None:
        return None
    row = delivery and session.get(WebhookDelivery, delivery.entry_id, with_for_update=True)
    if row:
        note_attempt(row, attempt, now=now)
        row.next_try_at = max(failure.next_try_at, now + after(row.tries))
        if now - row.queued_at >= GIVE_UP_AFTER:
            row.state, row.next_try_at = DeliveryState.FAILED.value, None
    if reason := _pause_reason(failure, attempt, retries.pause_after, now):
        endpoint = session.get_one(WebhookEndpoint, claim.destination_id, with_for_update=True)
        pause(endpoint, reason, session=session, now=now)
        details = {"change": "paused", "webhook_id": endpoint.id, "reason": reason.value}
        subject = parse_outgoing_url(endpoint.url).shown
        event = Event(kind=EventKind.WEBHOOK_CHANGED, subject=subject, details=details)
        store_event(event, EventSource(), session=session, now=now)
    return failure


def _pause_reason(
    failure: Failure, attempt: Attempt, patience: timedelta, now: datetime
) -> PauseReason | None:
    if attempt.status == _GONE:
        return PauseReason.GONE
    is_long = now - failure.failing_since >= patience
    return PauseReason.FAILURES if is_long else None


def note_attempt(row: WebhookDelivery, attempt: Attempt, *, now: datetime) -> None:
    """Write the result of an attempt into the log."""
    row.tries += 1
    row.last_try_at = now
    row.status_code, row.duration = attempt.status, attempt.milliseconds
    row.response = attempt.response.decode(errors="replace").replace("\x00", "\ufffd")
    row.error = attempt.problem
