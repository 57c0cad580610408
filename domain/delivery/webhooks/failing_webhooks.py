"""State of the queue of webhooks, and webhooks whose last delivery failed."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update
from domain.core.keyring import Keyring
from domain.delivery.destination_queues import (
    get_destination_queue_state,
    list_failing_destinations,
)
from domain.delivery.queue import FailingDestination, QueueState, read_queue_state
from domain.delivery.webhooks.endpoints import WEBHOOK_KIND
from domain.delivery.webhooks.types import DeliveryState
from models import Project, WebhookDelivery, WebhookEndpoint, WebhookIncidentChange

_GIVEN_UP_REASON = "Canceled: an administrator gave up the delivery."


def get_webhook_queue_state(*, session: Session) -> QueueState:
    """Return the state of the queue of deliveries, and of incident changes without deliveries."""
    deliveries = get_destination_queue_state(WEBHOOK_KIND, session=session)
    changes = read_queue_state(
        since=WebhookIncidentChange.created_at,
        has_failed=WebhookIncidentChange.next_try_at.is_not(None),
        session=session,
    )
    return QueueState(
        waiting=deliveries.waiting + changes.waiting,
        oldest_at=min(filter(None, (deliveries.oldest_at, changes.oldest_at)), default=None),
        failing=deliveries.failing + changes.failing,
    )


def list_failing_webhooks(
    *, session: Session, keyring: Keyring, now: datetime
) -> Sequence[FailingDestination]:
    """Return the webhooks whose last delivery failed, with the paths of their projects."""
    owners = session.execute(
        select(WebhookEndpoint.id, Project.path)
        .join(Project, Project.id == WebhookEndpoint.project_id)
        .where(WebhookEndpoint.failing_since.is_not(None))
    )
    paths = {row.id: row.path for row in owners}
    return list_failing_destinations(
        WEBHOOK_KIND, owners=paths, session=session, keyring=keyring, now=now
    )


def _lock_endpoint(webhook_id: int, session: Session) -> WebhookEndpoint | None:
    # Workers lock the endpoint before its deliveries as well.
    return session.get(WebhookEndpoint, webhook_id, with_for_update=True, populate_existing=True)


def retry_webhook(webhook_id: int, *, session: Session, now: datetime) -> None:
    """Make the queued deliveries of a webhook due. Deliveries about an alert stay in order."""
    endpoint = _lock_endpoint(webhook_id, session)
    if endpoint is None:
        return
    endpoint.next_try_at = None
    session.flush()
    session.execute(
        build_bulk_update(WebhookDelivery)
        .where(
            WebhookDelivery.endpoint_id == webhook_id,
            WEBHOOK_KIND.queue.is_waiting,
            WebhookDelivery.next_try_at > now,
        )
        .values(next_try_at=now)
    )


def give_up_deliveries(webhook_id: int, *, session: Session) -> int:
    """Give up the queued deliveries of a webhook, and return their number.

    They stay in the log of the webhook, where maintainers can send them again.
    """
    if _lock_endpoint(webhook_id, session) is None:
        return 0
    given_up = session.execute(
        build_bulk_update(WebhookDelivery)
        .where(WebhookDelivery.endpoint_id == webhook_id, WEBHOOK_KIND.queue.is_waiting)
        .values(
            state=DeliveryState.FAILED.value,
            next_try_at=None,
            error=func.coalesce(WebhookDelivery.error, _GIVEN_UP_REASON),
        )
        .returning(WebhookDelivery.id)
    )
    return len(given_up.all())
