"""Gatebell's web server with its configuration, and the plain app instead of Gatebell."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tests.support.service.live import ROOT
from tests.support.service.plain_app import FILE_VARIABLE, LONG

_START_SECONDS = 120
_STOP_SECONDS = 30


class PlainServer(NamedTuple):
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def running_plain_server(
    directory: Path, *arguments: str, listener: socket.socket | None = None, **settings: str
) -> Iterator[PlainServer]:
    """Start one web process on a free port or a socket, and wait until it is ready.

    The port of another socket is 0.
    """
    file, log = directory / "file", directory / "log"
    file.write_bytes(LONG)
    environment = {
        "PATH": os.environ["PATH"],
        "BASE_URL": "http://localhost",
        "INSTANCE_PATH": str(directory),
        "WEB_CONCURRENCY": "1",
        FILE_VARIABLE: str(file),
        **settings,
    }
    port = 0
    with ExitStack() as opened:
        written = opened.enter_context(log.open("ab"))
        if listener is None:
            listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = listener.getsockname()[1]
        number = listener.fileno()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "--config", "gunicorn.conf.py"),
                *("--bind", f"fd://{number}", *arguments, "tests.support.service.plain_app:app"),
            ],
            cwd=ROOT,
            env=environment,
            pass_fds=(number,),
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
        )
    try:
        _wait_until_ready(process, log)
        yield PlainServer(port, process, log)
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = monotonic() + _START_SECONDS
    while b"Booting worker" not in log.read_bytes():
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert monotonic() < deadline, "The web server did not start."
        sleep(0.05)
