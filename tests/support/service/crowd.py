"""Runs actions and sends requests at the same moment."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import requests

from tests.support.service.live import LiveGatebell

Returned = TypeVar("Returned")
Send = Callable[[requests.Session], requests.Response]


def run_simultaneously(actions: Sequence[Callable[[], Returned]]) -> list[Returned]:
    """Run all actions at the same moment."""
    barrier = Barrier(len(actions))

    def act(action: Callable[[], Returned]) -> Returned:
        barrier.wait(timeout=60)
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(act, actions))


def send_simultaneously(gatebell: LiveGatebell, sends: Sequence[Send]) -> list[requests.Response]:
    """Send all requests at the same moment, each on its own connection, which is already open."""
    barrier = Barrier(len(sends))

    def send(one: Send) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            session.get(f"{gatebell.url}/healthz")
            barrier.wait(timeout=60)
            return one(session)

    with ThreadPoolExecutor(len(sends)) as pool:
        return list(pool.map(send, sends))
