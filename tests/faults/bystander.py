"""Somebody who wants something else while others break things, and may have to wait for them."""

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
    """What somebody saw who asked again and again."""

    answers: int = 0

    def is_served(self) -> None:
        """Wait until they got some answers more: whoever is held up gets none."""
        wanted, deadline = self.answers + _SOME, monotonic() + _PATIENCE_SECONDS
        while self.answers < wanted:
            assert monotonic() < deadline, "held up"
            sleep(0.02)


@contextmanager
def bystander(gatebell: LiveGatebell, path: str = "/users/sign_in") -> Iterator[Bystander]:
    """Ask for something again and again while the block runs, and count the answers."""
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
        # New connections are what is refused first where there is no room.
        with KeptConnection(gatebell.port) as connection:
            answer = connection.get(path, "Connection: close")
        seen.answers += answer.status == 200
        sleep(0.02)
