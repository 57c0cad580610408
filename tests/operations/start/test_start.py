"""Tests of `make run`: start without configuration, error messages, and graceful shutdown."""

import json
import os
import pty
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from time import monotonic, sleep

import pytest
import requests
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from models import User
from tests.conftest import KINDS
from tests.operations.conftest import RunHere
from tests.operations.programs import run
from tests.support.service.live import SECRET_KEY, LiveGatebell, running
from tests.support.service.ports import free_port
from web.database.engine import use_engine
from web.database.preparation import prepare_database
from web.database.schema import migrate_to_newest
from web.database.startup_checks import check_schema
from web.settings.environment import parse_settings

_SECONDS = 120
SEVERAL = 4
FIRST = "The first administrator is admin. The password is "


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGatebell]:
    """Run a service without configuration; its last test stops it."""
    path = tmp_path_factory.mktemp("start") / "instance"
    made = LiveGatebell(instance_path=path, database_url="", WEB_CONCURRENCY="1")
    with running(made):
        yield made


@pytest.fixture
def stopped(tmp_path: Path) -> LiveGatebell:
    """Return a stopped service without configuration."""
    return LiveGatebell(instance_path=tmp_path, database_url="", SECRET_KEY=SECRET_KEY)


def wait_for(live: LiveGatebell, words: str, times: int = 1) -> None:
    deadline = monotonic() + _SECONDS
    while live.log_text().count(words) < times:
        assert monotonic() < deadline, live.log_text()
        sleep(0.05)


def password_in(file: Path) -> str:
    return file.read_text().partition("password: ")[2].strip()


def test_the_log_names_the_url_and_the_first_administrator(live: LiveGatebell) -> None:
    wait_for(live, "is ready")
    assert f"Gatebell is ready: {live.url}" in live.log_text()
    assert f"{FIRST}in " in live.log_text()


def test_the_first_password_is_in_a_private_file_and_not_in_the_log(
    live: LiveGatebell,
) -> None:
    line = next(line for line in live.log_text().splitlines() if "The password is in" in line)
    file = Path(line.partition("The password is in ")[2])
    password = password_in(file)
    assert password
    assert password not in live.log_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.long
def test_the_first_password_is_shown_on_a_terminal(
    stopped: LiveGatebell, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, ours = pty.openpty()
    with (
        os.fdopen(terminal, encoding="utf-8") as seen,
        os.fdopen(ours, "w", encoding="utf-8") as output,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stdout", output)
        prepare_database(parse_settings(stopped.environment))
        told = seen.readline()
    password = password_in(stopped.instance_path / "first_administrator.txt")
    assert told.strip() == f"{FIRST}{password}"


@pytest.mark.long
def test_the_first_password_has_to_be_changed(stopped: LiveGatebell) -> None:
    settings = parse_settings(stopped.environment)

    def must_change() -> bool:
        with use_engine(settings) as engine, Session(engine) as session:
            return session.scalars(select(User.must_change_password)).one()

    prepare_database(settings)
    assert must_change()
    # An older release created this account, and its password was never changed.
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        session.execute(update(User).values(must_change_password=False))
    prepare_database(settings)
    assert must_change()
    (stopped.instance_path / "first_administrator.txt").unlink()
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        session.execute(update(User).values(must_change_password=False))
    prepare_database(settings)
    assert not must_change()


@pytest.mark.long
def test_instance_files_are_readable_only_by_their_owner_with_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        settings = parse_settings({"INSTANCE_PATH": str(tmp_path / "made")})
        migrate_to_newest(settings)
    finally:
        os.umask(before)
    modes = {
        file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in (tmp_path / "made").iterdir()
    }
    assert modes.keys() >= {"gatebell.db", "secret_key"}
    assert set(modes.values()) == {"0o600"}
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_several_processes_can_prepare_an_empty_database_simultaneously(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = request.getfixturevalue("postgres").new_database() if kind == "postgres" else ""
    # On SQLite, the first process creates a key for all.
    key = {"DATABASE_URL": url, "SECRET_KEY": SECRET_KEY} if url else {}
    environment = {"INSTANCE_PATH": str(tmp_path), **key}
    all_are_here = Barrier(SEVERAL)

    def start(_number: int) -> None:
        all_are_here.wait(timeout=_SECONDS)
        settings = parse_settings(environment)
        prepare_database(settings)

    with ThreadPoolExecutor(SEVERAL) as threads:
        list(threads.map(start, range(SEVERAL)))
    prepare_database(parse_settings(environment))  # The last start happens later.
    check_schema(parse_settings(environment))
    assert capsys.readouterr().out.count(FIRST) == 1


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
    stopped: LiveGatebell,
    run_here: RunHere,
    variable: str,
    text: str,
    sentence: str,
) -> None:
    port = "" if variable == "HOST" else str(free_port())
    given = {"PORT": port, variable: text}
    # One setting is tested with the program that operators start.
    is_program = variable == "DATABASE_URL"
    begin = run if is_program else run_here
    done = begin(stopped, "make run", **given)
    assert done.returncode == 2
    assert done.stderr.startswith(sentence)
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr + done.stdout


@pytest.mark.long
def test_a_port_in_use_stops_the_start_with_one_sentence(
    stopped: LiveGatebell, run_here: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.server.serve._PORT_WAIT_SECONDS", 0.3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run_here(stopped, "make run", PORT=str(port))
    assert done.returncode == 2
    assert done.stderr == f"PORT: port {port} of 127.0.0.1 is in use. Choose another port.\n"


@pytest.mark.long
def test_a_web_process_that_dies_is_replaced(live: LiveGatebell) -> None:
    booted = [line for line in live.log_text().splitlines() if "Booting worker" in line]
    os.kill(int(json.loads(booted[-1])["message"].rpartition(" ")[2]), signal.SIGKILL)
    wait_for(live, "Booting worker", len(booted) + 1)
    assert {requests.get(f"{live.url}/healthz", timeout=10).status_code for _ in range(9)} == {200}


@pytest.mark.long
def test_a_request_in_flight_is_answered_during_shutdown(live: LiveGatebell) -> None:
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
