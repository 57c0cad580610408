"""Delivers signed messages to destinations, with one thread per destination.

Each destination is served by one worker at a time (`domain/delivery/queue.py`).
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any, ClassVar

from sqlalchemy import or_
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.alerts.change_feed import QueuedChange
from domain.core.keyring import UndecryptableError
from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND
from domain.delivery.outgoing.attempts import ClaimedDelivery, DeliveryAttempt, RetryPolicy
from domain.delivery.outgoing.destinations import FAILING_AFTER, DestinationManager
from domain.delivery.queue import Claim
from domain.delivery.webhooks.endpoints import WEBHOOK_KIND
from domain.delivery.webhooks.queueing import (
    INCIDENT_CHANGE_QUEUE,
    INCIDENT_CHANGES_ARE_DUE,
    queue_alert_changes,
    queue_incident_changes,
)
from models import WebhookIncidentChange
from web.jobs.queue_jobs import QueueJob, handle_due_rows
from web.outgoing.client import DEADLINE_SECONDS, OutgoingClient, attempt_delivery
from web.settings.environment import Settings
from web.settings.policies.alerts import build_parser_settings
from web.settings.stored_settings import read_current_settings

_LOST_KEY_PROBLEM = (
    "its URL or secret was encrypted with a SECRET_KEY that is no longer known: enter the URL "
    "again and rotate the secret"
)
#: Maximum number of incident changes in one transaction.
_MAX_INCIDENT_CHANGES = 100


class DestinationJob(QueueJob):
    """Job that delivers messages to one kind of destination, which subclasses define."""

    attempt_seconds = DEADLINE_SECONDS + 1
    #: Number of database connections. A few are enough, because no connection is held during
    #: requests to destinations.
    connections = 3
    #: Kind of the destinations, and their logger.
    kind: ClassVar[DestinationManager[Any, Any, Any]]
    log: ClassVar[logging.Logger]
    #: Prefix of event keys in the log, and of the field name for the destination's ID.
    subject: ClassVar[str]
    #: Maximum number of destinations served at the same time.
    MAX_CONCURRENT_DESTINATIONS: ClassVar[int] = 64

    def claim_destinations(self) -> Sequence[Callable[[], None]]:
        """Claim due destinations, and return functions that send their messages."""
        most = self.MAX_CONCURRENT_DESTINATIONS - len(self.threads)
        if most <= 0 or not self.is_due(self.kind.due_condition):
            return []
        claims = self.run_in_transaction(
            lambda session: self.kind.claim_due_destinations(
                maximum=most, session=session, now=self.clock()
            )
        )
        return [partial(self._deliver_messages, claim) for claim in claims]

    def _deliver_messages(self, claim: Claim) -> None:
        """Send a destination's messages.

        Sending stops when no message is left, a message fails, or the time is up.
        """
        client = OutgoingClient.from_settings(self.settings)
        ends = monotonic() + self.kind.time_slice_seconds
        try:
            delivery = self._get_next_message(claim)
            while delivery is not None:
                if self.is_stopped.is_set() or monotonic() > ends:
                    self.run_in_transaction(
                        lambda session: self.kind.claims.release_claim(claim, session=session)
                    )
                    break
                delivery = self._send_message(claim, delivery, client)
        except SQLAlchemyError as error:
            # The claim expires by itself. A message that was sent but not recorded is sent again.
            said = self._describe_destination(claim, reason=type(error).__name__)
            self.log.warning(
                "%s delivery was interrupted because the database was unavailable.",
                self.kind.message_noun.capitalize(),
                extra={"event": f"{self.subject}.delivery_interrupted", **said},
            )
        finally:
            client.close_connection()

    def _get_next_message(self, claim: Claim) -> ClaimedDelivery | None:
        try:
            return self.run_in_transaction(partial(self._find_next_delivery, claim))
        except UndecryptableError:
            self._record_delivery_failure(claim, None, DeliveryAttempt(problem=_LOST_KEY_PROBLEM))
            return None

    def _find_next_delivery(self, claim: Claim, session: Session) -> ClaimedDelivery | None:
        return self.kind.take_next_delivery(
            claim, session=session, keyring=self.keyring, now=self.clock()
        )

    def _send_message(
        self, claim: Claim, delivery: ClaimedDelivery, client: OutgoingClient
    ) -> ClaimedDelivery | None:
        """Send a message and return the next message.

        Return None if sending failed or no message is left.
        """
        made = attempt_delivery(
            client, delivery.url, delivery.message, delivery.secrets, now=self.clock()
        )
        if made.problem is not None:
            self._record_delivery_failure(claim, delivery, made)
            return None
        with Session(self.engine) as session, session.begin():
            self.kind.record_delivery(claim, delivery, made, session=session, now=self.clock())
            return self._find_next_delivery(claim, session)

    def _record_delivery_failure(
        self,
        claim: Claim,
        delivery: ClaimedDelivery | None,
        delivery_attempt: DeliveryAttempt,
    ) -> None:
        with Session(self.engine) as session, session.begin():
            days = read_current_settings(self.settings, session=session).webhook_pause_days
            retries = RetryPolicy(share=self.share(), patience=timedelta(days=days))
            failure = self.kind.record_failure(
                claim, delivery, delivery_attempt, retries, session=session, now=self.clock()
            )
        if failure is None:
            return
        if failure.sets_aside:
            self.log.error(
                "%s was rejected repeatedly and set aside. Later messages are sent first.",
                self.kind.message_noun.capitalize(),
                extra={
                    "event": f"{self.subject}.message_set_aside",
                    **self._describe_destination(claim),
                },
            )
        said = self._describe_destination(
            claim, reason=delivery_attempt.problem, failures=failure.failures
        )
        if self.clock() - failure.failing_since >= FAILING_AFTER:
            self.log.error(
                "%s deliveries have been failing for a day; the worker keeps retrying.",
                self.kind.noun.capitalize(),
                extra={"event": f"{self.subject}.failing", **said},
            )
        else:
            self.log.warning(
                "%s delivery failed; the worker will retry.",
                self.kind.message_noun.capitalize(),
                extra={"event": f"{self.subject}.delivery_failed", **said},
            )

    def _describe_destination(self, claim: Claim, **more: object) -> dict[str, object]:
        return {f"{self.subject}_id": claim.destination_id, **more}


class AuditStreamJob(DestinationJob):
    """Job that delivers audit events to audit streams."""

    name = "audit streams"
    due = AUDIT_STREAM_KIND.due_condition
    kind = AUDIT_STREAM_KIND
    log = logging.getLogger("gatebell.audit_streams")
    subject = "audit_stream"


def queue_webhook_changes(
    changes: Sequence[QueuedChange], *, session: Session, now: datetime, settings: Settings
) -> None:
    """Queue webhook messages about alert changes."""
    queue_alert_changes(
        changes,
        base_url=settings.base_url,
        parser_settings=build_parser_settings(settings),
        session=session,
        now=now,
    )


class WebhookDeliveryJob(DestinationJob):
    """Job that delivers messages to webhooks."""

    name = "webhooks"
    due = or_(INCIDENT_CHANGES_ARE_DUE, WEBHOOK_KIND.due_condition)
    kind = WEBHOOK_KIND
    log = logging.getLogger("gatebell.webhooks")
    subject = "webhook"

    def queue_messages(self) -> int:
        """Queue messages about changes to incidents, and return the number of changes."""
        if not self.is_due(INCIDENT_CHANGES_ARE_DUE):
            return 0
        return handle_due_rows(
            self,
            lambda maximum, session, now: INCIDENT_CHANGE_QUEUE.lock_due_rows(
                maximum=maximum, session=session, now=now
            ),
            self._queue_incident_messages,
            self._postpone_incident_change,
            maximum=_MAX_INCIDENT_CHANGES,
        )

    def _queue_incident_messages(
        self, changes: Sequence[WebhookIncidentChange], session: Session, now: datetime
    ) -> None:
        session.expunge_all()  # `_postpone_incident_change` reads the changes after a failure.
        base_url = self.settings.base_url
        queue_incident_changes(changes, base_url=base_url, session=session, now=now)

    def _postpone_incident_change(self, change: WebhookIncidentChange, error: Exception) -> None:
        self.run_in_transaction(
            lambda session: INCIDENT_CHANGE_QUEUE.schedule_retry(
                change.id, 1, session=session, now=self.clock()
            )
        )
        self.log.error(
            "Incident change was not queued for webhooks; the worker will retry.",
            exc_info=error,
            extra={"event": "webhook.queueing_failed"},
        )
