"""Queues messages about alerts for the webhooks of projects, and delivers them."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from domain.alerts.following.changes import Change
from domain.outgoing.claims import Attempt, Claim, Delivery, Failure
from domain.webhooks import deliveries
from domain.webhooks.deliveries import RetryPolicy
from domain.webhooks.queueing import queue_alert_changes
from web.jobs.current_settings import current_settings
from web.jobs.destinations import DestinationWorker
from web.settings.policies import reading
from web.settings.reader import Settings


def queue_changes(
    changes: Sequence[Change], *, session: Session, now: datetime, settings: Settings
) -> None:
    """Queue messages about changes of alerts."""
    queue_alert_changes(
        changes,
        base_url=settings.base_url,
        reading=reading(settings),
        session=session,
        now=now,
    )


class WebhookDeliveries(DestinationWorker):
    """The deliveries to webhooks by one worker."""

    name = "webhooks"
    NAME = "webhook"
    LOG = logging.getLogger("gatebell.webhooks")
    NUMBER = "webhook_id"
    NOT_DELIVERED = "webhook not delivered, trying again later"
    #: One that is slow, and has much to take, lets others have its thread.
    TURN_SECONDS = 20.0

    def has_due(self, session: Session) -> bool:
        """Return whether a delivery is to be sent."""
        return deliveries.has_due_endpoints(session=session, now=self.clock())

    def claim_due(self, session: Session, most: int) -> Sequence[Claim]:
        """Claim endpoints."""
        return deliveries.claim_due_endpoints(most=most, session=session, now=self.clock())

    def next_delivery(self, claim: Claim, session: Session) -> Delivery | None:
        """Return the next delivery."""
        return deliveries.next_delivery(
            claim, session=session, keyring=self.keyring, now=self.clock()
        )

    def release(self, claim: Claim, session: Session) -> None:
        """Give up a claim."""
        deliveries.release(claim, session=session)

    def record_delivered(
        self, claim: Claim, delivery: Delivery, attempt: Attempt, session: Session
    ) -> None:
        """Write the success into the log."""
        deliveries.record_delivered(claim, delivery, attempt, session=session, now=self.clock())

    def record_failure(
        self, claim: Claim, delivery: Delivery | None, attempt: Attempt, session: Session
    ) -> Failure | None:
        """Write the failure into the log, and schedule the next attempt."""
        days = current_settings(self.settings, session=session).webhook_pause_days
        retries = RetryPolicy(share=self.share(), pause_after=timedelta(days=days))
        return deliveries.record_failure(
            claim, delivery, attempt, retries=retries, session=session, now=self.clock()
        )
