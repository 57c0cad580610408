"""Tests that alert intake continues when the worker or the supervisor dies under load."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.conftest import KINDS
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.processes import children, wait_until
from tests.support.alerts.senders import connect
from tests.support.service.live import ROOT, LiveGatebell, NewService, running


@pytest.fixture(scope="module", params=KINDS)
def live(request: pytest.FixtureRequest, new_service: NewService) -> Iterator[LiveGatebell]:
    """Run a service with all its programs; a test restarts the programs that it ends for good."""
    with running(new_service(request.param, WEB_CONCURRENCY="1")) as started:
        yield started


def pids_of(live: LiveGatebell, program: str) -> list[int]:
    return [pid for pid, words in children(live.pid) if program in words and "defunct" not in words]


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("the worker is killed")
def test_alert_intake_continues_when_the_worker_dies_and_is_restarted(live: LiveGatebell) -> None:
    endpoint = connect(live)
    wait_until(lambda: pids_of(live, "web.jobs.worker"))
    (first,) = pids_of(live, "web.jobs.worker")
    with load_on(endpoint) as answers:
        os.kill(first, signal.SIGKILL)
        answers.fault_ends()
        wait_until(lambda: pids_of(live, "web.jobs.worker") not in ([], [first]))
        answers.wait_for(20)
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert set(account.answered) == {200}
    assert account.reset == 0
    assert live.logged_line('"event":"supervisor.process_exited"')
    seen = "gatebell_worker_last_seen_timestamp_seconds "
    wait_until(lambda: seen in requests.get(f"{live.url}/metrics", timeout=10).text)


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("the worker hangs")
def test_a_worker_that_hangs_is_restarted_without_delaying_alerts(
    live: LiveGatebell,
) -> None:
    endpoint = connect(live)
    wait_until(lambda: has_started(live))
    (first,) = pids_of(live, "web.jobs.worker")
    with load_on(endpoint) as answers:
        os.kill(first, signal.SIGSTOP)
        answers.fault_ends()
        # It takes half a minute to detect the worker, so a few alerts per second are enough.
        answers.pause_seconds = 0.5
        wait_until(lambda: pids_of(live, "web.jobs.worker") not in ([], [first]), seconds=120)
        answers.wait_for(20)
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert set(account.answered) == {200}
    assert live.logged_line('"event":"supervisor.process_hung"')


def has_started(live: LiveGatebell) -> bool:
    """Return whether the last worker has started."""
    text = live.log_text()
    return text.rfind('"worker.started"') > text.rfind('"supervisor.process_exited"')


@pytest.mark.long
@pytest.mark.spec("I1")
def test_a_killed_web_server_is_restarted_and_the_worker_continues(live: LiveGatebell) -> None:
    (server,) = pids_of(live, "-m gunicorn")
    (worker,) = pids_of(live, "web.jobs.worker")
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: pids_of(live, "-m gunicorn") not in ([], [server]))
    wait_until(lambda: answers_again(live))
    assert pids_of(live, "web.jobs.worker") == [worker]
    assert live.logged_line('"program":"web"')


def answers_again(live: LiveGatebell) -> bool:
    try:
        return requests.get(f"{live.url}/healthz", timeout=10).status_code == 200
    except requests.ConnectionError:
        return False


@pytest.mark.long
def test_a_worker_sends_watchdog_notifications_to_systemd(
    live: LiveGatebell, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.settimeout(60)
        systemd.bind(str(tmp_path / "notify"))
        environment = live.environment | {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        command = [sys.executable, "-m", "web.jobs.worker"]
        with subprocess.Popen(command, cwd=ROOT, env=environment) as worker:
            try:
                assert [systemd.recv(100) for _ in range(3)] == [
                    b"READY=1",
                    b"WATCHDOG=1",
                    b"WATCHDOG=1",
                ]
            finally:
                worker.kill()


@pytest.mark.long
def test_a_container_s_worker_is_restarted_and_stops_on_a_signal(live: LiveGatebell) -> None:
    command = [sys.executable, "-m", "web.server.serve_worker"]
    with subprocess.Popen(command, cwd=ROOT, env=live.environment) as supervisor:
        try:
            wait_until(lambda: workers_of(supervisor))
            (first,) = workers_of(supervisor)
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: workers_of(supervisor) not in ([], [first]))
            supervisor.terminate()
            assert supervisor.wait(60) == 0
        finally:
            supervisor.kill()


def workers_of(supervisor: "subprocess.Popen[bytes]") -> list[int]:
    found = children(supervisor.pid)
    return [pid for pid, words in found if "web.jobs.worker" in words and "defunct" not in words]


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("the supervisor is killed and started again")
def test_a_killed_supervisor_leaves_no_process_and_can_be_restarted(
    live: LiveGatebell,
) -> None:
    endpoint = connect(live)
    (watchdog,) = pids_of(live, "web.server.watchdog")
    left = [pid for pid, _ in children(live.pid)]
    begun = live.log_text().count('"worker.started"')
    with load_on(endpoint) as answers:
        answers.wait_for(10)
        os.kill(live.pid, signal.SIGKILL)
        live.wait()
        live.start()
        answers.fault_ends()
        answers.wait_for(10)
    assert_nothing_was_lost(live, endpoint, answers)
    wait_until(lambda: not any(map(is_alive, left)))
    assert watchdog in left
    # A worker that gets the stop signal before it has started is ended by the signal.
    wait_until(lambda: live.log_text().count('"worker.started"') > begun)
    assert live.stop() == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", live.port)) != 0


def is_alive(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except FileNotFoundError:
        return False
    return words[0] != "Z"
