"""Tests that a stopping web server accepts requests for SHUTDOWN_DELAY_SECONDS."""

import os
import signal
from time import monotonic, sleep

import pytest

from tests.support.service.live import NewService
from tests.support.wire.kept_connection import KeptConnection

DELAY_SECONDS = 3


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_server_that_stops_serves_new_clients_while_readyz_answers_503(
    new_service: NewService,
) -> None:
    live = new_service("sqlite", only="web", SHUTDOWN_DELAY_SECONDS=str(DELAY_SECONDS))
    live.start()
    try:
        with KeptConnection(live.port) as client:
            assert client.get("/readyz").status == 200
        began = monotonic()
        os.kill(live.pid, signal.SIGTERM)
        while not answers_503(live.port):
            assert monotonic() < began + DELAY_SECONDS
            sleep(0.05)
        with KeptConnection(live.port) as client:
            assert client.get("/users/sign_in").status == 200
        assert live.is_running()
    finally:
        assert live.wait() == 0
    assert monotonic() - began >= DELAY_SECONDS


def answers_503(port: int) -> bool:
    with KeptConnection(port) as client:
        answer = client.get("/readyz")
    return answer.status == 503 and b'"stopping"' in answer.body
