"""`make run`: prepares the database and runs the web server and the worker."""

import gc

if __name__ == "__main__":
    # Nothing of what is loaded from here on is garbage; `main` turns the collector on again.
    gc.disable()

import socket
import ssl
import sys
from contextlib import closing
from dataclasses import dataclass, field
from errno import EADDRINUSE
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from domain.accounts.passwords import FIRST_USERNAME, first_password_file
from domain.accounts.users import NewUser, create_user
from domain.clock import system_clock
from domain.errors import ConflictError
from domain.randomness import random_password
from models import User
from web.database.engine import open_engine
from web.database.schema import migrate
from web.database.start_checks import (
    CannotStartError,
    reasons_in_a_sentence,
    register_secret_key,
    require_own_connections,
    require_schema,
)
from web.garbage import keep_what_is_loaded
from web.instance_files import write_private_file
from web.logging import configure_logging
from web.server.supervisor import Program, Supervisor, WhenEnded
from web.server.tls import CertificateFilesError, open_certificate
from web.settings.policies import password_rules
from web.settings.reader import Settings, SettingsError, settings_from_environment
from web.standard_streams import unblock_standard_streams

#: Seconds beyond GRACEFUL_TIMEOUT_SECONDS that a process may take to stop.
_GRACE_SECONDS = 5
#: Seconds that processes of a killed service may still hold the port.
_LEFT_BEHIND_SECONDS = 5
_WRONG_SETTING = 2
#: How long the worker may show no sign of life.
_WATCHDOG_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """The first administrator's credentials, and the file that holds them until a change."""

    username: str
    password: str = field(repr=False)
    path: Path


def ensure_first_administrator(settings: Settings) -> Credentials | None:
    """Create an administrator if there is no user yet; return the credentials, or None."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            if session.scalar(select(exists().select_from(User))):
                return None
            session.rollback()  # releases the locks while the password is hashed
            with session.begin():
                return _make(settings, session)
    except ConflictError:
        return None  # another process that started at the same time was first
    finally:
        engine.dispose()


def _make(settings: Settings, session: Session) -> Credentials:
    password = random_password()
    first = NewUser(
        username=FIRST_USERNAME,
        email="admin@gatebell.example",
        name="Administrator",
        password=password,
        is_admin=True,
    )
    create_user(
        first,
        session=session,
        now=system_clock(),
        rules=password_rules(settings),
    )
    path = first_password_file(settings.instance_path)
    write_private_file(path, f"user name: {FIRST_USERNAME}\npassword: {password}\n")
    return Credentials(username=FIRST_USERNAME, password=password, path=path)


def main() -> None:
    """Check, migrate, create the first administrator, and serve until told to stop."""
    keep_what_is_loaded()
    unblock_standard_streams()
    try:
        settings = settings_from_environment()
        configure_logging(settings)
        open_certificate(settings)
        _check_that_the_port_is_free(settings)
        prepare(settings)
    except (SettingsError, CannotStartError, CertificateFilesError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(_WRONG_SETTING)
    Thread(target=_say_when_ready, args=(settings,), daemon=True).start()
    sys.exit(_supervising(settings, web=_WEB, worker=_WORKER).run())


#: It replaces its processes that hang by itself.
_WEB = Program(
    command=(sys.executable, "-m", "gunicorn", "--config", "gunicorn.conf.py"),
    when_ended=WhenEnded.RESTART_IF_IT_RAN,
)
#: Alerts and sign-ins work without it.
_WORKER = Program(
    command=(sys.executable, "-m", "web.jobs.worker"),
    when_ended=WhenEnded.RESTART,
    watchdog_seconds=_WATCHDOG_SECONDS,
)


def supervised_worker(settings: Settings) -> Supervisor:
    """Return the supervisor of the worker alone."""
    return _supervising(settings, worker=_WORKER)


def _supervising(settings: Settings, **programs: Program) -> Supervisor:
    return Supervisor(programs, patience=settings.graceful_timeout_seconds + _GRACE_SECONDS)


def prepare(settings: Settings) -> None:
    """Migrate the database, and create what a new installation needs.

    Several may do so at once. Raises CannotStartError.
    """
    if settings.migrate_on_start:
        require_own_connections(settings)
        with reasons_in_a_sentence():
            migrate(settings)
    else:
        require_schema(settings)
    register_secret_key(settings)
    with reasons_in_a_sentence():
        first = ensure_first_administrator(settings)
    if first:
        _print_first_administrator(first)


def _print_first_administrator(first: Credentials) -> None:
    """Print the first administrator's name, and on a terminal the password.

    Other outputs end in logs, which must not contain the password.
    """
    if sys.stdout.isatty():
        _say(f"The first administrator is {first.username}, the password {first.password}")
        _say(f"It is shown only once, and stored in {first.path} until it is changed.")
    else:
        _say(f"The first administrator is {first.username}, the password is in {first.path}")


def _check_that_the_port_is_free(settings: Settings) -> None:
    """Raise CannotStartError if the port is in use; wait for a killed service's processes."""
    endpoint = f"port {settings.port} of {settings.host}"
    deadline = monotonic() + _LEFT_BEHIND_SECONDS
    try:
        while not _is_free(settings, wait=monotonic() < deadline):
            sleep(0.1)
    except OSError as error:
        if error.errno == EADDRINUSE:
            raise CannotStartError(f"PORT: {endpoint} is in use; choose another one.") from error
        reason = error.strerror
        raise CannotStartError(f"HOST, PORT: cannot listen on {endpoint}: {reason}.") from error


def _is_free(settings: Settings, *, wait: bool) -> bool:
    """Return whether the port is free; if `wait` is false, a port in use raises OSError."""
    found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _name, address in found:
        with socket.socket(family, kind, protocol) as attempt:
            # As gunicorn does: sockets in TIME_WAIT do not matter.
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind(address)
            except OSError as error:
                if wait and error.errno == EADDRINUSE:
                    return False
                raise
    return True


def _say_when_ready(settings: Settings) -> None:
    while not _answers(settings):
        sleep(0.1)
    _say(f"{settings.instance_name} is ready: {settings.base_url}")


def _answers(settings: Settings) -> bool:
    # Every interface includes the loopback one.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared, not bound
    try:
        with closing(_connection(settings, host)) as connection:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False


def _connection(settings: Settings, host: str) -> HTTPConnection:
    if settings.tls_certificate is None:
        return HTTPConnection(host, settings.port, timeout=2)
    # It is ourselves that we ask, and by an address that the certificate need not name.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return HTTPSConnection(host, settings.port, timeout=2, context=context)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
