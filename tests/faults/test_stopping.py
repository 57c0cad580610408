"""Tests that requests which have arrived are answered when the service stops under load."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.processes import is_held, wait_until, web_processes
from tests.faults.slow_clients import webhook_of
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.service.plain_server import running_plain_server
from tests.support.wire.kept_connection import KeptConnection

QUEUE = 15
WEB_PROCESSES = 2


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("the service is stopped")
@pytest.mark.parametrize(
    ("kind", "only", "kept"),
    [
        pytest.param("sqlite", "", True, id="sqlite-kept"),
        pytest.param("postgres", "web", False, id="postgres-new"),
        pytest.param("sqlite", "", False, id="sqlite-new", marks=pytest.mark.faults_full),
        pytest.param("postgres", "", True, id="postgres-kept", marks=pytest.mark.faults_full),
    ],
)
def test_received_requests_are_answered_before_the_service_stops(
    start: Start, kind: str, only: str, *, kept: bool
) -> None:
    live = start(kind, only=only)
    endpoint = connect(live)
    with load_on(endpoint, kept=kept) as answers:
        answers.wait_for(40)
        os.kill(live.pid, signal.SIGTERM)
        assert live.wait() == 0
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert set(account.answered) == {200}
    assert account.stored == account.answered[200]
    # A connection can arrive between a process's last check of the queue and its close.
    assert account.reset <= (0 if kept else WEB_PROCESSES)
    assert "Traceback" not in live.log_text()


@pytest.fixture
def busy(start: Start) -> LiveGatebell:
    # A process that is stopped for a long time is not replaced, even on a slow machine.
    patience = {"GUNICORN_CMD_ARGS": "--timeout 120", "GRACEFUL_TIMEOUT_SECONDS": "60"}
    return start("sqlite", only="web", WEB_CONCURRENCY="1", **patience)


@pytest.mark.long
def test_connections_in_the_queue_are_answered(busy: LiveGatebell) -> None:
    endpoint = connect(busy)
    (worker,) = web_processes(busy)
    with ExitStack() as opened:
        os.kill(worker, signal.SIGSTOP)  # The stopped worker does not accept the connections.
        # If both signals are pending, Linux delivers SIGTERM first.
        wait_until(lambda: is_held(worker))
        waiting = [opened.enter_context(KeptConnection(busy.port)) for _ in range(QUEUE)]
        for number, client in enumerate(waiting):
            client.socket.sendall(webhook_of(endpoint, f"in the queue {number}"))
        os.kill(busy.pid, signal.SIGTERM)
        wait_until(lambda: has_pending_sigterm(worker))
        os.kill(worker, signal.SIGCONT)
        answers = [client.answer() for client in waiting]
        assert [answer.status for answer in answers] == [200] * QUEUE
        assert {answer.headers["connection"] for answer in answers} == {"close"}


def has_pending_sigterm(pid: int) -> bool:
    """Return whether a stopped process has a pending SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    pending = int(status.partition("ShdPnd:")[2].split()[0], 16)
    return bool(pending & 1 << signal.SIGTERM - 1)


@pytest.mark.long
def test_idle_connections_are_closed_without_a_reset_or_a_delay(
    busy: LiveGatebell,
) -> None:
    with ExitStack() as opened:
        for _ in range(QUEUE):
            opened.enter_context(KeptConnection(busy.port))
        idle = [opened.enter_context(KeptConnection(busy.port)) for _ in range(QUEUE)]
        late = opened.enter_context(KeptConnection(busy.port))
        for client in (*idle, late):
            assert client.get("/healthz").headers["connection"] == "keep-alive"
        os.kill(busy.pid, signal.SIGTERM)
        # Connections are kept until the process has handled the signal.
        while (answer := late.get("/healthz")).headers["connection"] == "keep-alive":
            assert answer.status == 200
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert {client.rest() for client in (*idle, late)} == {b""}
        assert busy.wait() == 0
    assert '"server.requests_canceled"' not in busy.log_text()


_SLOW_TO_BEGIN = """
from pathlib import Path
from runpy import run_path
from time import sleep

globals().update(run_path("gunicorn.conf.py"))


def post_fork(_server, _worker):
    Path({told!r}).touch()
    sleep(2)
"""


@pytest.mark.long
def test_a_web_process_stops_while_it_is_starting(tmp_path: Path) -> None:
    told, configuration = tmp_path / "told", tmp_path / "slow.conf.py"
    configuration.write_text(_SLOW_TO_BEGIN.format(told=str(told)))
    with running_plain_server(tmp_path, "--config", str(configuration)) as server:
        wait_until(told.exists)
        server.process.terminate()
        assert server.process.wait(30) == 0
