"""Measures the processor time and memory of an idle service."""

import os
import subprocess
import sys
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import NamedTuple

from bench.processes import measure_process_sizes
from tests.support.service.ports import free_port

_START_SECONDS = 120
#: Seconds until the service has finished the work that follows its start.
_SETTLE_SECONDS = 45
_WATCH_SECONDS = 60
#: Positions of fields in `/proc/<pid>/stat` after the name: parent, user time and system time.
_PARENT, _USER, _SYSTEM = 1, 11, 12


class Idle(NamedTuple):
    """Processor time and memory of an idle service."""

    #: Share of one processor.
    share: float
    #: Proportional set sizes of the largest web process and of all processes, in MiB.
    web_mib: float
    all_mib: float


def watch_idle(root: Path) -> Idle:
    """Measure the idle service of a checkout on an empty SQLite database."""
    with TemporaryDirectory() as folder:
        port = free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "INSTANCE_PATH": folder,
            "PORT": str(port),
            "BASE_URL": f"http://127.0.0.1:{port}",
        }
        service = subprocess.Popen(
            (sys.executable, "-m", "web.server.serve"),
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(port)
            sleep(_SETTLE_SECONDS)
            before = _processor_seconds(service.pid)
            sleep(_WATCH_SECONDS)
            share = (_processor_seconds(service.pid) - before) / _WATCH_SECONDS
            sizes = measure_process_sizes(service.pid, "")
            return Idle(share, max(measure_process_sizes(service.pid, "gunicorn")), sum(sizes))
        finally:
            service.terminate()
            service.wait(_START_SECONDS)


def _wait_for(port: int) -> None:
    deadline = monotonic() + _START_SECONDS
    while monotonic() < deadline:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            if connection.getresponse().status == HTTPStatus.OK:
                return
        except (OSError, HTTPException):
            sleep(0.2)
        finally:
            connection.close()
    message = "The service did not start."
    raise RuntimeError(message)


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process and its descendants in seconds."""
    stats = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        except OSError:
            continue  # The process has ended in the meantime.
        stats[int(file.parent.name)] = [int(word) for word in after_name.split()[1:14]]
    family, ticks = {pid}, 0
    while found := {each for each, stat in stats.items() if stat[0] in family} - family:
        family |= found
    for each in family:
        ticks += stats[each][_USER - 1] + stats[each][_SYSTEM - 1]
    return ticks / os.sysconf("SC_CLK_TCK")
