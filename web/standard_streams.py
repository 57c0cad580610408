"""Standard output and error that never make the service wait for who reads them.

A pipe whose reader has stopped (a stuck log shipper, a full disk behind it, Ctrl-S on a terminal)
takes 64 KiB, and then each write waits: in a web process, for all requests at once. So lines wait
in memory for a thread that writes them. When there is no room left, further lines are dropped and
counted, and one line says how many, once the others could be written.
"""

import atexit
import io
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from select import PIPE_BUF
from typing import Any

#: Bytes of lines that wait in a process.
_ROOM_BYTES = 2 * 1024 * 1024
#: How long a process that ends waits for its last lines to be read.
_FAREWELL_SECONDS = 1.0
_POLL_SECONDS = 0.01


def _native(module: str, name: str) -> Any:
    """Return a function as it was before gevent replaced it.

    The writer has to be a thread of its own, and not a greenlet, because it waits.
    """
    monkey = sys.modules.get("gevent.monkey")
    return monkey.get_original(module, name) if monkey else getattr(import_module(module), name)


class UnblockedStream(io.TextIOBase):
    """A text stream that takes each line at once; a thread writes them to a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        """Write to this file descriptor."""
        self._descriptor = descriptor
        #: Says how many lines were dropped; logs are set up later than streams.
        self.describe_dropped: Callable[[int], str] = "{} lines were dropped".format
        self._begin()
        # A child forgets what its parent has yet to write.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        #: Lines with the number of those that had been dropped before.
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._waiting_bytes = self._dropped = self._told = 0
        self._is_idle = self._ends_line = True
        self._has_thread = False
        # Reentrant: a signal handler may write while we do.
        self._taking = _native("_thread", "RLock")()
        #: Held while nothing waits: who ends the rest releases it, the thread takes it again.
        self._rest = _native("_thread", "allocate_lock")()
        self._rest.acquire()

    @property
    def dropped(self) -> int:
        """The number of lines that this process has dropped."""
        return self._dropped

    def write(self, text: str) -> int:
        """Take a text, or drop it if too much waits; never wait."""
        line = text.encode("utf-8", "backslashreplace")
        with self._taking:
            if self._waiting_bytes + len(line) > _ROOM_BYTES:
                self._dropped += _lines_in(line)
            else:
                self._waiting_bytes += len(line)
                self._waiting.append((line, self._dropped))
            if self._is_idle:
                self._is_idle = False
                self._rest.release()
            if not self._has_thread:
                self._start_thread()
        return len(text)

    def flush(self) -> None:
        """Return at once: the thread writes without a buffer."""

    def drain(self, seconds: float = _FAREWELL_SECONDS) -> None:
        """Wait until everything was written, but no longer than this."""
        sleep = _native("time", "sleep")
        for _ in range(int(seconds / _POLL_SECONDS)):
            if self._is_idle:
                return
            sleep(_POLL_SECONDS)

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether a person reads it."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Return True."""
        return True

    def _start_thread(self) -> None:
        with suppress(RuntimeError):  # no room for a thread: the next line tries again
            _native("_thread", "start_new_thread")(self._write_on, ())
            self._has_thread = True

    def _write_on(self) -> None:
        while True:
            self._rest.acquire()
            while not self._has_come_to_rest():
                self._write_next()

    def _has_come_to_rest(self) -> bool:
        """Return whether nothing waits; the next who writes ends the rest then."""
        with self._taking:
            if self._waiting:
                return False
            self._waiting_bytes = 0
        self._tell_of_dropped(self._dropped)
        with self._taking:
            self._is_idle = not self._waiting
            return self._is_idle

    def _write_next(self) -> None:
        """Write the next lines, as many as the system writes as one.

        Other processes write to the same pipe.
        """
        piece, dropped = self._waiting.popleft()
        self._tell_of_dropped(dropped)
        while self._waiting and self._waiting[0][1] == dropped:
            if len(piece) + len(self._waiting[0][0]) > PIPE_BUF:
                break
            piece += self._waiting.popleft()[0]
        is_written = self._write(piece)
        with self._taking:
            self._waiting_bytes -= len(piece)
            self._dropped += 0 if is_written else _lines_in(piece)

    def _tell_of_dropped(self, dropped: int) -> None:
        """Write how many lines were dropped since the last time, if any."""
        if dropped > self._told:
            said = self.describe_dropped(dropped - self._told)
            line = f"{'' if self._ends_line else chr(10)}{said}\n"
            if self._write(line.encode("utf-8", "backslashreplace")):
                self._told = dropped

    def _write(self, piece: bytes) -> bool:
        """Write, however long it takes; return whether it was possible."""
        left = memoryview(piece)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # another program of this terminal or pipe made it so
                _native("time", "sleep")(_POLL_SECONDS)
            except OSError:  # nobody can read it any more, or a disk is full
                return False
        self._ends_line = piece.endswith(b"\n")
        return True


def _lines_in(text: bytes) -> int:
    return max(text.count(b"\n"), 1)


def unblock_standard_streams() -> None:
    """Let this process, and those that it forks, never wait for a reader of their output.

    Streams that are not those of the process, but were put in their place, stay.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            stream.flush()
            unblocked = UnblockedStream(stream.fileno())
            atexit.register(unblocked.drain)
            setattr(sys, name, unblocked)


def describe_dropped_lines(describe: Callable[[int], str]) -> None:
    """Let what writes to standard error say in this way how many lines were dropped."""
    if isinstance(sys.stderr, UnblockedStream):
        sys.stderr.describe_dropped = describe


def dropped_lines() -> int:
    """Return how many lines this process has dropped so far."""
    streams = (sys.stdout, sys.stderr)
    return sum(each.dropped for each in streams if isinstance(each, UnblockedStream))


def say(text: str) -> None:
    """Write a line to standard output at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
