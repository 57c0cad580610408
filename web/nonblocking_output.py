"""Writes to file descriptors without blocking, with a method for each kind of descriptor.

O_NONBLOCK on a descriptor would affect all programs that share it, such as the shell of a terminal
and other processes of the service. `poll` does not help, because two processes can see the same
free space in a pipe, and one of them would wait.

The kind of the descriptor determines the method:

- A pipe is opened again (`/proc/self/fd`) with O_NONBLOCK. If that is not possible, pwritev2(2) is
  used.
- A terminal or another device is opened again with O_NONBLOCK. If that is not possible, it cannot
  be written to without blocking.
- Data is sent to a socket (systemd's journal) by send(2) with MSG_DONTWAIT.
- Data is written to a file by write(2), unless the last write was slow.
- Anything else, and a pipe on macOS, cannot be written to without blocking.

Lines of up to PIPE_BUF bytes are written to a pipe completely or not at all. If the pipe fills up,
only a part of a longer line may be written. Each process therefore locks the pipe (flock(2)) while
it writes. For a longer line, the lock excludes all other writers until the whole line is written.
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

#: Duration in seconds above which a write indicates a busy disk.
_SLOW_WRITE_SECONDS = 0.05
#: Time in seconds for which lines are left to the thread after a slow write.
_SLOW_DISK_PAUSE_SECONDS = 10.0
_POLL_SECONDS = 0.01


def get_unpatched_function(module: str, name: str) -> Any:
    """Return the original function that gevent may have replaced."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey.get_original(module, name) if monkey else getattr(import_module(module), name)


class OutputDescriptor:
    """A file descriptor in blocking mode. A write blocks until the reader makes room."""

    def __init__(self, descriptor: int) -> None:
        """Store a descriptor, which stays open."""
        self._descriptor = descriptor

    def write_without_waiting(self, _text: bytes) -> int:
        """Write as much as possible without waiting and return the number of bytes.

        Raise BlockingIOError if nothing can be written now, and another OSError if the write fails.
        """
        raise BlockingIOError

    def write_text(self, text: bytes) -> int:
        """Write all of the text, waiting if necessary, and return the number of bytes written."""
        left = memoryview(text)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # a program that shares this terminal or pipe set O_NONBLOCK
                get_unpatched_function("time", "sleep")(_POLL_SECONDS)
            except OSError:  # the reader has exited, or a disk is full
                break
        return len(text) - len(left)

    def close_descriptors(self) -> None:
        """Close additional descriptors that were opened."""


class _ReopenedDevice(OutputDescriptor):
    """A device that is opened again, so that O_NONBLOCK affects only this process."""

    def __init__(self, descriptor: int) -> None:
        """Open the descriptor again.

        Raise OSError if that is not permitted or /proc is missing.
        """
        super().__init__(descriptor)
        how = os.O_WRONLY | os.O_NONBLOCK | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC
        self._own = os.open(f"/proc/self/fd/{descriptor}", how)

    def write_without_waiting(self, text: bytes) -> int:
        return os.write(self._own, text)

    def close_descriptors(self) -> None:
        os.close(self._own)


class _Pipe(_ReopenedDevice):
    """Pipe that is shared with other processes of the service, which use the same lock."""

    def write_without_waiting(self, text: bytes) -> int:
        # Lines that are written completely do not need an exclusive lock.
        lock = fcntl.LOCK_SH if len(text) <= PIPE_BUF else fcntl.LOCK_EX
        fcntl.flock(self._own, lock | fcntl.LOCK_NB)
        written = 0
        try:
            written = os.write(self._own, text)
        finally:
            if written in {0, len(text)}:
                fcntl.flock(self._own, fcntl.LOCK_UN)
        return written

    def write_text(self, text: bytes) -> int:
        # With a shared lock, writers that wait for the reader could block longer lines forever.
        with suppress(OSError):  # no memory for a lock; a mixed line is better than none
            fcntl.flock(self._own, fcntl.LOCK_EX)
        try:
            return super().write_text(text)
        finally:
            fcntl.flock(self._own, fcntl.LOCK_UN)


class _ForeignPipe(OutputDescriptor):
    """Pipe that another user opened, such as a supervisor before it switches users.

    Linux before 6.4 rejects the RWF_NOWAIT flag for pipes. The thread of `NonBlockingStream` then
    writes the line.
    """

    def write_without_waiting(self, text: bytes) -> int:
        if sys.platform == "linux" and len(text) <= PIPE_BUF:
            return os.pwritev(self._descriptor, (text,), -1, os.RWF_NOWAIT)
        raise BlockingIOError


class _Socket(OutputDescriptor):
    """Socket to which a line of up to about 30 KB is sent completely or not at all."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._socket = get_unpatched_function("socket", "socket")(fileno=os.dup(descriptor))
        self._send: Callable[[bytes, int], int] = self._socket.send

    def write_without_waiting(self, text: bytes) -> int:
        return self._send(text, MSG_DONTWAIT)

    def close_descriptors(self) -> None:
        self._socket.close()


class _File(OutputDescriptor):
    """A file. The system buffers its lines in memory unless the disk is slow."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._resumes_at = 0.0

    def write_without_waiting(self, text: bytes) -> int:
        began = monotonic()
        if began < self._resumes_at:
            raise BlockingIOError
        written = os.write(self._descriptor, text)
        ended = monotonic()
        if ended - began > _SLOW_WRITE_SECONDS:
            self._resumes_at = ended + _SLOW_DISK_PAUSE_SECONDS
        return written


#: Classes for non-blocking writes, by kind of descriptor and in order of preference.
_OUTPUT_CLASSES: tuple[tuple[Callable[[int], bool], tuple[type[OutputDescriptor], ...]], ...] = (
    (S_ISREG, (_File,)),
    (S_ISFIFO, (_Pipe, _ForeignPipe)),
    (S_ISSOCK, (_Socket,)),
    (S_ISCHR, (_ReopenedDevice,)),
)


def open_output(descriptor: int) -> OutputDescriptor:
    """Return the output for a descriptor.

    If the descriptor cannot be written to without waiting, the thread of `NonBlockingStream` writes
    all lines.
    """
    mode = os.fstat(descriptor).st_mode
    for way in (way for is_kind, ways in _OUTPUT_CLASSES if is_kind(mode) for way in ways):
        try:
            return way(descriptor)
        except OSError:  # not permitted, no /proc, no reader, or too many open files
            continue
    return OutputDescriptor(descriptor)
