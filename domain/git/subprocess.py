"""A child process whose pipes have a deadline for every wait.

Python's `subprocess` forks in a web process, which has greenlets and threads: the fork copies page
tables, and gevent runs Python between fork and exec. `os.posix_spawnp` does neither. It waits by
Python's poll objects, which gevent makes cooperative, so that the same code serves web processes,
the background worker and the command line.
"""

import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from tempfile import TemporaryFile
from time import monotonic, sleep

#: Bytes of one read: what a pipe of Linux holds.
PIECE = 65_536
#: Bytes of the error output that are kept.
_MOST_ERRORS = 2_000
#: Seconds between SIGTERM, which lets Git remove its temporary files, and SIGKILL.
_GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.01
#: The descriptors on which a program asks and is answered; `hooks/pre-receive` names them too.
_ASKS, _IS_ANSWERED = 8, 9
Argument = str | bytes
#: Returns the answer to a question, in one line.
Answer = Callable[[], str]


class ChildTimeoutError(Exception):
    """The child neither took nor gave anything in time."""


class Child:
    """A running program, in a process group of its own with all that it starts."""

    def __init__(
        self,
        command: Sequence[Argument],
        environment: Mapping[str, str],
        *,
        patience: float,
        answer: Answer | None = None,
    ) -> None:
        """Start a program found in PATH; raise OSError if that fails.

        `patience` is how many seconds a single read or write may take. `answer` is called by a read
        or write while the program, or what it has started, asks something.
        """
        self._patience = patience
        self._questions = _Questions(answer)
        self._errors = TemporaryFile()  # noqa: SIM115 - `end` closes it
        self.status: int | None = None
        taken, self._stdin = os.pipe()
        self._stdout, given = os.pipe()
        try:
            self._pid = os.posix_spawnp(
                os.fsdecode(command[0]),
                list(command),
                dict(environment),
                file_actions=(
                    (os.POSIX_SPAWN_DUP2, taken, 0),
                    (os.POSIX_SPAWN_DUP2, given, 1),
                    (os.POSIX_SPAWN_DUP2, self._errors.fileno(), 2),
                    *self._questions.file_actions,
                ),
                setpgroup=0,
                setsigmask=(),
                # Python ignores it, and a child would inherit that.
                setsigdef=(signal.SIGPIPE,),
            )
        except OSError:
            _close(self._stdin, self._stdout)
            self._errors.close()
            self._questions.close()
            raise
        finally:
            _close(taken, given, *self._questions.of_program)
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._is_fed = False

    def read(self, size: int = PIECE) -> bytes:
        """Return what the program wrote, at most `size` bytes; empty at its end."""
        self._wait(self._stdout, select.POLLIN)
        return os.read(self._stdout, size)

    def write(self, piece: bytes) -> bytes:
        """Write a piece, and return what the program wrote meanwhile.

        A program that no longer reads gets nothing: its exit status and output say why.
        """
        rest, written = memoryview(piece), bytearray()
        while rest and not self._is_fed:
            events = self._poll({self._stdin: select.POLLOUT, self._stdout: select.POLLIN})
            if self._stdout in events and not self._collect(written):
                break
            if self._stdin in events:
                rest = rest[self._write_some(rest) :]
        return bytes(written)

    def end_input(self) -> None:
        """Close the program's standard input."""
        if not self._is_fed:
            self._is_fed = True
            _close(self._stdin)

    def end(self) -> int:
        """End the program with all that it started, unless it has ended; return the exit status.

        The status is negative for a signal. Calling it again changes nothing.
        """
        if self.status is None:
            self.status = self._reap(0.0)
            if self.status is None:
                # Before its input ends: what was cut off must not look complete.
                self._signal(signal.SIGTERM)
            self._close_pipes()
            if self.status is None:
                self.status = self._await_death()
        return self.status

    def wait(self, seconds: float) -> int | None:
        """Wait for the end of a program that has written everything; None if it takes longer."""
        if self.status is None:
            self.status = self._reap(seconds)
            if self.status is not None:
                self._close_pipes()
        return self.status

    def errors(self) -> str:
        """Return the last part of the error output; only once."""
        with self._errors as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_ERRORS))
            return file.read().decode(errors="replace").strip()

    def _collect(self, written: bytearray) -> bool:
        """Append what the program wrote; return False at its end."""
        piece = os.read(self._stdout, PIECE)
        written += piece
        return bool(piece)

    def _write_some(self, rest: memoryview) -> int:
        try:
            return os.write(self._stdin, rest)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            self.end_input()
            return len(rest)

    def _wait(self, descriptor: int, event: int) -> None:
        self._poll({descriptor: event})

    def _poll(self, wanted: dict[int, int]) -> set[int]:
        ready: set[int] = set()
        while not ready:
            poller = select.poll()
            for descriptor, event in (wanted | self._questions.wanted).items():
                poller.register(descriptor, event)
            found = {descriptor for descriptor, _event in poller.poll(self._patience * 1000)}
            if not found:
                raise ChildTimeoutError
            if found & set(self._questions.wanted):
                self._questions.reply()
            ready = found & set(wanted)
        return ready

    def _await_death(self) -> int:
        status = self._reap(_GRACE_SECONDS)
        if status is None:
            self._signal(signal.SIGKILL)
            status = self._reap(_GRACE_SECONDS)
        return -signal.SIGKILL if status is None else status

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)

    def _close_pipes(self) -> None:
        self.end_input()
        _close(self._stdout)
        self._questions.close()

    def _reap(self, seconds: float) -> int | None:
        """Return the exit status as soon as there is one; None when the time is over."""
        deadline = monotonic() + seconds
        while True:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                return 0  # reaped by another part of this process
            if pid:
                return os.waitstatus_to_exitcode(status)
            if monotonic() >= deadline:
                return None
            sleep(_POLL_SECONDS)


class _Questions:
    """Two pipes: a program asks on one, and is answered on the other."""

    def __init__(self, answer: Answer | None) -> None:
        self._answer = answer
        #: What to wait for, by descriptor; nothing where nobody can ask.
        self.wanted: dict[int, int] = {}
        self._ours: tuple[int, ...] = ()
        #: The ends of the program.
        self.of_program: tuple[int, ...] = ()
        if answer is None:
            return
        asked, asks = os.pipe()
        is_answered, answers = os.pipe()
        # Above those that the program gets, so that none is overwritten before it is copied.
        self.of_program = tuple(fcntl(each, F_DUPFD_CLOEXEC, 10) for each in (asks, is_answered))
        _close(asks, is_answered)
        self._ours, self.wanted = (asked, answers), {asked: select.POLLIN}

    @property
    def file_actions(self) -> tuple[tuple[int, int, int], ...]:
        """Return what gives the program its ends."""
        pairs = zip(self.of_program, (_ASKS, _IS_ANSWERED), strict=False)
        return tuple((os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in pairs)

    def reply(self) -> None:
        """Answer a question, or take note that nobody is left who could ask."""
        asked, answers = self._ours
        if not os.read(asked, PIECE) or self._answer is None:
            self.close()
            return
        # Whoever does not read it any more needs no answer.
        with suppress(BrokenPipeError):
            os.write(answers, f"{self._answer()}\n".encode())

    def close(self) -> None:
        """Close our ends: a program that waits for an answer gets none."""
        _close(*self._ours)
        self._ours, self.wanted = (), {}


def _close(*descriptors: int) -> None:
    for each in descriptors:
        with suppress(OSError):
            os.close(each)
