"""Gatebell's web server, as it is configured, with the plain app in Gatebell's place."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.service.live import ROOT
from tests.support.service.plain_app import FILE_VARIABLE, LONG

_STOP_SECONDS = 30


class PlainServer(NamedTuple):
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def running_plain_server(
    directory: Path, *arguments: str, **settings: str
) -> Iterator[PlainServer]:
    """Start it in one web process; connections wait until it is ready."""
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
    with socket.create_server(("127.0.0.1", 0)) as listener, log.open("ab") as written:
        number, port = listener.fileno(), listener.getsockname()[1]
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
        yield PlainServer(port, process, log)
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)
