"""Delivers audit events to their destinations."""

import logging
from collections.abc import Sequence

from sqlalchemy.orm import Session

from domain.audit.streaming import deliveries
from domain.outgoing.claims import Attempt, Claim, Delivery, Failure
from web.jobs.destinations import DestinationWorker


class AuditStreaming(DestinationWorker):
    """The deliveries of audit events by one worker."""

    name = "audit streams"
    NAME = "audit stream"
    LOG = logging.getLogger("gatebell.audit_streams")
    NUMBER = "audit_stream_id"
    NOT_DELIVERED = "audit event not delivered, trying again later"

    def has_due(self, session: Session) -> bool:
        """Return whether an event is to be sent."""
        return deliveries.has_due_streams(session=session, now=self.clock())

    def claim_due(self, session: Session, most: int) -> Sequence[Claim]:
        """Claim destinations; there are fewer of them than threads."""
        del most
        return deliveries.claim_due_streams(session=session, now=self.clock())

    def next_delivery(self, claim: Claim, session: Session) -> Delivery | None:
        """Return the next event."""
        return deliveries.next_delivery(
            claim, session=session, keyring=self.keyring, now=self.clock()
        )

    def release(self, claim: Claim, session: Session) -> None:
        """Give up a claim."""
        deliveries.release(claim, session=session)

    def record_delivered(
        self, claim: Claim, delivery: Delivery, attempt: Attempt, session: Session
    ) -> None:
        """Remove an event that was delivered."""
        del attempt
        deliveries.record_delivered(claim, delivery, session=session, now=self.clock())

    def record_failure(
        self, claim: Claim, delivery: Delivery | None, attempt: Attempt, session: Session
    ) -> Failure | None:
        """Schedule the next attempt, or set aside an event that the receiver refuses."""
        failure = deliveries.record_failure(
            claim, delivery, attempt, share=self.share(), session=session, now=self.clock()
        )
        if failure is not None and failure.sets_aside:
            self.LOG.error("audit event set aside", extra=self._about(claim))
        return failure
