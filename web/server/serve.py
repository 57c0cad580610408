"""Program for `make run`, which runs the web server and the worker under a supervisor.

The worker prepares the database first. The supervisor stays in memory, so it loads little: no
models and no domain rules. It therefore starts as a new program after the worker and the web server
are forked (`web/server/shared_memory.py`).
"""

import socket
import ssl
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from errno import EADDRINUSE
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Thread
from time import monotonic, sleep

from web.child_work import run_in_child
from web.logging import configure_logging
from web.server.listen_address import get_listening_host
from web.server.shared_memory import fork_programs, pop_started_programs
from web.server.supervisor import RestartPolicy, StartedProgram, SupervisedProgram, Supervisor
from web.server.temporary_files import check_temporary_directory
from web.settings.environment import (
    WRONG_SETTING_STATUS,
    Settings,
    SettingsError,
    load_settings,
)
from web.standard_streams import print_line, unblock_standard_streams

#: Seconds in addition to GRACEFUL_TIMEOUT_SECONDS that a process may take to stop.
_STOP_GRACE_SECONDS = 5
#: Seconds for which processes of a killed service may still hold the port.
_PORT_WAIT_SECONDS = 5
#: Seconds without a watchdog notification after which a worker is killed.
_WATCHDOG_SECONDS = 30.0


class _PortUnavailableError(Exception):
    """Error for a port on which the server cannot listen."""


def main() -> None:
    """Check the settings and serve until the process is stopped."""
    unblock_standard_streams()
    started = pop_started_programs()
    try:
        settings = load_settings()
        configure_logging(settings)
        if started is None:
            check_temporary_directory()
            if settings.tls_certificate is not None:
                # The check loads modules that must not be loaded before gevent replaces functions.
                run_in_child(partial(_check_certificate, settings))
            _check_port_free(settings)
    except (SettingsError, _PortUnavailableError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(WRONG_SETTING_STATUS)
    preparing = replace(_WORKER_PROGRAM, first_command=(*_WORKER_COMMAND, "--prepare"))
    # Both programs load at the same time. The web server listens after the database is prepared.
    programs = {"worker": preparing, "web": replace(_WEB_PROGRAM, waits_for="worker")}
    if started is None:
        fork_programs(programs)
    Thread(target=_announce_when_ready, args=(settings,), daemon=True).start()
    sys.exit(_build_supervisor(settings, programs, started).supervise_programs())


_WORKER_COMMAND = (sys.executable, "-m", "web.jobs.worker")
#: Worker, which is restarted whenever it ends. Meanwhile, the web server still receives alerts.
_WORKER_PROGRAM = SupervisedProgram(
    command=_WORKER_COMMAND,
    when_ended=RestartPolicy.RESTART,
    watchdog_seconds=_WATCHDOG_SECONDS,
)
#: Web server. It has no watchdog, because gunicorn replaces its own hung processes.
_WEB_PROGRAM = SupervisedProgram(
    command=(sys.executable, "-m", "gunicorn", "--config", "gunicorn.conf.py"),
    when_ended=RestartPolicy.RESTART_IF_IT_RAN,
)


def build_worker_supervisor(settings: Settings) -> Supervisor:
    """Return a supervisor that only runs the worker."""
    return _build_supervisor(settings, {"worker": _WORKER_PROGRAM})


def _build_supervisor(
    settings: Settings,
    programs: Mapping[str, SupervisedProgram],
    started: Mapping[str, StartedProgram] | None = None,
) -> Supervisor:
    seconds = settings.shutdown_delay_seconds + settings.graceful_timeout_seconds
    return Supervisor(programs, timeout_seconds=seconds + _STOP_GRACE_SECONDS, started=started)


def _check_certificate(settings: Settings) -> None:
    """Check that the certificate files can be used.

    Raise SettingsError for unusable files.
    """
    from web.server.tls import CertificateFilesError, load_certificate  # noqa: PLC0415 - large

    try:
        load_certificate(settings)
    except CertificateFilesError as error:
        raise SettingsError(str(error)) from error


def _check_port_free(settings: Settings) -> None:
    """Check that the server can listen on the configured port.

    Processes of a killed service get a few seconds to release the port. Raise _PortUnavailableError
    if the port cannot be used.
    """
    endpoint = f"port {settings.port} of {settings.host}"
    deadline = monotonic() + _PORT_WAIT_SECONDS
    try:
        while not _is_port_free(settings, wait=monotonic() < deadline):
            sleep(0.1)
    except OSError as error:
        if error.errno == EADDRINUSE:
            raise _PortUnavailableError(
                f"PORT: {endpoint} is in use. Choose another port."
            ) from error
        reason = error.strerror
        raise _PortUnavailableError(
            f"HOST, PORT: cannot listen on {endpoint}: {reason}."
        ) from error


def _is_port_free(settings: Settings, *, wait: bool) -> bool:
    """Return whether the port is free.

    If `wait` is false, raise OSError for a port in use.
    """
    host = get_listening_host(settings.host)
    found = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _name, address in found:
        with socket.socket(family, kind, protocol) as attempt:
            # As in gunicorn, sockets in TIME_WAIT do not matter.
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind(address)
            except OSError as error:
                if wait and error.errno == EADDRINUSE:
                    return False
                raise
    return True


def _announce_when_ready(settings: Settings) -> None:
    while not _is_server_ready(settings):
        sleep(0.1)
    print_line(f"{settings.instance_name} is ready: {settings.base_url}")


def _is_server_ready(settings: Settings) -> bool:
    # A server that listens on every interface can be reached on the loopback interface.
    host = get_listening_host(settings.host)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    try:
        with closing(_open_connection(settings, host)) as connection:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False


def _open_connection(settings: Settings, host: str) -> HTTPConnection:
    if settings.tls_certificate is None:
        return HTTPConnection(host, settings.port, timeout=2)
    # This connects to the local server, at an address that might not be in the certificate.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return HTTPSConnection(host, settings.port, timeout=2, context=context)


if __name__ == "__main__":
    main()
