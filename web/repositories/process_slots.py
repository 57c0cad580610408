"""The number of Git transfers on this host, over all its web processes.

A slot is a locked file: the lock ends with the process that holds it, however that ends. What is
written into the file says whose transfer it is.
"""

import fcntl
import os
from contextlib import ExitStack, suppress
from hashlib import sha256
from io import FileIO
from pathlib import Path
from time import monotonic, sleep

from domain.repositories.errors import RepositoryBusyError

_POLL_SECONDS = 0.1
_RETRY_AFTER = 10
_MARK_BYTES = 32


class ProcessSlot:
    """A slot that this process holds."""

    def __init__(self, file: FileIO) -> None:
        """Take the locked file."""
        self._file = file

    def release(self) -> None:
        """Give the slot back; only the first call does something."""
        self._file.close()


class ProcessSlots:
    """The slots of this host, in a directory of their own."""

    def __init__(self, directory: Path, *, count: int, wait_seconds: float) -> None:
        """Take how many slots there are, and how long one may wait for one."""
        self._directory = directory
        self._count = count
        self._wait_seconds = wait_seconds

    def take(self, caller: str) -> ProcessSlot:
        """Take a slot for a user or an IP address; raise RepositoryBusyError if none gets free.

        One caller gets half of the slots, so that nobody can keep all others from them.
        """
        mark = sha256(caller.encode()).digest()
        deadline = monotonic() + self._wait_seconds
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            slot = self._try(mark)
            if slot is not None:
                return slot
            if monotonic() >= deadline:
                message = "The server is busy with other Git transfers. Try again in a moment."
                raise RepositoryBusyError(message, retry_after=_RETRY_AFTER)
            sleep(_POLL_SECONDS)

    def _try(self, mark: bytes) -> ProcessSlot | None:
        """Take a free slot unless the caller has its share."""
        with ExitStack() as opened:
            files = [opened.enter_context(self._open(number)) for number in range(self._count)]
            held = [file for file in files if not _is_locked_by_us(file)]
            is_served = sum(_mark_in(file) == mark for file in held) >= max(1, self._count // 2)
            free = next((file for file in files if file not in held), None)
            if free is None or is_served:
                return None
            os.pwrite(free.fileno(), mark, 0)
            # A descriptor of the same open file keeps the lock.
            return ProcessSlot(FileIO(os.dup(free.fileno()), "r+b"))

    def _open(self, number: int) -> FileIO:
        descriptor = os.open(self._directory / str(number), os.O_RDWR | os.O_CREAT, 0o600)
        return FileIO(descriptor, "r+b")


def _is_locked_by_us(file: FileIO) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _mark_in(file: FileIO) -> bytes:
    return os.pread(file.fileno(), _MARK_BYTES, 0)
