"""Ends work that waits for others at a deadline, in threads and in greenlets alike."""

from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from typing import TypeVar

from domain.delivery.outgoing.errors import DeadlineError

Outcome = TypeVar("Outcome")


def run_within(seconds: float, work: Callable[[], Outcome], *, stop: Callable[[], None]) -> Outcome:
    """Run the work in a thread of its own; return its result or raise its error.

    After so many seconds `stop` is called, which should end what the work waits for, and
    DeadlineError is raised whether the work has ended or not. Nothing shorter is certain: a name
    server that is silent, or a server that sends a byte now and then, resets every other timeout.
    """
    outcome: Queue[tuple[Outcome | None, Exception | None]] = Queue(maxsize=1)

    def run() -> None:
        try:
            outcome.put((work(), None))
        except Exception as error:  # noqa: BLE001 - raised below
            outcome.put((None, error))

    Thread(target=run, name="outgoing request", daemon=True).start()
    try:
        result, error = outcome.get(timeout=seconds)
    except Empty:
        stop()
        raise DeadlineError(seconds) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
