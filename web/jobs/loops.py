"""Work of the background worker that cannot wait for the next minute.

huey starts periodic tasks once a minute. A loop looks for work every second or so, in a thread of
its own, and survives a database that is away.
"""

import logging
from abc import ABC, abstractmethod
from dataclasses import replace
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from domain.clock import Clock, system_clock
from web.database.engine import open_engine
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.jobs")
_AFTER_FAILURE_SECONDS = 5.0
_LONGEST_STOP_SECONDS = 15.0


class Loop(ABC):
    """Looks for work and does it, again and again, until it is stopped.

    `engine` is for what writes; `reading` takes no lock of a writer on SQLite.
    """

    #: The name of the thread, for logs.
    name: str
    #: Seconds between two looks when there was nothing to do.
    pause_seconds = 1.0
    #: Connections to the database.
    connections = 2

    def __init__(self, settings: Settings, *, clock: Clock = system_clock) -> None:
        """Open the database."""
        self.settings = settings
        self.clock = clock
        self.engine = open_engine(replace(settings, database_pool_size=self.connections))
        self.reading = self.engine.execution_options(begin_mode="DEFERRED")
        self.is_stopped = Event()
        self._thread: Thread | None = None
        #: When the current look began; None in a pause.
        self._looks_since: float | None = None

    def seconds_of_turn(self) -> float:
        """Return for how long it has been looking for work and doing it, without a pause."""
        since = self._looks_since
        return 0.0 if since is None else monotonic() - since

    @abstractmethod
    def run_due(self) -> int:
        """Do what is due now and return how much that was; 0 ends in a pause.

        It returns early once `is_stopped` is set.
        """

    def look(self) -> int:
        """Do what is due, in the background; return 0 for a pause."""
        return self.run_due()

    def __enter__(self) -> Self:
        """Return the loop, which has not begun."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Let the work under way finish, and close the database."""
        self.stop()

    def start(self) -> None:
        """Begin, in the background."""
        self._thread = Thread(target=self._run_on, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the work under way finish; the rest stays for the next worker."""
        self.is_stopped.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_STOP_SECONDS)
        self.engine.dispose()

    def _run_on(self) -> None:
        pause = 0.0
        while not self.is_stopped.wait(pause):
            self._looks_since = monotonic()
            try:
                pause = 0.0 if self.look() else self.pause_seconds
            except SQLAlchemyError as error:  # unavailable or not migrated; /readyz reports it
                _log.debug("nothing done", extra={"job": self.name, "reason": type(error).__name__})
                pause = _AFTER_FAILURE_SECONDS
            except Exception:  # noqa: BLE001 - a thread that ended would stop pages without a word
                _log.exception("a job of the worker failed", extra={"job": self.name})
                pause = _AFTER_FAILURE_SECONDS
            self._looks_since = None
