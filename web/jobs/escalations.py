"""Pages people about alerts, step by step, in the background worker.

What begins and ends an escalation is a change of its alert (`web/jobs/alert_changes.py`), and the
first step is taken with it. This loop takes the steps that become due later.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from domain.alerts.following.changes import Change
from domain.escalations import running
from domain.escalations.alerts import Surroundings
from web.jobs.current_settings import current_settings
from web.jobs.loops import Loop
from web.settings import policies
from web.settings.reader import Settings


def handle_changes(
    changes: Sequence[Change], *, session: Session, now: datetime, settings: Settings
) -> None:
    """Begin and end escalations; a handler of `web.jobs.alert_changes`."""
    running.handle_changes(changes, session=session, now=now, around=_surroundings(settings))


def _surroundings(settings: Settings) -> Surroundings:
    return Surroundings(
        reading=policies.reading(settings),
        sends_mail=bool(settings.mail_url),
        base_url=settings.base_url,
    )


class Escalations(Loop):
    """Takes the steps that are due, and looks at mutes again."""

    name = "escalations"

    def run_due(self) -> int:
        """Take all steps that are due, and return of how many escalations."""
        with Session(self.reading) as session:
            if not running.has_due_steps(session=session, now=self.clock()):
                return 0
        taken = 0
        while not self.is_stopped.is_set():
            count = self._take_some()
            if not count:
                break
            taken += count
        return taken

    def _take_some(self) -> int:
        with Session(self.engine) as session, session.begin():
            settings = current_settings(self.settings, session=session)
            return running.take_due_steps(
                session=session, now=self.clock(), around=_surroundings(settings)
            )
