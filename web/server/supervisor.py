"""Runs several programs as one: together they start, and together they stop."""

import logging
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from time import monotonic
from types import FrameType

from web.server.lifeline import Lifeline

_log = logging.getLogger("gatebell.supervisor")
_POLL_SECONDS = 0.2
#: Between the end of a program and its next start; twice as long after each further end.
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
#: A program that has run for so long has recovered.
_LONG_LIFE_SECONDS = 60.0
#: What a program ends with that was told to stop; the second one before it could take the signal.
_STOPPED = (0, -signal.SIGTERM)


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is run, and what its end means."""

    command: Sequence[str]
    #: Whether it is started again when it ends by itself; if not, everything ends with it.
    is_restarted: bool = False


class _Run:
    """A program from its first start on, with the pauses between its lives."""

    def __init__(self, name: str, program: Program) -> None:
        self.name = name
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.starts_at = self._started_at = monotonic()
        self._pause = _FIRST_PAUSE_SECONDS

    def start(self) -> int:
        """Start it, in a session of its own, and return its process."""
        command = self.program.command
        self.process = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - our own words
        self._started_at = monotonic()
        return self.process.pid

    def rest(self) -> None:
        """Put off its next start, ever longer while it keeps ending."""
        assert self.process is not None  # noqa: S101 - it has just ended
        if monotonic() - self._started_at >= _LONG_LIFE_SECONDS:
            self._pause = _FIRST_PAUSE_SECONDS
        told = {"program": self.name, "status": self.process.returncode, "pause": self._pause}
        _log.error("a process ended by itself and is started again after a pause", extra=told)
        self.process = None
        self.starts_at = monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)


class Supervisor:
    """Programs that live and die together, and write where we write.

    They are in sessions of their own, so that Ctrl-C reaches us alone and each of them is told to
    stop once. Should we be killed, a lifeline tells them.
    """

    def __init__(self, programs: Mapping[str, Program], *, patience: float) -> None:
        """Take the programs by name; `patience` is how many seconds they may take to stop."""
        self._runs = [_Run(name, program) for name, program in programs.items()]
        self._patience = patience
        self._lifeline = Lifeline(patience=patience)
        self._told_to_stop = Event()
        self._told_twice = Event()

    def run(self) -> int:
        """Run until told to stop, or until one that must not end does; return the exit status.

        It is 0 only when all of them stopped as they were told to.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)
        ended = self._wait_for_an_end()
        if ended:
            sys.stderr.write(f"The {ended} process ended by itself; stopping everything.\n")
        statuses = self._stop()
        self._lifeline.let_go()
        return 1 if ended or any(status not in _STOPPED for status in statuses) else 0

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self._told_to_stop.is_set():
            self._told_twice.set()
        self._told_to_stop.set()

    def _wait_for_an_end(self) -> str | None:
        while True:
            self._lifeline.keep()
            for run in self._runs:
                if not self._goes_on(run):
                    return run.name
            if self._told_to_stop.wait(_POLL_SECONDS):
                return None

    def _goes_on(self, run: _Run) -> bool:
        """Start a program if it is time to; tell whether the others may go on."""
        if run.process is None:
            if monotonic() >= run.starts_at:
                self._lifeline.add(run.start())
            return True
        if run.process.poll() is None:
            return True
        self._lifeline.remove(run.process.pid)
        if run.program.is_restarted:
            run.rest()
        return run.program.is_restarted

    def _stop(self) -> list[int]:
        running = [run.process for run in self._runs if run.process is not None]
        for process in running:
            process.terminate()
        waits = int(self._patience / _POLL_SECONDS)
        while waits and any(process.poll() is None for process in running):
            waits = 0 if self._told_twice.wait(_POLL_SECONDS) else waits - 1
        for process in running:
            process.kill()  # does nothing to what has ended
        statuses = [process.wait() for process in running]
        for process in running:
            self._lifeline.remove(process.pid)
        return statuses
