"""Stores the calls that this process has counted, now and then and when it ends.

A crash loses the calls of one interval. No request waits for this: it has a connection of its own,
and counts that cannot be stored are tried again with the next ones.
"""

import logging
from threading import Event, Lock, Thread

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.api_usage.counting import CallCounter, Counted
from domain.api_usage.matching import concerns_of
from domain.api_usage.storing import store_counted
from web.database.engine import open_engine
from web.metrics import count_deprecated_calls, count_dropped_calls
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.calls")
#: Counts of one transaction, so that locks are short.
_SLICE = 200


class CallFlusher:
    """Stores the calls of one counter."""

    def __init__(self, counter: CallCounter, settings: Settings) -> None:
        """Take the counter and where to store."""
        self._counter = counter
        self._settings = settings
        self._is_stopped = Event()
        self._flushing = Lock()

    def start(self) -> None:
        """Store in the background from now on."""
        Thread(target=self._go_on, name="call counts", daemon=True).start()

    def stop(self) -> None:
        """Store what was counted since, and then nothing more."""
        self._is_stopped.set()
        self.flush()

    def flush(self) -> bool:
        """Store what was counted; return False if that has to be tried again."""
        with self._flushing:
            calls, dropped = self._counter.take()
            count_dropped_calls(dropped)
            return self._store(calls) if calls else True

    def _go_on(self) -> None:
        while not self._is_stopped.wait(self._settings.call_flush_seconds):
            self.flush()

    def _store(self, calls: list[Counted]) -> bool:
        stored = 0
        engine = open_engine(self._settings)
        try:
            for begin in range(0, len(calls), _SLICE):
                part = calls[begin : begin + _SLICE]
                with Session(engine) as session, session.begin():
                    store_counted(part, session=session)
                stored += len(part)
        except SQLAlchemyError as error:  # locked, full, away or not migrated
            _log.warning("calls not stored yet", extra={"reason": type(error).__name__})
        finally:
            engine.dispose()
        self._counter.give_back(calls[stored:])
        _count(calls[:stored])
        return stored == len(calls)


def _count(part: list[Counted]) -> None:
    for each in part:
        for change_id, certainty in concerns_of(each.shape).items():
            count_deprecated_calls(change_id, certainty, each.count.calls)
