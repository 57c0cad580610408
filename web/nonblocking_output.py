"""Writes to a file descriptor that return at once, each kind of descriptor in its own way.

Setting O_NONBLOCK on a descriptor would set it for all programs that share it: a shell and its
terminal, the other processes of this service. And `poll` does not help, because two processes can
see the same free slot of a pipe, and one of them would wait.

| standard error is | a write that does not wait | where that is not possible |
|---|---|---|
| a pipe | opened again (`/proc/self/fd`) with O_NONBLOCK | of another user: pwritev2(2) |
| a terminal or another device | opened again with O_NONBLOCK | never |
| a socket (systemd's journal) | send(2) with MSG_DONTWAIT | |
| a file | write(2), unless the last one took long | |
| anything else, a pipe on macOS | never | |

Lines up to PIPE_BUF bytes are written to a pipe as a whole or not at all. A pipe that fills up cuts
longer lines. So each process locks the pipe (flock(2)) while it writes: longer lines exclude all
others, and the lock is kept until the rest of the line is written.
"""

import fcntl
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from select import PIPE_BUF
from socket import MSG_DONTWAIT
from stat import S_ISCHR, S_ISFIFO, S_ISREG, S_ISSOCK
from time import monotonic
from typing import Any

#: A disk that takes longer than this for a line has other work to do.
_SLOW_SECONDS = 0.05
#: How long no line is written at once to a file after that.
_PAUSE_SECONDS = 10.0
_POLL_SECONDS = 0.01


def native(module: str, name: str) -> Any:
    """Return a function as it was before gevent replaced it."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey.get_original(module, name) if monkey else getattr(import_module(module), name)


class Output:
    """A file descriptor that takes nothing at once: each write may wait for its reader."""

    def __init__(self, descriptor: int) -> None:
        """Write to this descriptor, which stays open."""
        self._descriptor = descriptor

    def write_at_once(self, _text: bytes) -> int:
        """Write as much as is possible without waiting, and return how many bytes.

        Raise BlockingIOError if nothing can be written now, and another OSError if it fails.
        """
        raise BlockingIOError

    def write_all(self, text: bytes) -> int:
        """Write everything, however long it takes; return how many bytes could be written."""
        left = memoryview(text)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # another program of this terminal or pipe made it so
                native("time", "sleep")(_POLL_SECONDS)
            except OSError:  # nobody can read it any more, or a disk is full
                break
        return len(text) - len(left)

    def close(self) -> None:
        """Close what was opened besides the descriptor."""


class _Reopened(Output):
    """A device, opened again so that only this process never waits for it."""

    def __init__(self, descriptor: int) -> None:
        """Open it again; raise OSError if that is not allowed, or if there is no /proc."""
        super().__init__(descriptor)
        how = os.O_WRONLY | os.O_NONBLOCK | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC
        self._own = os.open(f"/proc/self/fd/{descriptor}", how)

    def write_at_once(self, text: bytes) -> int:
        return os.write(self._own, text)

    def close(self) -> None:
        os.close(self._own)


class _Pipe(_Reopened):
    """A pipe, shared with other processes of the service, which lock it in the same way."""

    def write_at_once(self, text: bytes) -> int:
        # Lines that are written as a whole can be written side by side.
        lock = fcntl.LOCK_SH if len(text) <= PIPE_BUF else fcntl.LOCK_EX
        fcntl.flock(self._own, lock | fcntl.LOCK_NB)
        written = 0
        try:
            written = os.write(self._own, text)
        finally:
            if written in {0, len(text)}:
                fcntl.flock(self._own, fcntl.LOCK_UN)
        return written

    def write_all(self, text: bytes) -> int:
        # Not side by side: who waits for the reader must not keep out a longer line for good.
        with suppress(OSError):  # no memory for a lock: a mixed line is better than none
            fcntl.flock(self._own, fcntl.LOCK_EX)
        try:
            return super().write_all(text)
        finally:
            fcntl.flock(self._own, fcntl.LOCK_UN)


class _PipeOfAnother(Output):
    """A pipe that another user opened, as a supervisor does before it changes the user.

    Linux before 6.4 rejects the flag for pipes, and then the line waits for the thread.
    """

    def write_at_once(self, text: bytes) -> int:
        if sys.platform == "linux" and len(text) <= PIPE_BUF:
            return os.pwritev(self._descriptor, (text,), -1, os.RWF_NOWAIT)
        raise BlockingIOError


class _Socket(Output):
    """A socket; a line of up to some 30 KB is sent as a whole or not at all."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._socket = native("socket", "socket")(fileno=os.dup(descriptor))
        self._send: Callable[[bytes, int], int] = self._socket.send

    def write_at_once(self, text: bytes) -> int:
        return self._send(text, MSG_DONTWAIT)

    def close(self) -> None:
        self._socket.close()


class _File(Output):
    """A file: the system takes a line into memory, unless its disk is behind."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._resumes_at = 0.0

    def write_at_once(self, text: bytes) -> int:
        began = monotonic()
        if began < self._resumes_at:
            raise BlockingIOError
        written = os.write(self._descriptor, text)
        ended = monotonic()
        if ended - began > _SLOW_SECONDS:
            self._resumes_at = ended + _PAUSE_SECONDS
        return written


#: The ways to write at once to each kind of descriptor, the best first.
_WAYS: tuple[tuple[Callable[[int], bool], tuple[type[Output], ...]], ...] = (
    (S_ISREG, (_File,)),
    (S_ISFIFO, (_Pipe, _PipeOfAnother)),
    (S_ISSOCK, (_Socket,)),
    (S_ISCHR, (_Reopened,)),
)


def open_output(descriptor: int) -> Output:
    """Return how to write to a descriptor; without a way to do so at once, writes wait."""
    mode = os.fstat(descriptor).st_mode
    for way in (way for is_kind, ways in _WAYS if is_kind(mode) for way in ways):
        try:
            return way(descriptor)
        except OSError:  # not ours, no /proc, no reader, or too many open files
            continue
    return Output(descriptor)
