"""Standard output and error streams that never make the service wait for their readers.

The reader of a pipe may stop, because of a stuck log shipper, a full disk or Ctrl-S on a terminal.
Once a pipe is full (64 KiB), each write waits, which would stop all requests of a web process. A
line is therefore written immediately if the descriptor accepts it without waiting
(`web/nonblocking_output.py`).

Otherwise the line waits in memory for a thread that writes it, and so do all lines after it, in
order. If the memory limit is reached, further lines are dropped and counted. Once the waiting lines
are written, one line reports the number of dropped lines. ADR 76 lists all states and events.
"""

import atexit
import io
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from select import PIPE_BUF

from web.nonblocking_output import get_unpatched_function, open_output

#: Maximum size of waiting lines in a process, in bytes.
_MAX_WAITING_BYTES = 2 * 1024 * 1024
#: Time in seconds that an ending process waits for its last lines to be read.
_DRAIN_SECONDS = 1.0
_POLL_SECONDS = 0.01
_NEWLINE = ord("\n")


class NonBlockingStream(io.TextIOBase):
    """Text stream that writes each line immediately or leaves it to a thread that may wait."""

    def __init__(self, descriptor: int) -> None:
        """Store a file descriptor, and prepare to write to it without waiting."""
        self._descriptor = descriptor
        self._output = open_output(descriptor)
        #: Function that returns the line about dropped lines. It is replaced when logging is
        #: configured, which happens later.
        self.describe_dropped: Callable[[int], str] = "{} lines were dropped".format
        self._start_thread()
        os.register_at_fork(after_in_child=self._reset_in_child)

    def _start_thread(self) -> None:
        #: Waiting lines, each with the number of lines dropped before it.
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._waiting_bytes = self._dropped = self._told = 0
        self._is_idle = self._ends_line = True
        #: `True` while a line is being written without the thread.
        self._is_writing = False
        self._has_thread = False
        # The lock is reentrant, because a signal handler may write while the lock is held.
        self._taking = get_unpatched_function("_thread", "RLock")()
        #: Lock that is held while no line waits. The first waiting line releases it, and the thread
        #: acquires it again.
        self._rest = get_unpatched_function("_thread", "allocate_lock")()
        self._rest.acquire()

    def _reset_in_child(self) -> None:
        """Drop the parent's waiting lines in a child process, and share no lock with the parent."""
        self._output.close_descriptors()
        self._output = open_output(self._descriptor)
        self._start_thread()

    @property
    def dropped_lines(self) -> int:
        """Number of lines that this process has dropped."""
        return self._dropped

    def write(self, text: str) -> int:
        """Write text without waiting, queue it, or drop it if too much text is waiting."""
        if line := text.encode("utf-8", "backslashreplace"):
            with self._taking:
                if (
                    self._is_idle
                    and not (self._is_writing or self._waiting)
                    and self._has_reported_dropped_lines()
                ):
                    self._write_immediately(line)
                else:
                    self._queue_line(line)
        return len(text)

    def flush(self) -> None:
        """Return immediately, because lines are never buffered when they can be written."""

    def wait_until_written(self, seconds: float = _DRAIN_SECONDS) -> None:
        """Wait until all lines are written, but no longer than the given time."""
        sleep = get_unpatched_function("time", "sleep")
        for _ in range(int(seconds / _POLL_SECONDS)):
            if self._is_idle:
                return
            sleep(_POLL_SECONDS)

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether the descriptor is a terminal."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Return True, because the stream accepts text."""
        return True

    def _has_reported_dropped_lines(self) -> bool:
        """Return whether all dropped lines have been reported."""
        return self._dropped == self._told

    def _write_immediately(self, line: bytes) -> None:
        """Write as much of a line as possible without waiting, and queue the rest.

        The rest is queued before the lines that signal handlers wrote in the meantime.
        """
        self._is_writing, written = True, 0
        try:
            written = self._output.write_without_waiting(line)
        except OSError:  # the thread waits for the reader, or handles the error
            pass
        finally:
            self._record_line_end(line, written)
            if rest := line[written:]:
                self._waiting_bytes += len(rest)
                self._waiting.appendleft((rest, self._dropped))
            self._is_writing = False
            if self._waiting:
                self._wake_thread()

    def _queue_line(self, line: bytes) -> None:
        """Queue a line for the thread, or drop it if too much is waiting."""
        if self._waiting_bytes + len(line) > _MAX_WAITING_BYTES:
            self._dropped += _count_lines(line)
        else:
            self._waiting_bytes += len(line)
            self._waiting.append((line, self._dropped))
        if not self._is_writing:
            self._wake_thread()

    def _wake_thread(self) -> None:
        if self._is_idle:
            self._is_idle = False
            with suppress(RuntimeError):  # a signal handler has already released it
                self._rest.release()
        if not self._has_thread:
            with suppress(RuntimeError):  # if no thread can be started, the next line tries again
                get_unpatched_function("_thread", "start_new_thread")(self._write_in_thread, ())
                self._has_thread = True

    def _write_in_thread(self) -> None:
        while True:
            self._rest.acquire()
            while not self._has_become_idle():
                self._write_next_lines()

    def _has_become_idle(self) -> bool:
        """Return whether no line is waiting, in which case the next writer wakes the thread."""
        with self._taking:
            if self._waiting:
                return False
            self._waiting_bytes = 0
        self._report_dropped_lines(self._dropped)
        with self._taking:
            self._is_idle = not self._waiting
            return self._is_idle

    def _write_next_lines(self) -> None:
        """Write the next lines, as many as the system writes atomically.

        Other processes write to the same pipe.
        """
        piece, dropped = self._waiting.popleft()
        self._report_dropped_lines(dropped)
        while self._waiting and self._waiting[0][1] == dropped:
            if len(piece) + len(self._waiting[0][0]) > PIPE_BUF:
                break
            piece += self._waiting.popleft()[0]
        is_written = self._write_chunk(piece)
        with self._taking:
            self._waiting_bytes -= len(piece)
            self._dropped += 0 if is_written else _count_lines(piece)

    def _report_dropped_lines(self, dropped: int) -> None:
        """Write a line that reports the newly dropped lines, if any."""
        if dropped > self._told:
            said = self.describe_dropped(dropped - self._told)
            line = f"{'' if self._ends_line else chr(10)}{said}\n"
            if self._write_chunk(line.encode("utf-8", "backslashreplace")):
                self._told = dropped

    def _write_chunk(self, piece: bytes) -> bool:
        """Write a chunk, waiting if necessary, and return whether that succeeded."""
        written = self._output.write_text(piece)
        self._record_line_end(piece, written)
        return written == len(piece)

    def _record_line_end(self, piece: bytes, written: int) -> None:
        if written:
            self._ends_line = piece[written - 1] == _NEWLINE


def _count_lines(text: bytes) -> int:
    return max(text.count(b"\n"), 1)


def unblock_standard_streams() -> None:
    """Prevent this process and its children from waiting for readers of their output.

    Streams that replace the original streams are left unchanged.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            stream.flush()
            unblocked = NonBlockingStream(stream.fileno())
            atexit.register(unblocked.wait_until_written)
            setattr(sys, name, unblocked)


def drain_standard_streams() -> None:
    """Wait for the last lines before this process becomes another program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, NonBlockingStream):
            stream.wait_until_written()


def set_dropped_lines_description(describe: Callable[[int], str]) -> None:
    """Set the function that returns the line about lines dropped from standard error."""
    if isinstance(sys.stderr, NonBlockingStream):
        sys.stderr.describe_dropped = describe


def get_dropped_line_count() -> int:
    """Return the number of lines that this process has dropped."""
    streams = (sys.stdout, sys.stderr)
    return sum(each.dropped_lines for each in streams if isinstance(each, NonBlockingStream))


def print_line(text: str) -> None:
    """Write a line to standard output immediately."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
