"""Queues messages about alerts for the webhooks of projects, and delivers them."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from domain.alerts.following.changes import Change
from domain.outgoing.claims import Attempt, Claim, Delivery, Failure
from domain.webhooks import deliveries
from domain.webhooks.deliveries import RetryPolicy
from domain.webhooks.incidents import (
    has_due_incidents,
    postpone_incident_change,
    queue_incident_changes,
    take_incident_changes,
)
from domain.webhooks.queueing import queue_alert_changes
from web.jobs.current_settings import current_settings
from web.jobs.destinations import DestinationWorker
from web.settings.policies import reading
from web.settings.reader import Settings

#: Changes of incidents in one transaction.
_INCIDENTS = 100


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

    def run_due(self) -> int:
        """Queue messages about incidents, and send everything that is due now."""
        self._queue_incidents()
        return super().run_due()

    def look(self) -> int:
        """Queue messages about incidents, and begin to send what is due."""
        self._queue_incidents()
        return super().look()

    def _queue_incidents(self) -> None:
        with Session(self.reading) as session:
            if not has_due_incidents(session=session, now=self.clock()):
                return
        while self._queue_batch(_INCIDENTS) and not self.is_stopped.is_set():
            pass

    def _queue_batch(self, limit: int) -> int:
        """Queue messages about changes of incidents; return how many were taken."""
        taken: list[int] = []
        try:
            with Session(self.engine) as session, session.begin():
                now = self.clock()
                changes = take_incident_changes(session=session, now=now, limit=limit)
                taken = [each.id for each in changes]
                base_url = self.settings.base_url
                queue_incident_changes(changes, base_url=base_url, session=session, now=now)
        except Exception as error:
            if isinstance(error, OperationalError):
                raise  # the database is unavailable: nothing is wrong with the changes
            self._after_failure(taken, error)
        return len(taken)

    def _after_failure(self, taken: Sequence[int], error: Exception) -> None:
        """Try changes one by one, so that one that fails holds up only its own incident."""
        if len(taken) > 1:
            for _ in taken:
                self._queue_batch(1)
            return
        with Session(self.engine) as session, session.begin():
            for change_id in taken:
                postpone_incident_change(change_id, session=session, now=self.clock())
        self.LOG.error("a change of an incident was not queued", exc_info=error)

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
