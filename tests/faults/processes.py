"""The processes of a running service."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import psutil

from tests.support.service.live import ROOT, LiveGatebell

_SECONDS = 60


def wait_until(is_so: Callable[[], object], *, seconds: int = _SECONDS, pause: float = 0.1) -> None:
    """Wait until a condition is true, with a timeout that allows for slow machines."""
    deadline = monotonic() + seconds
    while not is_so():
        assert monotonic() < deadline
        sleep(pause)


def web_processes(live: LiveGatebell) -> list[int]:
    """Return the processes that serve clients, oldest first."""
    return [pid for pid in _server_processes(live) if not _has_low_priority(pid)]


def heavy_processes(live: LiveGatebell) -> list[int]:
    """Return the processes that answer heavy requests, oldest first."""
    return [pid for pid in _server_processes(live) if _has_low_priority(pid)]


def _server_processes(live: LiveGatebell) -> list[int]:
    # Without a supervisor, the web server is the service's process.
    supervised = [pid for pid, words in children(live.pid) if "-m gunicorn" in words]
    return [pid for pid, _ in children(supervised[0] if supervised else live.pid)]


def _has_low_priority(pid: int) -> bool:
    try:
        return os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)
    except ProcessLookupError:
        return False


def children(parent: int) -> list[tuple[int, str]]:
    """Return the child processes with their command lines, oldest first."""
    try:
        found = psutil.Process(parent).children()
    except psutil.NoSuchProcess:
        return []
    return sorted((each.pid, words) for each in found if (words := _command_line(each)))


def _command_line(process: psutil.Process) -> str:
    """Return the command line of a process, or an empty text if the process is gone."""
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def is_held(pid: int) -> bool:
    """Return whether a process has stopped after SIGSTOP."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return status.partition("State:")[2].split()[0] == "T"


def new_worker(service: LiveGatebell) -> "subprocess.Popen[bytes]":
    """Start a background worker for a service; the caller stops it."""
    command = [sys.executable, "-m", "web.jobs.worker"]
    return subprocess.Popen(command, cwd=ROOT, env=service.environment)


@contextmanager
def running_worker(service: LiveGatebell) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a background worker, and kill it at the end."""
    with new_worker(service) as worker:
        try:
            yield worker
        finally:
            worker.kill()


@contextmanager
def frozen(first: int | None) -> Iterator[None]:
    """Stop a process and its children, as a hanging disk does, and continue them at the end."""
    assert first is not None
    os.kill(first, signal.SIGSTOP)  # Otherwise it would start other processes.
    stopped = [first]
    for pid, _ in children(first):
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)
    try:
        yield
    finally:
        for pid in reversed(stopped):
            os.kill(pid, signal.SIGCONT)
