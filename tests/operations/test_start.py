"""`make run`: it starts with nothing set up, says what is wrong, and stops gently."""

import json
import os
import pty
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from time import monotonic, sleep

import pytest
import requests

from tests.support.service.live import ROOT, SECRET_KEY, LiveGatebell, NewService, running
from web.database.schema import migrate
from web.jobs.worker import open_queue
from web.settings.reader import Settings, read_settings

_SECONDS = 120


def serve(**variables: str) -> subprocess.CompletedProcess[str]:
    """Start it with settings that stop it, and return what it said."""
    ours = {each.name.upper() for each in fields(Settings)}
    rest = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run(
        [sys.executable, "-m", "web.server.serve"],
        cwd=ROOT,
        env=rest | variables,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGatebell]:
    """A service for which nothing was set up; who stops it starts it again."""
    path = tmp_path_factory.mktemp("start") / "instance"
    made = LiveGatebell(instance_path=path, database_url="", WEB_CONCURRENCY="1")
    with running(made):
        yield made


def wait_for(live: LiveGatebell, words: str, times: int = 1) -> None:
    deadline = monotonic() + _SECONDS
    while live.log_text().count(words) < times:
        assert monotonic() < deadline, live.log_text()
        sleep(0.05)


def test_it_says_where_it_is_and_who_the_first_administrator_is(live: LiveGatebell) -> None:
    wait_for(live, "is ready")
    assert f"Gatebell is ready: {live.url}" in live.log_text()
    assert "The first administrator is admin, the password is in " in live.log_text()


def test_the_first_password_is_kept_for_its_owner_and_comes_into_no_log(
    live: LiveGatebell,
) -> None:
    line = next(line for line in live.log_text().splitlines() if "the password is in" in line)
    file = Path(line.partition("the password is in ")[2])
    password = file.read_text().partition("password: ")[2].strip()
    assert password
    assert password not in live.log_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_who_watches_a_terminal_is_told_the_first_password(new_service: NewService) -> None:
    live = new_service("sqlite", WEB_CONCURRENCY="1")
    terminal, ours = pty.openpty()
    command = [sys.executable, "-m", "web.server.serve"]
    started = subprocess.Popen(
        command, cwd=ROOT, env=live.environment, stdout=ours, stderr=subprocess.DEVNULL
    )
    os.close(ours)
    with os.fdopen(terminal, encoding="utf-8") as seen:
        line = next(line for line in seen if "The first administrator is" in line)
        assert any("is ready" in line for line in seen)
        started.terminate()
        assert started.wait(_SECONDS) in {0, 1}
    kept = (live.instance_path / "first_administrator.txt").read_text()
    password = kept.partition("password: ")[2].strip()
    assert line.strip() == f"The first administrator is admin, the password {password}"


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_what_is_kept_is_for_its_owner_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        settings = read_settings({"INSTANCE_PATH": str(tmp_path / "made")})
        migrate(settings)
        open_queue(settings).storage.close()
    finally:
        os.umask(before)
    modes = {
        file.name: oct(stat.S_IMODE(file.stat().st_mode))
        for file in (tmp_path / "made").iterdir()
        if file.name != "migrate.lock"
    }
    assert modes.keys() >= {"gatebell.db", "queue.db", "secret_key"}
    assert set(modes.values()) == {"0o600"}
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_several_that_start_at_once_on_an_empty_database_all_start(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("postgres").new_database() if kind == "postgres" else ""
    several = [
        LiveGatebell(instance_path=tmp_path, database_url=url, WEB_CONCURRENCY="1")
        for _ in range(2)
    ]
    try:
        with ThreadPoolExecutor() as threads:
            list(threads.map(LiveGatebell.start, several))
        ready = {requests.get(f"{each.url}/readyz", timeout=10).status_code for each in several}
    finally:
        statuses = {each.stop() for each in several}
    assert ready == {200}
    assert statuses == {0}
    assert several[0].log_text().count("The first administrator is ") == 1


@pytest.mark.parametrize(
    ("variable", "text", "sentence"),
    [
        ("PORT", "80x", "PORT must be a whole number from 1 to 65535, not '80x'.\n"),
        ("HOST", "203.0.113.1", "HOST, PORT: cannot listen on port 8000 of 203.0.113.1: "),
        (
            "DATABASE_URL",
            "postgresql://alice:hunter2@127.0.0.1:1/gatebell",
            "DATABASE_URL: the database cannot be used: ",
        ),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_sentence(
    tmp_path: Path, unused_port: str, variable: str, text: str, sentence: str
) -> None:
    port = {} if variable == "HOST" else {"PORT": unused_port}
    key = {"SECRET_KEY": SECRET_KEY}
    done = serve(**{"INSTANCE_PATH": str(tmp_path), **port, **key, variable: text})
    assert done.returncode == 2
    assert done.stderr.startswith(sentence)
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr + done.stdout


@pytest.fixture
def unused_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_a_port_in_use_stops_the_start_with_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = serve(INSTANCE_PATH=str(tmp_path), PORT=str(port))
    assert done.returncode == 2
    assert done.stderr == f"PORT: port {port} of 127.0.0.1 is in use; choose another one.\n"


def test_a_request_in_flight_when_told_to_stop_is_answered_and_the_next_start_says_no_password(
    live: LiveGatebell,
) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=20) as connection:
        head = "POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 20\r\n\r\n"
        connection.sendall(f"{head}{form}grant_type".encode())
        sleep(0.5)
        os.kill(live.pid, signal.SIGTERM)
        sleep(0.5)
        connection.sendall(b"=unknown_1")
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"error" in answer
    assert live.wait() == 0
    live.start()
    assert live.log_text().count("The first administrator is ") == 1


def test_a_web_process_that_dies_is_replaced(live: LiveGatebell) -> None:
    booted = [line for line in live.log_text().splitlines() if "Booting worker" in line]
    os.kill(int(json.loads(booted[-1])["message"].rpartition(" ")[2]), signal.SIGKILL)
    wait_for(live, "Booting worker", len(booted) + 1)
    assert {requests.get(f"{live.url}/healthz", timeout=10).status_code for _ in range(9)} == {200}
