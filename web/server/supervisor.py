"""Runs several programs that start and stop together."""

import logging
import os
import select
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from types import FrameType

from web.server.watchdog import Watchdog
from web.settings.reader import WRONG_SETTING, environment_with, take_from_environment

_log = logging.getLogger("gatebell.supervisor")
_POLL_SECONDS = 0.2
#: Signals that come together are one: make passes on what its whole group gets.
_SAME_SIGNAL_SECONDS = 0.25
#: Between looks while all programs run. A program that ends is a signal, and is noted at once.
_WATCH_SECONDS = 2.0
#: The pause before a restart, doubled after each further one.
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
#: A program that has run for so long starts again with the first pause.
_LONG_LIFE_SECONDS = 60.0
#: How long a program may take to show the first sign of life: on a machine that has far too much to
#: do, loading takes minutes, and who is killed meanwhile begins anew.
_START_SECONDS = 600.0
#: Exit statuses of a stopped program; the second one if it had no handler yet.
_STOPPED = (0, -signal.SIGTERM)
#: Names the file descriptor that a held program reads from before it begins.
HELD_BY = "GATEBELL_HELD_BY"
#: A message is a few words.
_LONGEST_MESSAGE = 4_096


class NotifySocket:
    """Where a supervisor receives the signs of life of one program.

    The directory around it lets no other user of the machine send any.
    """

    def __init__(self) -> None:
        self._directory = TemporaryDirectory(prefix="gatebell-")
        #: The value of NOTIFY_SOCKET for the program.
        self.address = str(Path(self._directory.name) / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        self._socket.bind(self.address)

    def has_received(self) -> bool:
        """Return whether something was sent since the last call."""
        received = False
        try:
            while True:
                self._socket.recv(_LONGEST_MESSAGE)
                received = True
        except BlockingIOError:
            return received

    def close(self) -> None:
        """Receive no more."""
        self._socket.close()
        self._directory.cleanup()


class WhenEnded(Enum):
    """What happens when a program ends by itself."""

    #: All programs are stopped.
    STOP_ALL = "stop all"
    #: It is started again if it was killed or had run for long; if it ended soon by itself, its
    #: settings are wrong, and all programs are stopped.
    RESTART_IF_IT_RAN = "restart if it ran"
    RESTART = "restart"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to run."""

    command: Sequence[str]
    #: What it is started by until it has shown a sign of life for the first time. It may take as
    #: long as it likes; if it ends by itself before, all programs are stopped.
    first_command: Sequence[str] | None = None
    #: The program whose first sign of life it waits for (`wait_until_released`) when it has loaded.
    waits_for: str | None = None
    when_ended: WhenEnded = WhenEnded.STOP_ALL
    #: How long it may show no sign of life before it is killed, once it has started; None if it
    #: never shows any. It gets NOTIFY_SOCKET, as from systemd.
    watchdog_seconds: float | None = None


class _Run:
    """The state of a program, with its restarts."""

    def __init__(self, name: str, program: Program) -> None:
        self.name = name
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.starts_at = self._started_at = monotonic()
        self._pause = _FIRST_PAUSE_SECONDS
        self._signs = None if program.watchdog_seconds is None else NotifySocket()
        #: Whether it has ever shown a sign of life.
        self.has_begun = False
        #: Our end of the pipe that holds it.
        self._holds: int | None = None
        #: When the next sign of life is due.
        self._due_at = float("inf")

    def start(self, *, is_held: bool = False) -> int:
        """Start the program in a session of its own and return the process id."""
        is_first = self.program.first_command is not None and not self.has_begun
        variables: dict[str, str] = {}
        inherited: tuple[int, ...] = ()
        if self._signs is not None:
            self._due_at = float("inf") if is_first else monotonic() + _START_SECONDS
            variables["NOTIFY_SOCKET"] = self._signs.address
        self.release()
        if is_held:
            held_by, self._holds = os.pipe()
            variables[HELD_BY], inherited = str(held_by), (held_by,)
        self.process = subprocess.Popen(  # noqa: S603 - our own words
            (self.program.first_command if is_first else None) or self.program.command,
            start_new_session=True,
            env=environment_with(**variables),
            pass_fds=inherited,
        )
        for descriptor in inherited:
            os.close(descriptor)
        self._started_at = monotonic()
        return self.process.pid

    def release(self) -> None:
        """Let it begin, if it is held."""
        if self._holds is not None:
            os.close(self._holds)
            self._holds = None

    def cannot_start(self) -> bool:
        """Return whether it has ended by itself before it ever began."""
        return (
            self.process is not None
            and (self.process.returncode or 0) > 0
            and self.program.first_command is not None
            and not self.has_begun
        )

    def is_wrong_setting(self) -> bool:
        """Return whether it has ended and said why it cannot work."""
        return self.process is not None and self.process.returncode == WRONG_SETTING

    def may_restart(self) -> bool:
        """Return whether the program, which has ended, is to be started again."""
        assert self.process is not None  # noqa: S101 - it has just ended
        if self.cannot_start():
            return False
        if self.program.when_ended is WhenEnded.RESTART_IF_IT_RAN:
            return self.process.returncode < 0 or self._has_run_for_long()
        return self.program.when_ended is WhenEnded.RESTART

    def note_signs(self) -> None:
        """Note whether it has shown a sign of life."""
        limit = self.program.watchdog_seconds
        if limit is not None and self._signs is not None and self._signs.has_received():
            # Its first command has prepared something, and may have to load again to go on.
            loads = self.program.first_command is not None and not self.has_begun
            self._due_at = monotonic() + (_START_SECONDS if loads else limit)
            self.has_begun = True

    def end_if_it_hangs(self) -> None:
        """Kill the program and what it has started if it shows no sign of life."""
        if self.process is not None and monotonic() > self._due_at:
            _log.error(
                "a process shows no sign of life: it is killed", extra={"program": self.name}
            )
            self._due_at = float("inf")
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give up what waits for signs of life, and what holds it."""
        self.release()
        if self._signs is not None:
            self._signs.close()

    def _has_run_for_long(self) -> bool:
        return monotonic() - self._started_at >= _LONG_LIFE_SECONDS

    def schedule_restart(self) -> None:
        """Schedule the next start after a pause that grows with each restart."""
        assert self.process is not None  # noqa: S101 - it has just ended
        if self._has_run_for_long():
            self._pause = _FIRST_PAUSE_SECONDS
        told = {"program": self.name, "status": self.process.returncode, "pause": self._pause}
        _log.error("a process ended by itself and is started again after a pause", extra=told)
        self.process = None
        self.starts_at = monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)


def wait_until_released() -> None:
    """Return when the program that this one waits for has shown a sign of life, or nobody waits."""
    held_by = take_from_environment(HELD_BY)
    if held_by is not None:
        os.read(int(held_by), 1)  # until the supervisor closes its end
        os.close(int(held_by))


class Supervisor:
    """A group of programs that share our output and stop together.

    Each has a session of its own, so that Ctrl-C only reaches the supervisor, which stops each of
    them once. If the supervisor is killed, the watchdog stops them.
    """

    def __init__(self, programs: Mapping[str, Program], *, patience: float) -> None:
        """Take the programs by name and how many seconds they may take to stop."""
        self._runs = [_Run(name, program) for name, program in programs.items()]
        self._by_name = {run.name: run for run in self._runs}
        self._patience = patience
        self._watchdog = Watchdog(patience=patience)
        #: Plain values: a signal may arrive while an earlier one is handled, and locks would wait
        #: for themselves.
        self._told_at: float | None = None
        self._told_twice = False
        #: The interpreter writes each signal into the second one, which ends a pause.
        self._signals, self._noted = socket.socketpair()
        self._signals.settimeout(0)
        self._noted.settimeout(0)

    def run(self) -> int:
        """Run until told to stop, or until a program ends that is not restarted; return the status.

        The exit status is 0 only if all programs stopped as told, and WRONG_SETTING if one has said
        why it cannot start.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._remember_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._noted.fileno(), warn_on_full_buffer=False)
        ended = self._wait_for_an_end()
        has_said_why = ended is not None and ended.cannot_start() and ended.is_wrong_setting()
        if ended and not has_said_why:
            told = {"program": ended.name}
            _log.critical("a process ended by itself: all are stopped", extra=told)
        statuses = self._stop()
        self._watchdog.close()
        signal.set_wakeup_fd(-1)
        self._signals.close()
        self._noted.close()
        for run in self._runs:
            run.close()
        if has_said_why:
            return WRONG_SETTING
        return 1 if ended or any(status not in _STOPPED for status in statuses) else 0

    def _remember_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._told_at is None:
            self._told_at = monotonic()
        elif monotonic() - self._told_at > _SAME_SIGNAL_SECONDS:
            self._told_twice = True

    def _wait_for_an_end(self) -> _Run | None:
        while True:
            self._watchdog.ensure_running()
            for run in self._runs:
                run.note_signs()
                run.end_if_it_hangs()
                if not self._is_held(run):
                    run.release()
                if not self._goes_on(run):
                    return run
            all_run = all(run.process is not None and not self._is_held(run) for run in self._runs)
            self._pause(_WATCH_SECONDS if all_run else _POLL_SECONDS)
            if self._told_at is not None:
                return None

    def _pause(self, seconds: float) -> None:
        """Wait a moment, or until there is a signal."""
        select.select([self._signals], [], [], seconds)
        with suppress(BlockingIOError):
            self._signals.recv(1_024)

    def _is_held(self, run: _Run) -> bool:
        first = run.program.waits_for
        return first is not None and not self._by_name[first].has_begun

    def _goes_on(self, run: _Run) -> bool:
        """Start a program if it is due; return whether the others may continue."""
        if run.process is None:
            if monotonic() >= run.starts_at:
                self._watchdog.add(run.start(is_held=self._is_held(run)))
            return True
        if run.process.poll() is None:
            return True
        self._watchdog.remove(run.process.pid)
        if is_restarted := run.may_restart():
            run.schedule_restart()
        return is_restarted

    def _stop(self) -> list[int]:
        running = [run.process for run in self._runs if run.process is not None]
        for process in running:
            process.terminate()
        end = monotonic() + self._patience
        while any(process.poll() is None for process in running):
            if self._told_twice or monotonic() > end:
                break
            self._pause(_POLL_SECONDS)
        for process in running:
            process.kill()  # no effect on an ended process
        statuses = [process.wait() for process in running]
        for process in running:
            self._watchdog.remove(process.pid)
        return statuses
