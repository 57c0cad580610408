"""Starts, observes and stops the programs that are measured."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from ctypes import CDLL, byref, c_int
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import clock_gettime, monotonic, sleep
from typing import Self

import psutil

from bench.samples import CannotMeasureError
from tests.support.service.ports import free_port
from web.memory import measure_proportional_bytes

_START_SECONDS = 60
_STOP_SECONDS = 20
_PROC_FOLDER = Path("/proc")
_LIBC = CDLL(None)


@dataclass(frozen=True)
class Process:
    """An entry of the process table."""

    pid: int
    parent: int
    command: str


class RunningProgram:
    """A third-party server on a loopback port."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        directory: Path,
        environment: Mapping[str, str],
        log: Path,
    ) -> None:
        self.port = free_port()
        self._command = [str(each).replace("{port}", str(self.port)) for each in command]
        self._directory = directory
        self._environment = {**environment, "PORT": str(self.port)}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the server and wait until it responds."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = monotonic() + _START_SECONDS
        while not _is_responding(self.port):
            if self._process.poll() is not None or monotonic() > deadline:
                self.__exit__()
                said = self._log.read_text(encoding="utf-8", errors="replace")[-800:]
                raise CannotMeasureError(f"the program did not start: {said}")
            sleep(0.1)
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the server."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Id of the started process."""
        if self._process is None:
            raise CannotMeasureError("the program is not running")
        return self._process.pid


def get_inherited_environment() -> dict[str, str]:
    """Return the environment variables that other programs get, without Gatebell's settings."""
    names = ("HOME", "LANG", "PATH", "TMPDIR", "TZ", "USER")
    given = os.environ  # noqa: TID251 - of the machine, not of the service
    return {name: given[name] for name in names if name in given}


def measure_worker_memory(root: int, marker: str) -> float:
    """Return the largest proportional set size among a program's workers, in MiB.

    Workers are processes without children whose command contains the marker.
    """
    found = list_process_family(root)
    parents = {each.parent for each in found}
    workers = [each.pid for each in found if each.pid not in parents and marker in each.command]
    return max((read_proportional_mib(pid) for pid in workers), default=0.0)


def measure_process_sizes(root: int, marker: str) -> tuple[float, ...]:
    """Return the memory of a program's processes whose command contains the marker, in MiB.

    Shared memory is divided among the processes (proc_pid_smaps(5)).
    """
    return tuple(
        read_proportional_mib(each.pid)
        for each in list_process_family(root)
        if marker in each.command
    )


def measure_processor_seconds(root: int, marker: str = "") -> float:
    """Return the processor seconds of a program's processes whose command contains the marker.

    The time counts from the start of each process. Processes that have ended do not count.
    """
    return sum(measure_processor_times(root, marker).values())


def measure_processor_times(root: int, marker: str = "") -> Mapping[int, float]:
    """Return the processor seconds of each of these processes by process id."""
    return {
        each.pid: _read_processor_seconds(each.pid)
        for each in list_process_family(root)
        if marker in each.command
    }


def compute_seconds_between(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Return the processor seconds between two measurements; ended processes do not count."""
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


def read_busy_seconds() -> float:
    """Return the processor seconds of all programs since the machine started."""
    whole, *_ = (_PROC_FOLDER / "stat").read_text().splitlines()
    user, nice, system, _idle, _waiting, *interrupts = map(int, whole.split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def pin_to_core(core: int, root: int) -> None:
    """Pin all threads of a program's processes to one core."""
    for each in list_process_family(root):
        for thread in (_PROC_FOLDER / str(each.pid) / "task").iterdir():
            os.sched_setaffinity(int(thread.name), {core})


def list_process_family(root: int) -> tuple[Process, ...]:
    """Return a process and all its descendants."""
    everybody = tuple(_list_processes())
    known = {root}
    while True:
        born = {each.pid for each in everybody if each.parent in known} - known
        if not born:
            break
        known |= born
    return tuple(each for each in everybody if each.pid in known)


def kill_process_family(root: int) -> None:
    """Kill a process and its descendants with SIGKILL, and wait until they have ended.

    The process itself is killed first, because it would restart the others.
    """
    killed = []
    for each in sorted(list_process_family(root), key=lambda each: each.pid != root):
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(each.pid)
            process.kill()
            killed.append(process)
    psutil.wait_procs(killed, _STOP_SECONDS)


def _list_processes() -> Iterator[Process]:
    for directory in _PROC_FOLDER.iterdir():
        if not directory.name.isdecimal():
            continue
        try:
            status = (directory / "stat").read_text()
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # the process has ended
        after_name = status.rpartition(")")[2].split()
        yield Process(int(directory.name), int(after_name[1]), command)


def _read_processor_seconds(pid: int) -> float:
    # This covers all threads and has nanosecond resolution; proc_stat(5) has hundredths of a
    # second.
    clock = c_int()
    if _LIBC.clock_getcpuclockid(pid, byref(clock)):
        return 0.0
    try:
        return clock_gettime(clock.value)
    except OSError:  # the process has ended
        return 0.0


def read_resident_mib(pid: int) -> float:
    """Return the resident set size of a process in MiB, including shared memory."""
    try:
        pages = int((_PROC_FOLDER / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def read_proportional_mib(pid: int) -> float:
    """Return the proportional set size of a process in MiB, including its part of shared memory."""
    return measure_proportional_bytes(pid) / 2**20


def _is_responding(port: int) -> bool:
    with closing(HTTPConnection("127.0.0.1", port, timeout=_START_SECONDS)) as connection:
        try:
            connection.request("GET", "/")
            # Any response counts, including an error.
            return connection.getresponse().status > 0
        except (OSError, HTTPException):
            return False
