"""The complete service as users run it: the program of `make run` on a port of loopback."""

import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import requests
from flask import Flask
from sqlalchemy import Engine

from app import create_app
from tests.support.service.ports import free_port
from tests.support.service.secrets_seen import SECRETS
from tests.support.sign_in.password_rules import ENVIRONMENT as CHEAP_PASSWORDS
from web.database.engine import open_engine
from web.extensions import db
from web.services import get_services
from web.settings.environment import Settings, parse_settings

ROOT = Path(__file__).parents[3]
#: Secret key of services on Postgres without another one.
SECRET_KEY = "the key of tests that give no other, which everybody knows"
#: Command of docs/scaling-out.md for hosts with their own supervisor.
WEB_SERVER = (str(Path(sys.executable).parent / "gunicorn"), "--config", "gunicorn.conf.py")
_START_SECONDS = 180
_STOP_SECONDS = 120


class Done(NamedTuple):
    """Result of a command."""

    returncode: int
    stdout: str
    stderr: str


def _object_in(done: Done, arguments: tuple[str, ...]) -> dict[str, Any]:
    assert done.returncode == 0, f"gatebell {' '.join(arguments)}: {done.stderr}"
    printed = json.loads(done.stdout)
    assert isinstance(printed, dict)
    return printed


#: Running services.
_running: set["LiveGatebell"] = set()
#: Log lines that report a problem.
_COMPLAINT = re.compile(r'"level":"(?:WARNING|ERROR|CRITICAL)"|"status":5\d\d|^(?!\{)')
_MOST_COMPLAINTS = 30
_LONGEST_COMPLAINT = 3_000


def complaints() -> dict[str, str]:
    """Return the last warnings and errors in the logs of the running services, by their URLs."""
    return {live.url: live.complaints() for live in _running}


class LiveGatebell:
    """A running service with its own database and directory."""

    def __init__(
        self,
        *,
        instance_path: Path,
        database_url: str,
        host: str = "127.0.0.1",
        only: str = "",
        **settings: str,
    ) -> None:
        self.instance_path = instance_path
        self.database_url = database_url or f"sqlite:///{instance_path / 'gatebell.db'}"
        self.port = free_port()
        self.url = f"{'https' if 'TLS_CERTIFICATE' in settings else 'http'}://{host}:{self.port}"
        # Postgres needs a secret key; on SQLite `make run` generates one.
        key = {"SECRET_KEY": SECRET_KEY} if database_url or only else {}
        self.environment = _environment_without_settings() | {
            "PORT": str(self.port),
            "BASE_URL": self.url,
            "INSTANCE_PATH": str(instance_path),
            "DATABASE_URL": self.database_url,
            # All clients of the tests share one address.
            "SIGN_IN_ATTEMPTS_PER_ADDRESS": "100000",
            "USER_CODE_ATTEMPTS_PER_ADDRESS": "100000",
            "OAUTH_RATE_LIMIT": "1000000/minute",
            # Browsers of tests stay signed in for the whole run.
            "ADMINISTRATOR_PROOF_SECONDS": "86400",
            # Receivers of tests listen at this address.
            "OUTGOING_PRIVATE_ADDRESSES": "127.0.0.0/8",
            "OUTGOING_CONTACT_HOSTS": "127.0.0.1:1-65535",
            # A busy machine needs more time to accept connections.
            "DATABASE_CONNECT_TIMEOUT_SECONDS": "30",
            **CHEAP_PASSWORDS,
            **key,
            **settings,
        }
        #: Program of the service; the web server without the wrapper of `make run` starts twice as
        #: fast.
        self.program: tuple[str, ...] = WEB_SERVER if only == "web" else ("-m", "web.server.serve")
        #: Folder of the code and Python interpreter; tests may change both and the environment
        #: between starts.
        self.code = ROOT
        self.python = sys.executable
        #: File descriptor that is used instead of the log file.
        self.output: int | None = None
        self._log = instance_path / "log"
        self._sessions: list[requests.Session] = []
        self._engine: Engine | None = None
        self._apps: dict[tuple[tuple[str, str], ...], Flask] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the service, and wait until it responds."""
        self.instance_path.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.python, *self.program],
                cwd=self.code,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log if self.output is None else self.output,
                stderr=log if self.output is None else self.output,
            )
        _running.add(self)
        deadline = monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or monotonic() > deadline:
                self.stop()
                raise AssertionError(f"The service did not start:\n{self.log_text()}")
            sleep(0.05)

    def stop(self) -> int:
        """Stop the service as an operator would, and return the exit status."""
        for session in self._sessions:
            session.close()
        assert self._process is not None
        _running.discard(self)
        self._process.terminate()
        return self.wait()

    def engine(self) -> Engine:
        """Return an engine for its database; one engine is reused, because opening it is slow."""
        if self._engine is None:
            self._engine = open_engine(parse_settings(self.environment))
        return self._engine

    def app(self) -> Flask:
        """Return an app of this process with the service's settings, cached by environment."""
        environment = tuple(sorted(self.environment.items()))
        if environment not in self._apps:
            self._apps[environment] = create_app(parse_settings(self.environment))
        return self._apps[environment]

    def wait(self) -> int:
        """Wait until the service has stopped, and return the exit status."""
        assert self._process is not None
        self.close()
        try:
            return self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def close(self) -> None:
        """Close apps and connections that tests opened for the service."""
        for app in self._apps.values():
            close_app(app)
        self._apps.clear()
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def is_running(self) -> bool:
        """Return whether the service was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Id of the process that supervises all others."""
        assert self._process is not None
        return self._process.pid

    def http(self) -> requests.Session:
        """Return a client with its own cookies, like a new browser."""
        session = requests.Session()
        session.trust_env = False  # Requests to loopback use no proxy.
        if certificate := self.environment.get("TLS_CERTIFICATE"):
            session.verify = certificate
        self._sessions.append(session)
        return session

    def cli(self, *arguments: str, stdin: str = "") -> dict[str, Any]:
        """Run `gatebell …` in this process, and return the object that it prints.

        A separate program takes seconds to start. Tests with `printed` and `run_program` show that
        it behaves the same.
        """
        return _object_in(self.run_cli(*arguments, stdin=stdin), arguments)

    def run_cli(self, *arguments: str, stdin: str = "") -> Done:
        """Run `gatebell …` in this process; the command may fail."""
        app = self.app()
        try:
            done = app.test_cli_runner().invoke(args=arguments, input=stdin)
        finally:
            close_app(app)
        # The next command needs them immediately; a restored backup has another secret key.
        if {"settings", "restore"} & set(arguments):
            self._apps.clear()
        return Done(done.exit_code, done.stdout, done.stderr)

    def printed(self, *arguments: str, stdin: str = "") -> dict[str, Any]:
        """Run `gatebell …` as a program and return the object that it prints."""
        return _object_in(self.run_program(*arguments, stdin=stdin), arguments)

    def run_program(self, *arguments: str, stdin: str = "") -> Done:
        """Run `gatebell …` as a program; the command may fail."""
        done = subprocess.run(
            [self.python, "gatebell.py", *arguments],
            cwd=self.code,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def keep_log(self) -> AbstractContextManager[None]:
        """Do nothing: the processes of the service write their log anyway."""
        return nullcontext()

    def complaints(self) -> str:
        """Return the last lines of the log that are warnings or errors."""
        lines = (line[:_LONGEST_COMPLAINT] for line in self.log_text().splitlines())
        found = [line for line in lines if _COMPLAINT.search(line)]
        return "\n".join(found[-_MOST_COMPLAINTS:])

    def log_text(self) -> str:
        """Return the complete log so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def logged_line(self, words: str) -> str:
        """Wait for a log line with these words and return the first one.

        Lines are written after the response.
        """
        deadline = monotonic() + 10
        while not (found := [each for each in self.log_text().splitlines() if words in each]):
            assert monotonic() < deadline, f"Nothing was logged with {words}."
            sleep(0.02)
        return found[0]

    def _answers(self) -> bool:
        # With `requests`, a hundred attempts would take half as long as the start itself.
        place = urlsplit(self.url)
        connection = _connection(place, timeout=5)
        try:
            connection.request("GET", f"{place.path}/healthz")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


#: Function that creates a service for a database, with settings.
NewService = Callable[..., LiveGatebell]


@contextmanager
def running(live: LiveGatebell) -> Iterator[LiveGatebell]:
    """Run a service; at the end it has to stop cleanly, without a secret in its log."""
    live.start()
    try:
        yield live
    finally:
        status = live.stop()
    assert status == 0, live.log_text()
    assert SECRETS.in_log(live.log_text()) == [], "a secret can be read in the log"


def close_app(app: Flask) -> None:
    """Close the connections of an app in this process."""
    with app.app_context():
        get_services().connections.close_idle_connections()
        db.session.remove()
        db.engine.dispose()


def _connection(place: SplitResult, *, timeout: float) -> HTTPConnection:
    if place.scheme == "http":
        return HTTPConnection(place.netloc, timeout=timeout)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return HTTPSConnection(place.netloc, timeout=timeout, context=context)


def _environment_without_settings() -> dict[str, str]:
    ours = {each.name.upper() for each in fields(Settings)}
    return {name: value for name, value in os.environ.items() if name not in ours}
