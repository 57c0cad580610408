"""Goes on with changes of many alerts, slice by slice, in the background worker."""

import logging

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain.alerts.handling.batch_rows import BATCHES_ARE_DUE
from domain.alerts.handling.batches import advance, give_up
from web.jobs.scheduler import Job

_log = logging.getLogger("gatebell.alert_batches")


class AlertBatches(Job):
    """Does the slices of all batches, the oldest batch first, each in its own transaction."""

    name = "alert batches"
    due = BATCHES_ARE_DUE

    def run_due(self) -> int:
        """Do everything that is due, and return how many slices that was."""
        done = 0
        while not self.is_stopped.is_set() and self.has(BATCHES_ARE_DUE) and self._advance():
            done += 1
        return done

    def _advance(self) -> bool:
        try:
            with Session(self.engine) as session, session.begin():
                return advance(session=session, now=self.clock()) is not None
        except DBAPIError:
            raise  # the database is away or busy: the next look will do
        except Exception:  # noqa: BLE001 - what cannot be done holds nothing else up
            _log.exception("a change of many alerts was given up")
            with Session(self.engine) as session, session.begin():
                give_up(session=session)
            return True
