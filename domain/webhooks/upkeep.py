"""Bounds what waits for endpoints and what the delivery log keeps, in slices."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from domain.outgoing.destinations import Between
from domain.webhooks.endpoints import GIVE_UP_AFTER, WEBHOOKS
from domain.webhooks.types import DeliveryState
from models import WebhookDelivery, WebhookEndpoint

#: Of an endpoint: the oldest of more that wait are given up, and the oldest of more are removed.
MOST_WAITING, MOST_KEPT = 10_000, 20_000
_SLICE = 500
_TOO_LONG = "It waited for three days."
_TOO_MANY = f"More than {MOST_WAITING:,} deliveries waited."
_IS_WAITING = WEBHOOKS.queue.is_waiting


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """What waits for the endpoints of all projects, and how they are."""

    deliveries: int
    oldest: datetime | None
    #: Endpoints that failed last time, and those that were paused because of it.
    failing: int
    paused: int


def backlog(*, session: Session) -> Backlog:
    """Return what waits in all."""
    deliveries, oldest = session.execute(
        select(func.count(), func.min(WebhookDelivery.queued_at)).where(_IS_WAITING)
    ).one()
    failing = select(func.count()).where(
        WebhookEndpoint.failing_since.is_not(None), WebhookEndpoint.paused_at.is_(None)
    )
    paused = select(func.count()).where(
        WebhookEndpoint.pause_reason.is_not(None), WebhookEndpoint.pause_reason != "user"
    )
    return Backlog(
        deliveries=deliveries,
        oldest=oldest,
        failing=session.scalar(failing) or 0,
        paused=session.scalar(paused) or 0,
    )


def give_up_old(
    *, session: Session, now: datetime, between: Between, most: int = MOST_WAITING
) -> int:
    """Give up deliveries that waited too long, and the oldest of too many; return how many.

    An endpoint that is down or paused does not try each of them.
    """
    # A while after the last attempt that can be due.
    before = now - GIVE_UP_AFTER - timedelta(hours=4)
    total = _give_up(WebhookDelivery.queued_at < before, _TOO_LONG, session, between)
    for _, surplus in WEBHOOKS.surplus(most, _IS_WAITING, session=session):
        total += _give_up(surplus, _TOO_MANY, session, between)
    return total


def _give_up(
    condition: ColumnElement[bool], reason: str, session: Session, between: Between
) -> int:
    some = select(WebhookDelivery.id).where(_IS_WAITING, condition).limit(_SLICE)
    total = 0
    while ids := session.scalars(some).all():
        session.execute(
            update(WebhookDelivery)
            .where(WebhookDelivery.id.in_(ids), _IS_WAITING)
            .values(
                state=DeliveryState.FAILED.value,
                next_try_at=None,
                error=func.coalesce(WebhookDelivery.error, reason),
            )
            .execution_options(synchronize_session=False)
        )
        between()
        total += len(ids)
    return total


def prune_log(
    *, before: datetime, session: Session, between: Between, most: int = MOST_KEPT
) -> int:
    """Remove deliveries that are done and old, the oldest of too many, and those of no endpoint."""

    def remove(condition: ColumnElement[bool]) -> int:
        return WEBHOOKS.remove_entries(condition, session=session, between=between)

    is_done = ~_IS_WAITING
    total = remove(is_done & (WebhookDelivery.created_at < before))
    for _, surplus in WEBHOOKS.surplus(most, is_done, session=session):
        total += remove(surplus)
    return total + remove(WEBHOOKS.orphans())
