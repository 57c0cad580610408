"""The service as its users have it: `make run`'s own program on a port of loopback."""

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
from tests.support.signing_in.password_rules import ENVIRONMENT as CHEAP_PASSWORDS
from web.database.engine import open_engine
from web.extensions import db
from web.services import services
from web.settings.reader import Settings, read_settings

ROOT = Path(__file__).parents[3]
#: Of services on Postgres that are given no other.
SECRET_KEY = "the key of tests that give no other, which everybody knows"
#: As docs/scaling-out.md starts it where a host has a supervisor of its own.
WEB_SERVER = (str(Path(sys.executable).parent / "gunicorn"), "--config", "gunicorn.conf.py")
_START_SECONDS = 180
_STOP_SECONDS = 120


class Done(NamedTuple):
    """What came of a command."""

    returncode: int
    stdout: str
    stderr: str


def _object_in(done: Done, arguments: tuple[str, ...]) -> dict[str, Any]:
    assert done.returncode == 0, f"gatebell {' '.join(arguments)}: {done.stderr}"
    printed = json.loads(done.stdout)
    assert isinstance(printed, dict)
    return printed


#: The services that run now.
_running: set["LiveGatebell"] = set()
#: Lines of a log that say that something went wrong.
_COMPLAINT = re.compile(r'"level":"(?:WARNING|ERROR|CRITICAL)"|"status":5\d\d|^(?!\{)')
_MOST_COMPLAINTS = 30
_LONGEST_COMPLAINT = 3_000


def complaints() -> dict[str, str]:
    """Return the last warnings and errors in the logs of the running services, by their URLs."""
    return {live.url: live.complaints() for live in _running}


class LiveGatebell:
    """A running service, with a database and a directory of its own."""

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
        # On Postgres one has to be given; on SQLite `make run` makes one.
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
            # Browsers of tests stay signed in for as long as they run.
            "ADMINISTRATOR_PROOF_SECONDS": "86400",
            # Receivers of tests listen there.
            "OUTGOING_PRIVATE_ADDRESSES": "127.0.0.0/8",
            "OUTGOING_CONTACT_HOSTS": "127.0.0.1:1-65535",
            # A busy machine may take its time to let somebody in.
            "DATABASE_CONNECT_TIMEOUT_SECONDS": "30",
            **CHEAP_PASSWORDS,
            **key,
            **settings,
        }
        #: The web server alone, without what `make run` does around it, starts in half the time.
        self.program: tuple[str, ...] = WEB_SERVER if only == "web" else ("-m", "web.server.serve")
        #: Where the code lies that it runs, and what runs it; they and the environment may change
        #: between starts.
        self.code = ROOT
        self.python = sys.executable
        #: A file descriptor to write to instead of the log file.
        self.output: int | None = None
        self._log = instance_path / "log"
        self._sessions: list[requests.Session] = []
        self._engine: Engine | None = None
        self._apps: dict[tuple[tuple[str, str], ...], Flask] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
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
        """Stop it as an operator would, and return the exit status."""
        for session in self._sessions:
            session.close()
        assert self._process is not None
        _running.discard(self)
        self._process.terminate()
        return self.wait()

    def engine(self) -> Engine:
        """Return its database, opened beside it once: to do so for each look costs more than it."""
        if self._engine is None:
            self._engine = open_engine(read_settings(self.environment))
        return self._engine

    def app(self) -> Flask:
        """Return an app of this process with its settings: made once for each environment."""
        environment = tuple(sorted(self.environment.items()))
        if environment not in self._apps:
            self._apps[environment] = create_app(read_settings(self.environment))
        return self._apps[environment]

    def wait(self) -> int:
        """Wait until it has stopped, and return the exit status."""
        assert self._process is not None
        self.close()
        try:
            return self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def close(self) -> None:
        """Close what was opened beside it, or instead of it where it was never started."""
        for app in self._apps.values():
            close_app(app)
        self._apps.clear()
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def is_running(self) -> bool:
        """Return whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process that supervises all others."""
        assert self._process is not None
        return self._process.pid

    def http(self) -> requests.Session:
        """Return a client with cookies of its own, like a browser that was just opened."""
        session = requests.Session()
        session.trust_env = False  # no proxy between us
        if certificate := self.environment.get("TLS_CERTIFICATE"):
            session.verify = certificate
        self._sessions.append(session)
        return session

    def cli(self, *arguments: str, stdin: str = "") -> dict[str, Any]:
        """Do what `gatebell …` does, in this process, and return the object that it prints.

        A program of its own takes seconds to start: `printed` and `run_program` show that it does
        the same.
        """
        return _object_in(self.run_cli(*arguments, stdin=stdin), arguments)

    def run_cli(self, *arguments: str, stdin: str = "") -> Done:
        """Do what `gatebell …` does, in this process, whatever comes of it."""
        app = self.app()
        try:
            done = app.test_cli_runner().invoke(args=arguments, input=stdin)
        finally:
            close_app(app)
        # The next command is to know them at once; a restoration brings another secret key.
        if {"settings", "restore"} & set(arguments):
            self._apps.clear()
        return Done(done.exit_code, done.stdout, done.stderr)

    def printed(self, *arguments: str, stdin: str = "") -> dict[str, Any]:
        """Run `gatebell …` beside the running service and return the object that it prints."""
        return _object_in(self.run_program(*arguments, stdin=stdin), arguments)

    def run_program(self, *arguments: str, stdin: str = "") -> Done:
        """Run `gatebell …` beside the running service, whatever comes of it."""
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
        """Keep what is logged meanwhile: its own processes do so anyway."""
        return nullcontext()

    def complaints(self) -> str:
        """Return the last lines of the log that are warnings or errors."""
        lines = (line[:_LONGEST_COMPLAINT] for line in self.log_text().splitlines())
        found = [line for line in lines if _COMPLAINT.search(line)]
        return "\n".join(found[-_MOST_COMPLAINTS:])

    def log_text(self) -> str:
        """Return everything that was logged so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def logged_line(self, words: str) -> str:
        """Return the first line of the log with these words, once it is written.

        Lines are written after the answer.
        """
        deadline = monotonic() + 10
        while not (found := [each for each in self.log_text().splitlines() if words in each]):
            assert monotonic() < deadline, f"Nothing was logged with {words}."
            sleep(0.02)
        return found[0]

    def _answers(self) -> bool:
        # Without `requests`: asking it a hundred times takes as long as half of the start.
        place = urlsplit(self.url)
        connection = _connection(place, timeout=5)
        try:
            connection.request("GET", f"{place.path}/healthz")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


#: Makes a service for a kind of database and the settings that follow.
NewService = Callable[..., LiveGatebell]


@contextmanager
def running(live: LiveGatebell) -> Iterator[LiveGatebell]:
    """Run a service; in the end it has to stop in peace, with no secret in its log."""
    live.start()
    try:
        yield live
    finally:
        status = live.stop()
    assert status == 0, live.log_text()
    assert SECRETS.in_log(live.log_text()) == [], "a secret can be read in the log"


def close_app(app: Flask) -> None:
    """Close what an app in this process has opened."""
    with app.app_context():
        services().connections.close()
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
