"""Jobs that page users about alerts, step by step.

An alert change starts or ends an escalation (`web/jobs/alert_changes.py`) and takes its first step
in the same transaction. This job takes the later steps when they are due.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import or_
from sqlalchemy.orm import Session

from domain.access.actor import Actor, Means, Policies, Work
from domain.alerts.change_feed import Change
from domain.alerts.formats.base import Reading
from domain.core.database.failures import is_of_database
from domain.paging.escalations import lifecycle, pending
from domain.paging.escalations.decision import Surroundings
from web.jobs.pages import policy_of
from web.jobs.scheduler import Job
from web.settings.policies.alerts import reading
from web.settings.reader import Settings
from web.settings.stored import current_settings

_log = logging.getLogger("gatebell.escalations")
#: Pause that lets page outcomes collect after a run. Each outcome triggers a new decision about the
#: next step, and a page to hundreds of users has many outcomes per second.
_GATHERING_SECONDS = 0.25


def handle_changes(
    changes: Sequence[Change], *, session: Session, now: datetime, settings: Settings
) -> None:
    """Start and end escalations.

    This is the escalations handler of `web.jobs.alert_changes`.
    """
    lifecycle.handle_changes(changes, session=session, now=now, around=_surroundings(settings))


def _surroundings(settings: Settings) -> Surroundings:
    return Surroundings(
        reading=reading(settings),
        paging=policy_of(settings),
    )


class PendingEscalations(Job):
    """Job that escalates alerts once the time to undo the escalation has passed."""

    name = "pending_escalations"
    due = pending.PENDING_ARE_DUE

    def run_due(self) -> int:
        """Escalate the due alerts, each in its own transaction, and return their number."""
        with Session(self.reading) as session:
            ids = pending.due_escalations(session=session, now=self.clock())
        return sum(self._escalate(each) for each in ids if not self.is_stopped.is_set())

    def _escalate(self, alert_id: int) -> int:
        with Session(self.engine) as session, session.begin():
            settings = current_settings(self.settings, session=session)
            work = Work(
                actor=Actor(means=Means.JOB),
                session=session,
                now=self.clock(),
                settings=settings,
                policy=cast("Policies", {Reading: reading(settings)}.__getitem__),
            )
            return int(pending.escalate_due(work, alert_id))


class Escalations(Job):
    """Job that takes due steps, processes page outcomes and evaluates mutes again."""

    name = "escalations"
    due = or_(lifecycle.NEWS_ARE_DUE, lifecycle.STEPS_ARE_DUE)

    def look(self) -> int:
        """Process what is due, and pause briefly so that outcomes can collect."""
        taken = super().look()
        if taken:
            self.is_stopped.wait(_GATHERING_SECONDS)
        return taken

    def run_due(self) -> int:
        """Take all due steps and return the number of escalations and pages processed."""
        taken = self._hear()
        while not self.is_stopped.is_set():
            with Session(self.reading) as session:
                ids = lifecycle.due_escalations(session=session, now=self.clock())
            count = self._take(ids)
            if not count:
                break
            taken += count
        return taken

    def _hear(self) -> int:
        """Process the outcomes of pages and return their number."""
        heard = 0
        while not self.is_stopped.is_set() and self.has(lifecycle.NEWS_ARE_DUE):
            with Session(self.engine) as session, session.begin():
                count = lifecycle.hear_of_pages(session=session, now=self.clock())
            heard += count
            if not count:
                break  # another worker has claimed them
        return heard

    def _take(self, ids: Sequence[int]) -> int:
        """Take steps together, or one by one if that fails.

        A step that fails then delays no other step.
        """
        if not ids:
            return 0
        try:
            with Session(self.engine) as session, session.begin():
                settings = current_settings(self.settings, session=session)
                around = _surroundings(settings)
                return lifecycle.take_due_steps(
                    ids, session=session, now=self.clock(), around=around
                )
        except Exception as error:
            if is_of_database(error):
                raise  # a database error does not mean that the escalations are faulty
            return self._after_failure(ids, error)

    def _after_failure(self, ids: Sequence[int], error: Exception) -> int:
        if len(ids) > 1:
            return sum(self._take([each]) for each in ids)
        with Session(self.engine) as session, session.begin():
            lifecycle.postpone(ids[0], session=session, now=self.clock())
        _log.error(
            "Escalation step failed; the worker retries.",
            exc_info=error,
            extra={"event": "escalation.step_failed", "escalation_id": ids[0]},
        )
        return 1
