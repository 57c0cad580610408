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

from domain.access.actor import AccessMethod, Actor, PolicyLookup, UnitOfWork
from domain.alerts.change_feed import QueuedChange
from domain.alerts.formats.base import ParserSettings
from domain.core.database.failures import is_database_failure
from domain.paging.escalations import lifecycle, pending
from domain.paging.escalations.decision import EscalationSettings
from web.jobs.pages import build_paging_policy
from web.jobs.scheduler import Job
from web.settings.policies.alerts import build_parser_settings
from web.settings.reader import Settings
from web.settings.stored import read_current_settings

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
        paging=build_paging_policy(settings),
    )


class PendingEscalations(Job):
    """Job that escalates alerts once the time to undo the escalation has passed."""

    name = "pending_escalations"
    due = pending.PENDING_ESCALATIONS_ARE_DUE

    def run_due(self) -> int:
        """Escalate the due alerts, each in its own transaction, and return their number."""
        with Session(self.reading_engine) as session:
            ids = pending.find_due_pending_escalations(session=session, now=self.clock())
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
            return int(pending.escalate_pending_alert(work, alert_id))


class Escalations(Job):
    """Job that takes due steps, processes page outcomes and re-evaluates mutes."""

    name = "escalations"
    due = or_(lifecycle.OUTCOMES_ARE_DUE, lifecycle.STEPS_ARE_DUE)

    def process_due_work(self) -> int:
        """Process all due work, and then pause briefly to collect further outcomes."""
        taken = super().process_due_work()
        if taken:
            self.is_stopped.wait(_COLLECTION_PAUSE_SECONDS)
        return taken

    def run_due(self) -> int:
        """Take all due steps and return the number of escalations and pages processed."""
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
        """Process the outcomes of pages and return their number."""
        heard = 0
        while not self.is_stopped.is_set() and self.is_due(lifecycle.OUTCOMES_ARE_DUE):
            with Session(self.engine) as session, session.begin():
                count = lifecycle.process_page_outcomes(session=session, now=self.clock())
            heard += count
            if not count:
                break  # another worker has claimed them
        return heard

    def _take_steps(self, ids: Sequence[int]) -> int:
        """Take steps together, or one by one if that fails.

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
            "Escalation step failed; the worker retries.",
            exc_info=error,
            extra={"event": "escalation.step_failed", "escalation_id": ids[0]},
        )
        return 1
