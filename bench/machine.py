"""Describes the machine of the measurements, and checks whether it is otherwise idle."""

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import gettempdir
from time import monotonic, sleep

import psycopg

from web.interpreter import describe_interpreter

_OBSERVATION_SECONDS = 5.0
#: Number of busy processors above which a machine is too busy. Desktops and quiet servers stay
#: below.
MAX_BUSY_PROCESSORS = 0.25


@dataclass(frozen=True, kw_only=True)
class MachineDescription:
    """A machine and its software."""

    processor: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    postgres: str
    #: Storage of the databases.
    storage: str
    gunicorn: str

    def lines(self) -> tuple[tuple[str, str], ...]:
        """Return the properties to print, each with its name."""
        return (
            ("Processor", f"{self.processor}, {self.cores} cores"),
            ("Memory", f"{self.memory_gib:.1f} GiB"),
            ("Kernel", self.kernel),
            ("Python", self.python),
            ("Postgres", self.postgres),
            ("Storage", self.storage),
            ("gunicorn", self.gunicorn),
        )


def describe_machine(postgres_url: str) -> MachineDescription:
    """Describe this machine, and the Postgres of the measurements if there is one."""
    row = None
    if postgres_url:
        with psycopg.connect(postgres_url) as connection:
            row = connection.execute(
                "SELECT current_setting('server_version'), current_setting('fsync'),"
                " current_setting('synchronous_commit')"
            ).fetchone()
    release, fsync, synchronous = row or ("?", "?", "?")
    return MachineDescription(
        processor=_find_value(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        cores=os.cpu_count() or 1,
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        kernel=f"{platform.system()} {platform.release()}",
        python=describe_interpreter(),
        postgres=f"{release}, fsync {fsync}, synchronous_commit {synchronous}",
        storage=_find_file_system(Path(gettempdir())),
        gunicorn=version("gunicorn"),
    )


def wait_for_calm(patience: float) -> float:
    """Wait up to `patience` seconds until the machine is idle; return its busy processors."""
    deadline = monotonic() + patience
    while (busy := measure_busy_processors()) > MAX_BUSY_PROCESSORS and monotonic() < deadline:
        pass
    return busy


def measure_busy_processors(seconds: float = _OBSERVATION_SECONDS) -> float:
    """Return the average number of busy processors over `seconds` seconds."""
    before = read_core_ticks()
    sleep(seconds)
    return sum(compute_busy_shares(before, read_core_ticks()))


def describe_noise(busy: float) -> str:
    """Return a sentence on how busy the machine was before a run."""
    if busy <= MAX_BUSY_PROCESSORS:
        return "Before the run, the machine was idle."
    return (
        f"Before the run, other programs used {busy:.1f} processors, so only ratios are meaningful."
    )


def describe_priorities() -> str:
    """Return a sentence on whether priorities apply among all processes (sched(7))."""
    try:
        enabled = Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip()
    except OSError:  # a system without autogroups
        return "Process priorities apply to all processes."
    if enabled == "1":
        return (
            "The kernel gave each session an equal share of the processors"
            " (`sched_autogroup_enabled`), so low priorities had no effect on Postgres."
        )
    return "Process priorities apply to all processes (`sched_autogroup_enabled` is 0)."


@dataclass(frozen=True)
class Ticks:
    """Clock ticks of a core: busy and total."""

    busy: int
    total: int


def read_core_ticks() -> tuple[Ticks, ...]:
    """Return the ticks of each core since the machine started (proc_stat(5))."""
    lines = Path("/proc/stat").read_text().splitlines()
    return tuple(_parse_ticks(line) for line in lines if re.match(r"cpu\d", line))


def compute_busy_shares(before: Sequence[Ticks], after: Sequence[Ticks]) -> tuple[float, ...]:
    """Return the load of each core between two measurements, from 0 to 1."""
    return tuple(
        (then.busy - now.busy) / max(then.total - now.total, 1)
        for now, then in zip(before, after, strict=True)
    )


def _parse_ticks(line: str) -> Ticks:
    spent = [int(each) for each in line.split()[1:9]]
    idle = spent[3] + spent[4]
    return Ticks(busy=sum(spent) - idle, total=sum(spent))


def _find_value(path: Path, name: str) -> str:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _find_file_system(directory: Path) -> str:
    """Return the file system type of a directory; commits on tmpfs are lost at a restart."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    above = [mount for mount in mounts if directory.is_relative_to(mount[1])]
    return max(above, key=lambda mount: len(mount[1]))[2] if above else "unknown"
