"""Background jobs that pass alert changes to escalations, incidents and webhooks.

On Postgres, each follower has its own job, so paging never waits for incidents or webhooks. SQLite
allows only one writer, so a single job serves the followers in turn.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain.alerts.change_feed import (
    Follower,
    ProjectRoundRobin,
    QueuedChange,
    build_changes_due_condition,
    delete_handled_changes,
    lock_due_changes,
    schedule_change_retry,
)
from domain.alerts.handling.batches import (
    BATCHES_ARE_DUE,
    process_next_batch_slice,
    stop_oldest_batch,
)
from domain.core.clock import Clock, read_system_clock
from domain.incidents.alert_changes import (
    IncidentContext,
    apply_alert_changes,
    open_incidents_for_waiting_alerts,
)
from web.database.engine import use_engine
from web.jobs.destinations import queue_webhook_changes
from web.jobs.escalations import handle_escalation_changes as escalate_changes
from web.jobs.paging import build_paging_settings
from web.jobs.queue_jobs import handle_due_rows
from web.jobs.scheduler import Job
from web.settings.environment import Settings
from web.settings.policies.alerts import build_parser_settings
from web.settings.stored_settings import read_current_settings

_log = logging.getLogger("gatebell.alert_changes")
#: Maximum number of changes in one transaction. It is small so that other SQLite writers wait only
#: briefly.
_BATCH_SIZE = 200
#: Seconds to wait for more changes after a transaction that was not full. A transaction for each
#: change would take CPU time from the receivers.
_COLLECTION_PAUSE_SECONDS = 0.25
_batch_log = logging.getLogger("gatebell.alert_batches")


def update_incidents(
    changes: Sequence[QueuedChange], *, session: Session, now: datetime, settings: Settings
) -> None:
    """Open, extend and close incidents as alerts change."""
    apply_alert_changes(changes, _build_incident_context(session, now, settings))


def _build_incident_context(session: Session, now: datetime, settings: Settings) -> IncidentContext:
    return IncidentContext(
        session=session,
        now=now,
        reading=build_parser_settings(settings),
        base_url=settings.base_url,
        paging=build_paging_settings(settings),
    )


def open_waiting_incidents(settings: Settings) -> None:
    """Open the incidents for alerts that are no longer silenced."""
    with use_engine(settings) as engine, Session(engine) as session:
        context = _build_incident_context(
            session, read_system_clock(), read_current_settings(settings, session=session)
        )
        open_incidents_for_waiting_alerts(context, commit_batch=session.commit)


class ChangeHandler(Protocol):
    """Function that handles changes for one follower, in a transaction that the caller commits."""

    def __call__(
        self,
        changes: Sequence[QueuedChange],
        *,
        session: Session,
        now: datetime,
        settings: Settings,
    ) -> None:
        """Update the follower's data for the changes.

        Any exception rolls back the transaction.
        """


#: Handlers by follower. A follower without a handler has no row in `alert_followers`.
CHANGE_HANDLERS: Mapping[Follower, ChangeHandler] = {
    Follower.ESCALATIONS: escalate_changes,
    Follower.INCIDENTS: update_incidents,
    Follower.WEBHOOKS: queue_webhook_changes,
}


class AlertChangeJob(Job):
    """Job that passes alert changes to each follower, in order for each alert."""

    name = "alert changes"
    pause_seconds = 0.5
    due = build_changes_due_condition(CHANGE_HANDLERS)
    followers = tuple(CHANGE_HANDLERS)

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = read_system_clock,
        handlers: Mapping[Follower, ChangeHandler] = CHANGE_HANDLERS,
    ) -> None:
        """Create the job that passes alert changes to the handlers."""
        super().__init__(settings, clock=clock)
        self._handlers = {each: handlers[each] for each in self.followers if each in handlers}
        self._is_due = build_changes_due_condition(self._handlers)
        self._turns = {each: ProjectRoundRobin() for each in self._handlers}
        #: `True` if the last transaction had room for more changes.
        self._was_small = False

    def process_all_due_work(self) -> int:
        """Handle all changes that are due, and return the number of handled changes."""
        handled = 0
        while (count := self._handle_changes()) and not self.is_stopped.is_set():
            handled += count
        return handled + count

    def process_due_work(self) -> int:
        """Handle one batch for each follower, and return the number of handled changes."""
        if self._was_small:
            self.is_stopped.wait(_COLLECTION_PAUSE_SECONDS)
        handled = self._handle_changes()
        self._was_small = 0 < handled < _BATCH_SIZE
        return handled

    def _handle_changes(self) -> int:
        if not self.is_due(self._is_due):
            return 0
        return sum(map(self._handle_batch, self._handlers))

    def _handle_batch(self, follower: Follower) -> int:
        """Handle a batch of changes, and return the number of changes taken from the queue."""

        def lock(maximum: int, session: Session, now: datetime) -> Sequence[QueuedChange]:
            turns = self._turns[follower]
            return lock_due_changes(follower, turns=turns, session=session, now=now, limit=maximum)

        def handle(changes: Sequence[QueuedChange], session: Session, now: datetime) -> None:
            settings = read_current_settings(self.settings, session=session)
            self._handlers[follower](changes, session=session, now=now, settings=settings)
            delete_handled_changes(changes, session=session)

        def postpone(change: QueuedChange, error: Exception) -> None:
            reason = type(error).__name__
            with Session(self.engine) as session, session.begin():
                schedule_change_retry(change, reason, session=session, now=self.clock())
            _log.error(
                "Alert change was not processed; the worker will retry.",
                exc_info=error,
                extra={
                    "event": "alert_change.processing_failed",
                    "follower": follower.value,
                    "alert_id": change.alert_id,
                    "tries": change.tries,
                },
            )

        return handle_due_rows(self, lock, handle, postpone, maximum=_BATCH_SIZE)


class EscalationChangeJob(AlertChangeJob):
    """Job that starts and ends escalations."""

    name = "alert changes for escalations"
    due = build_changes_due_condition([Follower.ESCALATIONS])
    followers = (Follower.ESCALATIONS,)


class IncidentChangeJob(AlertChangeJob):
    """Job that opens, extends and closes incidents."""

    name = "alert changes for incidents"
    due = build_changes_due_condition([Follower.INCIDENTS])
    followers = (Follower.INCIDENTS,)


class WebhookChangeJob(AlertChangeJob):
    """Job that queues webhook messages."""

    name = "alert changes for webhooks"
    due = build_changes_due_condition([Follower.WEBHOOKS])
    followers = (Follower.WEBHOOKS,)


def list_alert_change_jobs(settings: Settings) -> Sequence[type[AlertChangeJob]]:
    """Return the classes of the jobs that a worker runs to serve all followers."""
    if settings.uses_sqlite:
        return (AlertChangeJob,)
    return EscalationChangeJob, IncidentChangeJob, WebhookChangeJob


class AlertBatchJob(Job):
    """Job that processes batches in slices, oldest batch first, with one transaction per slice."""

    name = "alert batches"
    due = BATCHES_ARE_DUE

    def process_all_due_work(self) -> int:
        """Process all slices that are due, and return the number of slices."""
        done = 0
        while (
            not self.is_stopped.is_set() and self.is_due(BATCHES_ARE_DUE) and self._process_slice()
        ):
            done += 1
        return done

    def _process_slice(self) -> bool:
        try:
            with Session(self.engine) as session, session.begin():
                return process_next_batch_slice(session=session, now=self.clock()) is not None
        except DBAPIError:
            raise  # the database is unavailable or busy; the next run retries
        except Exception:  # noqa: BLE001 - a failing batch must not delay others
            _batch_log.exception(
                "Bulk change of alerts failed; the remaining changes were canceled.",
                extra={"event": "alert_batch.failed"},
            )
            with Session(self.engine) as session, session.begin():
                stop_oldest_batch(session=session)
            return True
