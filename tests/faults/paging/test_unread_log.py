"""Tests that an unread log does not block the service, and that dropped lines are logged later."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from select import POLLIN, poll
from time import monotonic
from typing import Any

import pytest
import requests

from tests.faults.processes import children, wait_until, web_processes
from tests.support.alerts.senders import connect
from tests.support.service.live import ROOT, LiveGatebell, NewService

_ASKED = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
#: Requests whose lines exceed a process's buffer, and the number that is sent together.
_MANY, _AT_ONCE = 12_000, 50
_SECONDS = 120


@dataclass
class Pipe:
    """Represents the output of programs, of which the reader reads only on request."""

    reading: int
    writing: int

    def fill(self) -> int:
        """Fill the pipe, as if it had been unread for long, and return the number of bytes."""
        os.set_blocking(self.writing, False)
        count = 0
        try:
            while True:
                count += os.write(self.writing, b"\n")
        except BlockingIOError:
            os.set_blocking(self.writing, True)
            return count

    def has_more(self, seconds: float) -> bool:
        """Wait at most this number of seconds for output, and return whether there is any."""
        # Unlike `select`, `poll` accepts descriptors above 1023, which many connections can need.
        ready = poll()
        ready.register(self.reading, POLLIN)
        return bool(ready.poll(seconds * 1000))

    def lines_until(self, pattern: str) -> list[str]:
        """Read until a line matches the pattern, and return all lines."""
        found, deadline = b"", monotonic() + _SECONDS
        while not re.search(pattern.encode() + rb".*\n", found):
            assert monotonic() < deadline, found[-2000:]
            if self.has_more(0.1):
                found += os.read(self.reading, 1024 * 1024)
        return found.decode().splitlines()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Open a pipe and fill it."""
    made = Pipe(*os.pipe())
    made.fill()
    yield made
    os.close(made.reading)
    os.close(made.writing)


@pytest.fixture
def live(new_service: NewService, pipe: Pipe) -> Iterator[LiveGatebell]:
    """Run a service that writes to the pipe."""
    made = new_service("sqlite", WEB_CONCURRENCY="1")
    made.output = pipe.writing
    made.start()
    yield made
    if made.is_running():
        made.stop()


def ask_often(live: LiveGatebell) -> None:
    """Send many requests on one connection, and wait for all responses."""
    with socket.create_connection(("127.0.0.1", live.port), timeout=_SECONDS) as client:
        for _ in range(_MANY // _AT_ONCE):
            client.sendall(_ASKED * _AT_ONCE)
            answer = b""
            while answer.count(b"HTTP/1.1 200") < _AT_ONCE or not answer.endswith(b"}\n"):
                piece = client.recv(65_536)
                assert piece
                answer += piece


@pytest.fixture
def emptied(live: LiveGatebell, pipe: Pipe) -> LiveGatebell:
    """Return the service after all lines of its start were read."""
    assert requests.get(f"{live.url}/healthz", timeout=10).status_code == 200
    pipe.lines_until('"route":"/healthz"')
    return live


def ask(live: LiveGatebell, path: str, times: int) -> None:
    """Send requests one after another on one connection."""
    with requests.Session() as client:
        for number in range(times):
            client.get(f"{live.url}{path}?{number}", timeout=_SECONDS)


def numbers_of(lines: list[dict[str, Any]], route: str) -> int:
    return sum(line.get("route") == route for line in lines)


@pytest.mark.long
def test_eight_clients_are_answered_and_logged_while_the_log_is_unread(
    emptied: LiveGatebell, pipe: Pipe
) -> None:
    with ThreadPoolExecutor(8) as clients:
        for asked in [clients.submit(ask, emptied, "/healthz", 250) for _ in range(8)]:
            asked.result()
    assert pipe.has_more(0)
    lines = read_more(pipe)
    assert numbers_of(lines, "/healthz") == 8 * 250
    times = [line["time"] for line in lines if line.get("route") == "/healthz"]
    assert times == sorted(times)


@pytest.mark.long
def test_a_killed_web_process_has_logged_its_responses(emptied: LiveGatebell, pipe: Pipe) -> None:
    processes = web_processes(emptied)
    ask(emptied, "/healthz", 100)
    for each in processes:
        os.kill(each, signal.SIGKILL)
    # The last response is sent before its line is written.
    assert numbers_of(read_more(pipe), "/healthz") >= 99


def metric(live: LiveGatebell, name: str) -> float:
    text = requests.get(f"{live.url}/metrics", timeout=10).text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


@pytest.mark.long
def test_requests_continue_while_the_log_is_unread_and_dropped_lines_are_counted(
    live: LiveGatebell, pipe: Pipe
) -> None:
    endpoint = connect(live)
    ask_often(live)
    assert requests.get(f"{live.url}/healthz", timeout=10).status_code == 200
    assert endpoint.post(b'{"title": "the disk is full"}').status_code == 200
    # The worker also runs, and the supervisor can restart it.
    wait_until(lambda: metric(live, "gatebell_worker_last_seen_timestamp_seconds"))
    (worker,) = workers_of(live)
    os.kill(worker, 9)
    wait_until(lambda: workers_of(live) not in ([], [worker]))
    wait_until(lambda: metric(live, "gatebell_dropped_log_lines_total"))
    dropped = metric(live, "gatebell_dropped_log_lines_total")

    lines = [json.loads(line) for line in pipe.lines_until('"dropped"') if line.startswith("{")]
    missing = [line for line in lines if "dropped" in line]
    assert missing[0]["level"] == "WARNING"
    assert missing[0]["event"] == "log.lines_dropped"
    assert missing[0]["dropped"] >= dropped
    # Each of the many requests has a line or was counted as dropped.
    written = sum(line.get("route") == "/healthz" for line in lines)
    assert written + missing[0]["dropped"] >= _MANY
    assert written < _MANY
    assert any(line.get("event") == "supervisor.process_exited" for line in lines + read_more(pipe))


def read_more(pipe: Pipe) -> list[dict[str, Any]]:
    """Return the available lines of all processes."""
    found = b""
    while pipe.has_more(1):
        found += os.read(pipe.reading, 1024 * 1024)
    return [json.loads(line) for line in found.splitlines() if line.startswith(b"{")]


def workers_of(live: LiveGatebell) -> list[int]:
    found = children(live.pid)
    return [pid for pid, words in found if "web.jobs.worker" in words and "defunct" not in words]


@pytest.mark.long
def test_a_service_with_an_unread_log_stops_on_a_signal(live: LiveGatebell) -> None:
    began = monotonic()
    assert live.stop() == 0
    assert monotonic() - began < 30


#: Program that writes more than the buffer holds; then a forked child writes as well.
_TALKATIVE = """
import os, sys
if "gevent" in sys.argv:
    from gevent import monkey
    monkey.patch_all()
from web.standard_streams import unblock_standard_streams
unblock_standard_streams()
for number in range(int(sys.argv[1])):
    sys.stderr.write(f"{number} {'x' * 200}\\n")
if not os.fork():
    sys.stderr.write("the child\\n")
    sys.exit(0)
os.wait()
sys.stderr.write("the parent\\n")
"""


def talk(lines: int, kind: str, output: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", _TALKATIVE, str(lines), kind]
    return subprocess.Popen(command, cwd=ROOT, stderr=output)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gevent", "plain"])
def test_a_program_ends_in_time_although_its_last_lines_are_unread(kind: str, pipe: Pipe) -> None:
    with talk(20_000, kind, pipe.writing) as program:
        assert program.wait(60) == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gevent", "plain"])
def test_lines_of_forked_processes_are_written_once_and_in_order(kind: str) -> None:
    pipe = Pipe(*os.pipe())
    with talk(500, kind, pipe.writing) as program:
        lines = pipe.lines_until("the parent")
        assert program.wait(60) == 0
    assert [int(line.split()[0]) for line in lines if "xx" in line] == list(range(500))
    assert lines.count("the child") == 1
    os.close(pipe.reading)
    os.close(pipe.writing)


@pytest.mark.long
def test_a_program_ends_normally_without_a_reader() -> None:
    pipe = Pipe(*os.pipe())
    os.close(pipe.reading)
    with talk(500, "plain", pipe.writing) as program:
        assert program.wait(60) == 0
    os.close(pipe.writing)
