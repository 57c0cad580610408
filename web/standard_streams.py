"""Standard output and error that never make the service wait for who reads them.

A pipe whose reader has stopped (a stuck log shipper, a full disk behind it, Ctrl-S on a terminal)
takes 64 KiB, and then each write waits: in a web process, for all requests at once. So a line is
written at once where the descriptor takes it without waiting (`web/nonblocking_output.py`).
Otherwise, it waits in memory for a thread that writes it, and so do all lines after it, in order.
When there is no room left, further lines are dropped and counted, and one line says how many, once
the others could be written. ADR 76 has all states and events.
"""

import atexit
import io
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from select import PIPE_BUF

from web.nonblocking_output import native, open_output

#: Bytes of lines that wait in a process.
_ROOM_BYTES = 2 * 1024 * 1024
#: How long a process that ends waits for its last lines to be read.
_FAREWELL_SECONDS = 1.0
_POLL_SECONDS = 0.01
_NEWLINE = ord("\n")


class UnblockedStream(io.TextIOBase):
    """A text stream that writes each line at once, or leaves it to a thread that may wait."""

    def __init__(self, descriptor: int) -> None:
        """Write to this file descriptor."""
        self._descriptor = descriptor
        self._output = open_output(descriptor)
        #: Says how many lines were dropped; logs are set up later than streams.
        self.describe_dropped: Callable[[int], str] = "{} lines were dropped".format
        self._begin()
        os.register_at_fork(after_in_child=self._begin_again)

    def _begin(self) -> None:
        #: Lines with the number of those that had been dropped before.
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._waiting_bytes = self._dropped = self._told = 0
        self._is_idle = self._ends_line = True
        #: A line is being written at once.
        self._is_writing = False
        self._has_thread = False
        # Reentrant: a signal handler may write while we do.
        self._taking = native("_thread", "RLock")()
        #: Held while nothing waits: who ends the rest releases it, the thread takes it again.
        self._rest = native("_thread", "allocate_lock")()
        self._rest.acquire()

    def _begin_again(self) -> None:
        """Forget in a child what its parent has yet to write, and share no lock with it."""
        self._output.close()
        self._output = open_output(self._descriptor)
        self._begin()

    @property
    def dropped(self) -> int:
        """The number of lines that this process has dropped."""
        return self._dropped

    def write(self, text: str) -> int:
        """Write a text, or keep it for the thread, or drop it if too much waits; never wait."""
        if line := text.encode("utf-8", "backslashreplace"):
            with self._taking:
                if self._is_idle and not (self._is_writing or self._waiting) and self._has_told():
                    self._write_at_once(line)
                else:
                    self._keep(line)
        return len(text)

    def flush(self) -> None:
        """Return at once: nothing is buffered that could be written."""

    def drain(self, seconds: float = _FAREWELL_SECONDS) -> None:
        """Wait until everything was written, but no longer than this."""
        sleep = native("time", "sleep")
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

    def _has_told(self) -> bool:
        """Return whether no dropped line is yet to be told of."""
        return self._dropped == self._told

    def _write_at_once(self, line: bytes) -> None:
        """Write what the descriptor takes; the rest waits before what a signal handler wrote."""
        self._is_writing, written = True, 0
        try:
            written = self._output.write_at_once(line)
        except OSError:  # the thread waits, or finds out what is wrong
            pass
        finally:
            self._note_end(line, written)
            if rest := line[written:]:
                self._waiting_bytes += len(rest)
                self._waiting.appendleft((rest, self._dropped))
            self._is_writing = False
            if self._waiting:
                self._wake_thread()

    def _keep(self, line: bytes) -> None:
        """Keep a line for the thread, or drop it if too much waits."""
        if self._waiting_bytes + len(line) > _ROOM_BYTES:
            self._dropped += _lines_in(line)
        else:
            self._waiting_bytes += len(line)
            self._waiting.append((line, self._dropped))
        if not self._is_writing:
            self._wake_thread()

    def _wake_thread(self) -> None:
        if self._is_idle:
            self._is_idle = False
            with suppress(RuntimeError):  # a signal handler has released it since
                self._rest.release()
        if not self._has_thread:
            with suppress(RuntimeError):  # no room for a thread: the next line tries again
                native("_thread", "start_new_thread")(self._write_on, ())
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
        written = self._output.write_all(piece)
        self._note_end(piece, written)
        return written == len(piece)

    def _note_end(self, piece: bytes, written: int) -> None:
        if written:
            self._ends_line = piece[written - 1] == _NEWLINE


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


def drain_standard_streams() -> None:
    """Wait for the last lines, before this process becomes another program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, UnblockedStream):
            stream.drain()


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
