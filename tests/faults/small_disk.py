"""Disks that can be filled and freed: small mounted ones, or a limit on file sizes."""

import resource
import sqlite3
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

_MEGABYTES = 40


class SmallDisk(ABC):
    """Represents the disk of an instance."""

    #: Status of the database in `/readyz` while the disk is full.
    word: str

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def fill(self, processes: Sequence[int]) -> None:
        """Leave no space for files of these processes."""

    @abstractmethod
    def free(self, processes: Sequence[int]) -> None:
        """Free the space."""


class _Mounted(SmallDisk):
    word = "disk full"

    def fill(self, processes: Sequence[int]) -> None:
        del processes
        # Otherwise the write-ahead log would have space for hundreds of alerts.
        with closing(sqlite3.connect(self.path / "gatebell.db", timeout=30)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with (self.path / "filler").open("wb", buffering=0) as filler:
            for size in (2**20, 4096, 1):
                try:
                    while filler.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def free(self, processes: Sequence[int]) -> None:
        del processes
        (self.path / "filler").unlink()


class _Limited(SmallDisk):
    """Limits the file sizes of processes, where mounting is not allowed."""

    word = "not writable"

    def fill(self, processes: Sequence[int]) -> None:
        # This includes existing bytes, because SQLite restarts its log regularly.
        for pid in processes:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))

    def free(self, processes: Sequence[int]) -> None:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        for pid in processes:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)


@contextmanager
def small_disk(path: Path, *, may_mount: bool) -> Iterator[SmallDisk]:
    """Provide a disk for the duration of the block; other processes do not see its mount."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_MEGABYTES}m", "tmpfs", str(path)]
    is_mounted = (
        may_mount and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    )
    try:
        yield _Mounted(path) if is_mounted else _Limited(path)
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(path)], check=True)  # noqa: S607 - where it is
