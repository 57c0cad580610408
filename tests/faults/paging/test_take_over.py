"""Tests that a new server takes over from a running one (SIGUSR2), as in an upgrade."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic, sleep

import pytest

from tests.faults.processes import children
from tests.support.service.live import LiveGatebell, NewService

SECONDS = 60


@pytest.fixture
def server(new_service: NewService) -> LiveGatebell:
    live = new_service(only="web", WEB_CONCURRENCY="1")
    live.start()
    return live


@pytest.fixture
def successor(server: LiveGatebell) -> Iterator[int]:
    """Start the new server, and wait until it has a web process."""
    os.kill(server.pid, signal.SIGUSR2)
    deadline = monotonic() + SECONDS
    try:
        while not (found := [pid for pid, _ in children(server.pid) if children(pid)]):
            assert monotonic() < deadline, server.log_text()
            sleep(0.1)
    except AssertionError:
        server.stop()
        raise
    yield found[0]
    with suppress(ProcessLookupError):
        os.kill(found[0], signal.SIGKILL)


def _is_there(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.long
def test_the_new_server_accepts_requests_and_can_be_stopped(
    server: LiveGatebell, successor: int
) -> None:
    assert server.stop() == 0
    with server.http() as client:
        assert client.get(f"{server.url}/healthz").status_code == 200
    os.kill(successor, signal.SIGTERM)
    deadline = monotonic() + SECONDS
    while _is_there(successor) and monotonic() < deadline:
        sleep(0.1)
    assert not _is_there(successor)
