"""Runs several programs as one: together they start, and together they stop."""

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from threading import Event
from types import FrameType

_POLL_SECONDS = 0.2


class Supervisor:
    """Programs that live and die together, and write where we write.

    They are in sessions of their own, so that Ctrl-C reaches us alone and each of them is told to
    stop once.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]], *, patience: float) -> None:
        """Take the programs by name; `patience` is how many seconds they may take to stop."""
        self._commands = commands
        self._patience = patience
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._told_to_stop = Event()
        self._told_twice = Event()

    def run(self) -> int:
        """Run until told to stop, or until one of them ends; return the exit status.

        It is 0 only when all of them stopped as they were told to.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)
        for name, command in self._commands.items():
            self._running[name] = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - our own words
        ended = self._wait_for_an_end()
        if ended:
            sys.stderr.write(f"The {ended} process ended by itself; stopping everything.\n")
        statuses = self._stop()
        return 1 if ended or any(statuses) else 0

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self._told_to_stop.is_set():
            self._told_twice.set()
        self._told_to_stop.set()

    def _wait_for_an_end(self) -> str | None:
        while not self._told_to_stop.wait(_POLL_SECONDS):
            for name, process in self._running.items():
                if process.poll() is not None:
                    return name
        return None

    def _stop(self) -> list[int]:
        for process in self._running.values():
            process.terminate()
        waits = int(self._patience / _POLL_SECONDS)
        while waits and any(process.poll() is None for process in self._running.values()):
            waits = 0 if self._told_twice.wait(_POLL_SECONDS) else waits - 1
        for process in self._running.values():
            process.kill()  # does nothing to what has ended
        return [process.wait() for process in self._running.values()]
