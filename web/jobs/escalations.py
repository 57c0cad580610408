"""Jobs that page users about alerts, step by step.

The job in `web/jobs/alert_changes.py` starts or ends an escalation and runs its first step in the
same transaction. A job in this module runs the later steps when they are due.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import or_
from sqlalchemy.orm import Session

from domain.access.actor import AccessMethod, Actor, PolicyLookup, UnitOfWork
from domain.alerts.change_feed import QueuedChange
from domain.alerts.formats.base import ParserSettings
from domain.core.database.failures import is_database_failure
from domain.paging.escalations import lifecycle, undoable_escalations
from domain.paging.escalations.decision import EscalationSettings
from web.jobs.paging import build_paging_settings
from web.jobs.scheduler import Job
from web.settings.environment import Settings
from web.settings.policies.alerts import build_parser_settings
from web.settings.stored_settings import read_current_settings

_log = logging.getLogger("gatebell.escalations")
#: Seconds to wait for more page outcomes after a run. Each outcome triggers a new decision about
#: the next step, and paging hundreds of users produces many outcomes per second.
_COLLECTION_PAUSE_SECONDS = 0.25


def handle_escalation_changes(
    changes: Sequence[QueuedChange], *, session: Session, now: datetime, settings: Settings
) -> None:
    """Start and end escalations, as a handler for `web.jobs.alert_changes`."""
    lifecycle.process_alert_changes(
        changes, session=session, now=now, escalation_settings=_build_escalation_settings(settings)
    )


def _build_escalation_settings(settings: Settings) -> EscalationSettings:
    return EscalationSettings(
        reading=build_parser_settings(settings),
        paging=build_paging_settings(settings),
    )


class PendingEscalationJob(Job):
    """Job that escalates alerts once the time to undo the escalation has passed."""

    name = "pending_escalations"
    due = undoable_escalations.PENDING_ESCALATIONS_ARE_DUE

    def process_all_due_work(self) -> int:
        """Escalate the due alerts, each in its own transaction, and return the number of alerts."""
        with Session(self.reading_engine) as session:
            ids = undoable_escalations.find_due_pending_escalations(
                session=session, now=self.clock()
            )
        return sum(self._escalate_alert(each) for each in ids if not self.is_stopped.is_set())

    def _escalate_alert(self, alert_id: int) -> int:
        with Session(self.engine) as session, session.begin():
            settings = read_current_settings(self.settings, session=session)
            work = UnitOfWork(
                actor=Actor(means=AccessMethod.JOB),
                session=session,
                now=self.clock(),
                settings=settings,
                policy=cast(
                    "PolicyLookup", {ParserSettings: build_parser_settings(settings)}.__getitem__
                ),
            )
            return int(undoable_escalations.escalate_pending_alert(work, alert_id))


class EscalationJob(Job):
    """Job that runs due escalation steps, processes page outcomes and re-evaluates mutes."""

    name = "escalations"
    due = or_(lifecycle.OUTCOMES_ARE_DUE, lifecycle.STEPS_ARE_DUE)

    def process_due_work(self) -> int:
        """Process all due work, and then pause briefly to collect further outcomes."""
        taken = super().process_due_work()
        if taken:
            self.is_stopped.wait(_COLLECTION_PAUSE_SECONDS)
        return taken

    def process_all_due_work(self) -> int:
        """Run all due steps and return the number of escalations and pages processed."""
        taken = self._process_outcomes()
        while not self.is_stopped.is_set():
            with Session(self.reading_engine) as session:
                ids = lifecycle.find_due_escalations(session=session, now=self.clock())
            count = self._take_steps(ids)
            if not count:
                break
            taken += count
        return taken

    def _process_outcomes(self) -> int:
        """Process the outcomes of pages, and return the number of outcomes."""
        heard = 0
        while not self.is_stopped.is_set() and self.is_due(lifecycle.OUTCOMES_ARE_DUE):
            with Session(self.engine) as session, session.begin():
                count = lifecycle.process_page_outcomes(session=session, now=self.clock())
            heard += count
            if not count:
                break  # another worker has claimed them
        return heard

    def _take_steps(self, ids: Sequence[int]) -> int:
        """Run steps together, or one by one if that fails.

        A failing step then delays no other step.
        """
        if not ids:
            return 0
        try:
            with Session(self.engine) as session, session.begin():
                settings = read_current_settings(self.settings, session=session)
                around = _build_escalation_settings(settings)
                return lifecycle.take_due_steps(
                    ids, session=session, now=self.clock(), escalation_settings=around
                )
        except Exception as error:
            if is_database_failure(error):
                raise  # a database error does not mean that the escalations are faulty
            return self._retry_one_by_one(ids, error)

    def _retry_one_by_one(self, ids: Sequence[int], error: Exception) -> int:
        if len(ids) > 1:
            return sum(self._take_steps([each]) for each in ids)
        with Session(self.engine) as session, session.begin():
            lifecycle.schedule_retry(ids[0], session=session, now=self.clock())
        _log.error(
            "Escalation step failed; the worker will retry.",
            exc_info=error,
            extra={"event": "escalation.step_failed", "escalation_id": ids[0]},
        )
        return 1
