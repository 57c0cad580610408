"""Deadlines for blocking work, in threads and in greenlets."""

from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from typing import TypeVar

from domain.delivery.outgoing.errors import DeadlineExceededError

Outcome = TypeVar("Outcome")


def run_with_deadline(
    seconds: float, work: Callable[[], Outcome], *, stop: Callable[[], None]
) -> Outcome:
    """Run a function in a separate thread, and return its result or raise its error.

    After `seconds`, call `stop`, which should abort the operation for which the function waits.
    Then raise DeadlineExceededError, whether or not the function has returned. No simpler timeout
    is reliable: a silent name server defeats every other timeout, as does a server that sends a
    byte from time to time.
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
        raise DeadlineExceededError(seconds) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
