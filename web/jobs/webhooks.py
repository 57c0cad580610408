"""Queues messages about alerts for the webhooks of projects, and delivers them."""

import logging
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import or_
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from domain.alerts.following.changes import Change
from domain.webhooks.endpoints import WEBHOOKS
from domain.webhooks.incidents import (
    INCIDENT_CHANGES_ARE_DUE,
    postpone_incident_change,
    queue_incident_changes,
    take_incident_changes,
)
from domain.webhooks.queueing import queue_alert_changes
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
    due = or_(INCIDENT_CHANGES_ARE_DUE, WEBHOOKS.due)
    kind = WEBHOOKS
    log = logging.getLogger("gatebell.webhooks")

    def run_due(self) -> int:
        """Queue messages about incidents, and send everything that is due now."""
        self._queue_incidents()
        return super().run_due()

    def look(self) -> int:
        """Queue messages about incidents, and begin to send what is due."""
        self._queue_incidents()
        return super().look()

    def _queue_incidents(self) -> None:
        if not self.has(INCIDENT_CHANGES_ARE_DUE):
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
        self.log.error("a change of an incident was not queued", exc_info=error)
