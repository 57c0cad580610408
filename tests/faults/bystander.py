"""A user who sends requests while a test breaks something, and who may be delayed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic, sleep

from tests.support.service.live import LiveGatebell
from tests.support.wire.kept_connection import KeptConnection

_SOME = 5
_PATIENCE_SECONDS = 20


@dataclass
class Bystander:
    """Counts the responses to repeated requests."""

    answers: int = 0

    def is_served(self) -> None:
        """Wait for some more responses, which a blocked user would not get."""
        wanted, deadline = self.answers + _SOME, monotonic() + _PATIENCE_SECONDS
        while self.answers < wanted:
            assert monotonic() < deadline, "held up"
            sleep(0.02)


@contextmanager
def bystander(gatebell: LiveGatebell, path: str = "/users/sign_in") -> Iterator[Bystander]:
    """Send requests repeatedly for the duration of the block, and count the responses."""
    seen, end = Bystander(), Event()
    thread = Thread(target=_ask_on, args=(gatebell, path, seen, end))
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join()
    assert seen.answers


def _ask_on(gatebell: LiveGatebell, path: str, seen: Bystander, end: Event) -> None:
    while not end.is_set():
        # New connections are the first to be rejected when there is no space.
        with KeptConnection(gatebell.port) as connection:
            answer = connection.get(path, "Connection: close")
        seen.answers += answer.status == 200
        sleep(0.02)
