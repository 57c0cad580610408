"""Tells those who follow alerts of their changes, in the background worker."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy.orm import Session

from domain.alerts.following.changes import (
    Change,
    finish,
    has_due_changes,
    postpone,
    take_changes,
)
from domain.alerts.following.followers import Follower
from domain.clock import Clock, system_clock
from domain.database.failures import is_of_database
from web.jobs.current_settings import current_settings
from web.jobs.escalations import handle_changes as escalate_changes
from web.jobs.incidents import follow_for_incidents
from web.jobs.loops import Loop
from web.jobs.webhooks import queue_changes
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.alert_changes")
#: Changes of one transaction, few enough that writers of SQLite wait briefly.
_BATCH = 200


class Handler(Protocol):
    """What a follower does about changes, in one transaction that the caller commits."""

    def __call__(
        self, changes: Sequence[Change], *, session: Session, now: datetime, settings: Settings
    ) -> None:
        """Handle the changes; raise whatever goes wrong, and nothing is stored."""


#: A follower without a handler has no row in `alert_followers`.
HANDLERS: Mapping[Follower, Handler] = {
    Follower.ESCALATIONS: escalate_changes,
    Follower.INCIDENTS: follow_for_incidents,
    Follower.WEBHOOKS: queue_changes,
}


class AlertChanges(Loop):
    """Hands the changes to the handlers, in order for each alert."""

    name = "alert changes"
    pause_seconds = 0.5

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = system_clock,
        handlers: Mapping[Follower, Handler] = HANDLERS,
    ) -> None:
        """Take the handlers."""
        super().__init__(settings, clock=clock)
        self._handlers = handlers

    def run_due(self) -> int:
        """Handle all changes that are due, and return how many were handled."""
        with Session(self.reading) as session:
            if not has_due_changes(session=session, now=self.clock()):
                return 0
        return sum(self._handle_all(follower) for follower in self._handlers)

    def _handle_all(self, follower: Follower) -> int:
        handled = 0
        while not self.is_stopped.is_set():
            count = self._handle_batch(follower, _BATCH)
            if not count:
                break
            handled += count
        return handled

    def _handle_batch(self, follower: Follower, limit: int) -> int:
        """Handle up to `limit` changes; return how many were taken, handled or postponed."""
        changes: Sequence[Change] = ()
        try:
            with Session(self.engine) as session, session.begin():
                now = self.clock()
                changes = take_changes(follower, session=session, now=now, limit=limit)
                if changes:
                    settings = current_settings(self.settings, session=session)
                    self._handlers[follower](changes, session=session, now=now, settings=settings)
                    finish(changes, session=session)
        except Exception as error:
            if is_of_database(error):
                raise  # nothing is wrong with the changes
            self._after_failure(follower, changes, error)
        return len(changes)

    def _after_failure(
        self, follower: Follower, changes: Sequence[Change], error: Exception
    ) -> None:
        """Try the changes one by one, so that one that fails holds up only its own alert."""
        if not changes:
            raise error
        if len(changes) > 1:
            for _ in changes:
                self._handle_batch(follower, 1)
            return
        (change,) = changes
        with Session(self.engine) as session, session.begin():
            postpone(change, type(error).__name__, session=session, now=self.clock())
        _log.error(
            "a change of an alert was not handled, trying again later",
            exc_info=error,
            extra={"follower": follower.value, "alert_id": change.alert_id, "tries": change.tries},
        )
