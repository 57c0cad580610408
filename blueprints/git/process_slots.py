"""Limit on the number of Git transfers on a host, across all web processes.

A slot is a locked file. The lock is released when the process exits, even if the process crashes.
The content of the file identifies the user and the IP address of the transfer.
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
_RETRY_AFTER_SECONDS = 10
_DIGEST_BYTES = 32
#: Digest that represents an anonymous caller.
_ANONYMOUS_DIGEST = bytes(_DIGEST_BYTES)


@dataclass(frozen=True, kw_only=True)
class SlotCaller:
    """The user ID and the IP address of a caller who starts a Git transfer."""

    #: IP address, in the form that rate limits use.
    address: str
    #: ID of the user, or None if the request has no valid token.
    user_id: int | None


class _SlotOwner(NamedTuple):
    """The digests of a caller's user and address, as stored in a slot."""

    user: bytes
    address: bytes

    @classmethod
    def from_caller(cls, caller: SlotCaller) -> "_SlotOwner":
        user = (
            _ANONYMOUS_DIGEST
            if caller.user_id is None
            else _compute_digest(f"user {caller.user_id}")
        )
        return cls(user, _compute_digest(caller.address))

    @property
    def is_anonymous(self) -> bool:
        return self.user == _ANONYMOUS_DIGEST

    def is_same_caller(self, slot_owner: "_SlotOwner") -> bool:
        """Return whether the callers of two slots are the same.

        The users are compared, or the IP addresses if either caller is anonymous.
        """
        if self.is_anonymous or slot_owner.is_anonymous:
            return self.address == slot_owner.address
        return self.user == slot_owner.user


def _compute_digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


class ProcessSlot:
    """A slot that is locked by this process."""

    def __init__(self, file: FileIO) -> None:
        """Initialize the slot with its locked file."""
        self._file = file

    def release_slot(self) -> None:
        """Release the slot. Further calls have no effect."""
        self._file.close()


class ProcessSlots:
    """The slots for Git transfers on this host, stored as files in a directory."""

    def __init__(self, directory: Path, *, count: int, wait_seconds: float) -> None:
        """Set the number of slots and the maximum wait for a free slot."""
        self._directory = directory
        self._count = count
        self._wait_seconds = wait_seconds

    def acquire_slot(self, caller: SlotCaller) -> ProcessSlot:
        """Take a slot, and wait for a free slot if necessary.

        A user, together with anonymous clients at the same address, can take at most half of the
        slots. Anonymous clients at one address can take at most a quarter of the slots. All
        anonymous clients together can take at most half of the slots. Raise RepositoryBusyError if
        no slot becomes free in time.
        """
        mark = _SlotOwner.from_caller(caller)
        deadline = monotonic() + self._wait_seconds
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            slot = self._try_acquire_slot(mark)
            if slot is not None:
                return slot
            if monotonic() >= deadline:
                message = "The server is busy with other Git transfers. Try again in a moment."
                raise RepositoryBusyError(message, retry_after=_RETRY_AFTER_SECONDS)
            sleep(_POLL_SECONDS)

    def _try_acquire_slot(self, slot_owner: _SlotOwner) -> ProcessSlot | None:
        """Take a free slot unless the caller already has its maximum number of slots."""
        with ExitStack() as opened:
            files = [
                opened.enter_context(self._open_slot_file(number)) for number in range(self._count)
            ]
            held = [file for file in files if not _try_lock_slot(file)]
            free = next((file for file in files if file not in held), None)
            if free is None or self._has_reached_limit(
                slot_owner, [_read_slot_owner(file) for file in held]
            ):
                return None
            os.pwrite(free.fileno(), b"".join(slot_owner), 0)
            # A duplicated descriptor of the same open file keeps the lock.
            return ProcessSlot(FileIO(os.dup(free.fileno()), "r+b"))

    def _has_reached_limit(self, slot_owner: _SlotOwner, held: Sequence[_SlotOwner]) -> bool:
        half, quarter = (max(1, self._count // part) for part in (2, 4))
        if sum(map(slot_owner.is_same_caller, held)) >= half:
            return True
        anonymous = [each for each in held if each.is_anonymous]
        of_address = sum(each.address == slot_owner.address for each in anonymous)
        return slot_owner.is_anonymous and (of_address >= quarter or len(anonymous) >= half)

    def _open_slot_file(self, number: int) -> FileIO:
        descriptor = os.open(self._directory / str(number), os.O_RDWR | os.O_CREAT, 0o600)
        return FileIO(descriptor, "r+b")


def _try_lock_slot(file: FileIO) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _read_slot_owner(file: FileIO) -> _SlotOwner:
    read = os.pread(file.fileno(), 2 * _DIGEST_BYTES, 0)
    return _SlotOwner(read[:_DIGEST_BYTES], read[_DIGEST_BYTES:])
