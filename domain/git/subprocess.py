"""Child processes with a timeout for every wait on a pipe.

Python's `subprocess` forks, which is costly in a web process with greenlets and threads. The fork
copies page tables, and gevent runs Python code between fork and exec. `os.posix_spawnp` avoids
both. Waiting uses Python's poll objects, which gevent makes cooperative, so the same code works in
web processes, the background worker and the command line.
"""

import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from tempfile import TemporaryFile
from time import monotonic, sleep

#: Maximum number of bytes in one read, which is the capacity of a pipe on Linux.
MAX_READ_BYTES = 65_536
#: Maximum number of bytes stored from the error output.
_MAX_ERROR_BYTES = 2_000
#: Number of seconds between SIGTERM, after which Git removes its temporary files, and SIGKILL.
_TERMINATION_GRACE_SECONDS = 2.0
_POLL_SECONDS = 0.01
#: File descriptors on which a program sends questions and receives answers. `hooks/pre-receive`
#: uses the same numbers.
_QUESTION_DESCRIPTOR, _ANSWER_DESCRIPTOR = 8, 9
Argument = str | bytes
#: Function that returns the answer to a question as one line.
AnswerFunction = Callable[[], str]


class ChildTimeoutError(Exception):
    """Error for a child process that neither read nor wrote anything in time."""


class ChildProcess:
    """A running program in its own process group, which includes the processes that it starts."""

    def __init__(
        self,
        command: Sequence[Argument],
        environment: Mapping[str, str],
        *,
        timeout_seconds: float,
        answer: AnswerFunction | None = None,
    ) -> None:
        """Start a program found in PATH.

        `timeout_seconds` is the timeout of a single read or write. While the program or a
        process started by it waits for an answer, a read or write calls `answer`. Raise OSError if
        the program cannot be started.
        """
        self._patience = timeout_seconds
        self._questions = _QuestionAndAnswerPipes(answer)
        self._errors = TemporaryFile()  # noqa: SIM115 - `read_errors` closes it
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
                # Python ignores this signal, and child processes would inherit this setting.
                setsigdef=(signal.SIGPIPE,),
            )
        except OSError:
            _close_descriptors(self._stdin, self._stdout)
            self._errors.close()
            self._questions.close()
            raise
        finally:
            _close_descriptors(taken, given, *self._questions.of_program)
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._is_fed = False

    def read_output(self, size: int = MAX_READ_BYTES) -> bytes:
        """Return up to `size` bytes of output, or empty bytes at the end of the output."""
        self._wait_for_event(self._stdout, select.POLLIN)
        return os.read(self._stdout, size)

    def write_input(self, piece: bytes) -> bytes:
        """Write data, and return the output that the program wrote in the meantime.

        If the program no longer reads its input, the rest of the data is discarded. The program's
        exit status and output contain the reason.
        """
        rest, written = memoryview(piece), bytearray()
        while rest and not self._is_fed:
            events = self._poll_descriptors(
                {self._stdin: select.POLLOUT, self._stdout: select.POLLIN}
            )
            if self._stdout in events and not self._collect_output(written):
                break
            if self._stdin in events:
                rest = rest[self._write_without_blocking(rest) :]
        return bytes(written)

    def close_stdin(self) -> None:
        """Close the program's standard input."""
        if not self._is_fed:
            self._is_fed = True
            _close_descriptors(self._stdin)

    def terminate(self) -> int:
        """End the program with all processes that it started, and return the exit status.

        The status is negative if a signal ended the program. Further calls have no effect.
        """
        if self.status is None:
            self.status = self._await_exit_status(0.0)
            if self.status is None:
                # Send the signal before closing the input, because truncated input must not look
                # complete.
                self._send_signal(signal.SIGTERM)
            self._close_pipes()
            if self.status is None:
                self.status = self._wait_or_kill()
        return self.status

    def wait_for_exit(self, seconds: float) -> int | None:
        """Return the exit status after all output was read, or None after the timeout."""
        if self.status is None:
            self.status = self._await_exit_status(seconds)
            if self.status is not None:
                self._close_pipes()
        return self.status

    def read_errors(self) -> str:
        """Return the last part of the error output. Call this method only once."""
        with self._errors as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MAX_ERROR_BYTES))
            return file.read().decode(errors="replace").strip()

    def _collect_output(self, written: bytearray) -> bool:
        """Append output of the program to `written`, and return False at the end of the output."""
        piece = os.read(self._stdout, MAX_READ_BYTES)
        written += piece
        return bool(piece)

    def _write_without_blocking(self, rest: memoryview) -> int:
        try:
            return os.write(self._stdin, rest)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            self.close_stdin()
            return len(rest)

    def _wait_for_event(self, descriptor: int, event: int) -> None:
        self._poll_descriptors({descriptor: event})

    def _poll_descriptors(self, wanted: dict[int, int]) -> set[int]:
        ready: set[int] = set()
        while not ready:
            poller = select.poll()
            for descriptor, event in (wanted | self._questions.wanted).items():
                poller.register(descriptor, event)
            found = {descriptor for descriptor, _event in poller.poll(self._patience * 1000)}
            if not found:
                raise ChildTimeoutError
            if found & set(self._questions.wanted):
                self._questions.answer_question()
            ready = found & set(wanted)
        return ready

    def _wait_or_kill(self) -> int:
        status = self._await_exit_status(_TERMINATION_GRACE_SECONDS)
        if status is None:
            self._send_signal(signal.SIGKILL)
            status = self._await_exit_status(_TERMINATION_GRACE_SECONDS)
        return -signal.SIGKILL if status is None else status

    def _send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)

    def _close_pipes(self) -> None:
        self.close_stdin()
        _close_descriptors(self._stdout)
        self._questions.close()

    def _await_exit_status(self, seconds: float) -> int | None:
        """Return the exit status when the process ends, or None after the timeout."""
        deadline = monotonic() + seconds
        while True:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                return 0  # Another part of this process has already reaped the child process.
            if pid:
                return os.waitstatus_to_exitcode(status)
            if monotonic() >= deadline:
                return None
            sleep(_POLL_SECONDS)


class _QuestionAndAnswerPipes:
    """A pipe for a program's questions, and a pipe for the answers."""

    def __init__(self, answer: AnswerFunction | None) -> None:
        self._answer = answer
        #: Events to wait for, by descriptor. Empty if the program cannot send questions.
        self.wanted: dict[int, int] = {}
        self._ours: tuple[int, ...] = ()
        #: The program's ends of the pipes.
        self.of_program: tuple[int, ...] = ()
        if answer is None:
            return
        asked, asks = os.pipe()
        is_answered, answers = os.pipe()
        # Use higher numbers than the program's descriptors, so that no descriptor is overwritten
        # before it is copied.
        self.of_program = tuple(fcntl(each, F_DUPFD_CLOEXEC, 10) for each in (asks, is_answered))
        _close_descriptors(asks, is_answered)
        self._ours, self.wanted = (asked, answers), {asked: select.POLLIN}

    @property
    def file_actions(self) -> tuple[tuple[int, int, int], ...]:
        """Actions that pass the ends of the pipes to the program."""
        pairs = zip(self.of_program, (_QUESTION_DESCRIPTOR, _ANSWER_DESCRIPTOR), strict=False)
        return tuple((os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in pairs)

    def answer_question(self) -> None:
        """Answer a question, or close the pipes if no process remains that could send questions."""
        asked, answers = self._ours
        if not os.read(asked, MAX_READ_BYTES) or self._answer is None:
            self.close()
            return
        # The program may have stopped reading, so it needs no answer.
        with suppress(BrokenPipeError):
            os.write(answers, f"{self._answer()}\n".encode())

    def close(self) -> None:
        """Close this side of the pipes, so that the program stops waiting for an answer."""
        _close_descriptors(*self._ours)
        self._ours, self.wanted = (), {}


def _close_descriptors(*descriptors: int) -> None:
    for each in descriptors:
        with suppress(OSError):
            os.close(each)
