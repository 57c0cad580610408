"""The number of Git transfers on this host, over all its web processes.

A slot is a locked file: the lock ends with the process that holds it, however that ends. What is
written into the file says whose transfer it is.
"""

import fcntl
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import sha256
from io import FileIO
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from domain.git.errors import RepositoryBusyError

_POLL_SECONDS = 0.1
_RETRY_AFTER = 10
_DIGEST_BYTES = 32
#: In place of the user of an anonymous caller.
_NOBODY = bytes(_DIGEST_BYTES)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Whose transfer takes a slot."""

    #: The IP address, as rate limits count it.
    address: str
    #: None without a valid token.
    user_id: int | None


class _Mark(NamedTuple):
    """What a slot says of its caller, as digests."""

    user: bytes
    address: bytes

    @classmethod
    def of(cls, caller: Caller) -> "_Mark":
        user = _NOBODY if caller.user_id is None else _digest(f"user {caller.user_id}")
        return cls(user, _digest(caller.address))

    @property
    def is_anonymous(self) -> bool:
        return self.user == _NOBODY

    def is_of_same_person(self, other: "_Mark") -> bool:
        """Return whether one person may be behind both: a user, and without a token an address."""
        if self.is_anonymous or other.is_anonymous:
            return self.address == other.address
        return self.user == other.user


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


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

    def take(self, caller: Caller) -> ProcessSlot:
        """Take a slot; raise RepositoryBusyError if none gets free.

        One person gets half of the slots, with and without a token together, so that nobody can
        keep all others from them. Without a token, an address gets a quarter, and all of these
        together half.
        """
        mark = _Mark.of(caller)
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

    def _try(self, mark: _Mark) -> ProcessSlot | None:
        """Take a free slot unless the caller has its share."""
        with ExitStack() as opened:
            files = [opened.enter_context(self._open(number)) for number in range(self._count)]
            held = [file for file in files if not _is_locked_by_us(file)]
            free = next((file for file in files if file not in held), None)
            if free is None or self._has_its_share(mark, [_mark_in(file) for file in held]):
                return None
            os.pwrite(free.fileno(), b"".join(mark), 0)
            # A descriptor of the same open file keeps the lock.
            return ProcessSlot(FileIO(os.dup(free.fileno()), "r+b"))

    def _has_its_share(self, mark: _Mark, held: Sequence[_Mark]) -> bool:
        half, quarter = (max(1, self._count // part) for part in (2, 4))
        if sum(map(mark.is_of_same_person, held)) >= half:
            return True
        anonymous = [each for each in held if each.is_anonymous]
        of_address = sum(each.address == mark.address for each in anonymous)
        return mark.is_anonymous and (of_address >= quarter or len(anonymous) >= half)

    def _open(self, number: int) -> FileIO:
        descriptor = os.open(self._directory / str(number), os.O_RDWR | os.O_CREAT, 0o600)
        return FileIO(descriptor, "r+b")


def _is_locked_by_us(file: FileIO) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _mark_in(file: FileIO) -> _Mark:
    read = os.pread(file.fileno(), 2 * _DIGEST_BYTES, 0)
    return _Mark(read[:_DIGEST_BYTES], read[_DIGEST_BYTES:])
