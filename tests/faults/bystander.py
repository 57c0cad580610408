"""Somebody who wants something else while others break things, and may have to wait for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic, sleep

from tests.support.kept_connection import KeptConnection
from tests.support.live import LiveGatebell


@dataclass
class Bystander:
    """What somebody saw who asked again and again."""

    #: Seconds until an answer, the longest one.
    longest: float = 0.0
    answers: int = 0


@contextmanager
def bystander(gatebell: LiveGatebell, path: str = "/users/sign_in") -> Iterator[Bystander]:
    """Ask for something again and again while the block runs, and look at the clock."""
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
        began = monotonic()
        # New connections are what is refused first where there is no room.
        with KeptConnection(gatebell.port) as connection:
            answer = connection.get(path, "Connection: close")
        seen.longest = max(seen.longest, monotonic() - began)
        seen.answers += answer.status == 200
        sleep(0.02)
