"""Jobs that work on delivery queues (`domain/delivery/queue.py`).

A `QueueJob` sends the messages of each claimed destination in a thread. `handle_due_rows` handles
rows that stay locked until the transaction ends.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Thread
from time import monotonic
from typing import ClassVar, TypeVar

from sqlalchemy.orm import Session

from domain.core.clock import Clock, read_system_clock
from domain.core.database.failures import is_database_failure
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_fraction
from web.jobs.scheduler import Job
from web.settings.environment import Settings

ResultT = TypeVar("ResultT")
RowT = TypeVar("RowT")


class QueueJob(Job):
    """Job that claims destinations and serves each in a thread, so that none delays another."""

    #: Time limit of an attempt in seconds.
    attempt_seconds: ClassVar[float]

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = read_system_clock,
        share: Callable[[], float] = generate_random_fraction,
    ) -> None:
        """Store the settings and the clock.

        `share` returns a random fraction that varies the retry pauses.
        """
        super().__init__(settings, clock=clock)
        self.share = share
        self.keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
        #: Threads that serve destinations.
        self.threads: list[Thread] = []

    def queue_messages(self) -> int:
        """Queue messages that are due, and return 0 if there were none."""
        return 0

    @abstractmethod
    def claim_destinations(self) -> Sequence[Callable[[], None]]:
        """Claim due destinations, and return functions that send their messages."""

    def process_all_due_work(self) -> int:
        """Send all due messages, and return the number of destinations served."""
        while self.queue_messages() and not self.is_stopped.is_set():
            pass
        count = 0
        while started := self._start_threads():
            count += started
            for thread in self.threads:
                thread.join()
        return count

    def process_due_work(self) -> int:
        """Start sending due messages, so that a slow destination delays no other destination."""
        return self.queue_messages() + self._start_threads()

    def finish_current_run(self) -> None:
        """Let active attempts finish, and leave the remaining messages to the next worker."""
        self.is_stopped.set()
        deadline = monotonic() + self.attempt_seconds
        for thread in self.threads:
            thread.join(max(deadline - monotonic(), 0))
        super().finish_current_run()

    def _start_threads(self) -> int:
        self.threads = [each for each in self.threads if each.is_alive()]
        senders = [] if self.is_stopped.is_set() else self.claim_destinations()
        started = [Thread(target=each, name=self.name, daemon=True) for each in senders]
        for thread in started:
            thread.start()
        self.threads += started
        return len(started)

    def run_in_transaction(self, work: Callable[[Session], ResultT]) -> ResultT:
        """Commit changes in a transaction, and return the result of a function."""
        with Session(self.engine) as session, session.begin():
            return work(session)


def handle_due_rows(
    job: Job,
    lock: Callable[[int, Session, datetime], Sequence[RowT]],
    handle: Callable[[Sequence[RowT], Session, datetime], None],
    postpone: Callable[[RowT, Exception], None],
    *,
    maximum: int,
) -> int:
    """Lock and handle up to `maximum` rows, and return the number of locked rows.

    If that fails, the rows are handled one by one, and only faulty rows are postponed.
    """
    rows: Sequence[RowT] = ()
    try:
        with Session(job.engine) as session, session.begin():
            now = job.clock()
            rows = lock(maximum, session, now)
            if rows:
                handle(rows, session, now)
    except Exception as error:
        # A database error does not mean that the rows are faulty.
        if not rows or is_database_failure(error):
            raise
        if len(rows) == 1:
            postpone(rows[0], error)
        else:
            for _ in rows:
                handle_due_rows(job, lock, handle, postpone, maximum=1)
    return len(rows)
