"""The service is told to stop under load: what has reached it is answered."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from time import sleep

import pytest

from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.slow_clients import webhook_of
from tests.faults.test_killed_workers import children, web_processes
from tests.support.kept_connection import KeptConnection, asked
from tests.support.live import LiveGatebell
from tests.support.plain_server import running_plain_server
from tests.support.senders import connect

QUEUE = 15
WEB_PROCESSES = 2


@pytest.mark.spec("I1")
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "new"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_has_reached_the_service_is_answered_before_it_stops(
    kind: str, request: pytest.FixtureRequest, start: Start, *, kept: bool
) -> None:
    url = request.getfixturevalue("new_postgres")() if kind == "postgres" else ""
    live = start(url)
    endpoint = connect(live)
    with load_on(endpoint, kept=kept) as answers:
        sleep(1.5)
        os.kill(live.pid, signal.SIGTERM)
        assert live.wait() == 0
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert set(account.answered) == {200}
    assert account.stored == account.answered[200]
    # A connection may come between a process's last look at the queue and its close.
    assert account.reset <= (0 if kept else WEB_PROCESSES)
    assert "Traceback" not in live.log_text()


@pytest.fixture
def busy(start: Start) -> LiveGatebell:
    return start("", WEB_CONCURRENCY="1")


def test_connections_in_the_queue_are_answered(busy: LiveGatebell) -> None:
    endpoint = connect(busy)
    (worker,) = web_processes(busy)
    server = next(pid for pid, words in children(busy.pid) if "gunicorn" in words)
    with ExitStack() as opened:
        os.kill(worker, signal.SIGSTOP)  # so that nobody takes them out
        waiting = [opened.enter_context(KeptConnection(busy.port)) for _ in range(QUEUE)]
        for number, client in enumerate(waiting):
            client.socket.sendall(webhook_of(endpoint, f"in the queue {number}"))
        os.kill(server, signal.SIGTERM)
        sleep(0.5)
        os.kill(worker, signal.SIGCONT)
        answers = [client.answer() for client in waiting]
        assert [answer.status for answer in answers] == [200] * QUEUE
        assert {answer.headers["connection"] for answer in answers} == {"close"}


def test_kept_connections_are_ended_without_a_reset(busy: LiveGatebell) -> None:
    with ExitStack() as opened:
        idle = [opened.enter_context(KeptConnection(busy.port)) for _ in range(QUEUE)]
        late = opened.enter_context(KeptConnection(busy.port))
        for client in (*idle, late):
            assert client.get("/healthz").headers["connection"] == "keep-alive"
        os.kill(busy.pid, signal.SIGTERM)
        sleep(0.3)
        late.socket.sendall(asked("/healthz"))
        answer = late.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert {client.rest() for client in (*idle, late)} == {b""}
        assert busy.wait() == 0


def test_who_is_silent_keeps_nobody_from_stopping(busy: LiveGatebell) -> None:
    with ExitStack() as opened:
        for _ in range(QUEUE):
            opened.enter_context(KeptConnection(busy.port))
        os.kill(busy.pid, signal.SIGTERM)
        assert busy.wait() == 0
    assert "did not end in time" not in busy.log_text()


_SLOW_TO_BEGIN = """
from pathlib import Path
from runpy import run_path
from pathlib import Path
from time import sleep

globals().update(run_path("gunicorn.conf.py"))


def post_fork(_server, _worker):
    Path({told!r}).touch()
    sleep(2)
"""


def test_a_web_process_that_is_just_beginning_stops_as_well(tmp_path: Path) -> None:
    told, configuration = tmp_path / "told", tmp_path / "slow.conf.py"
    configuration.write_text(_SLOW_TO_BEGIN.format(told=str(told)))
    with running_plain_server(tmp_path, "--config", str(configuration)) as server:
        while not told.exists():
            sleep(0.05)
        server.process.terminate()
        assert server.process.wait(15) == 0
