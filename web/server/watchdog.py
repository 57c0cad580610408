"""Watchdog that ends a supervisor's processes if the supervisor dies, even by SIGKILL.

`python -m web.server.watchdog SECONDS [ID ...]` receives the IDs of running processes as arguments.
It reads further IDs, one per line, from a pipe that only the supervisor holds open. `+ID` is a
started process, and `-ID` is a process that has ended. The end of the pipe means that the
supervisor has died.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from time import monotonic, sleep

_POLL_SECONDS = 0.1


class Watchdog:
    """Watchdog process of a supervisor, with the pipe through which it receives process IDs."""

    def __init__(self, *, timeout_seconds: float) -> None:
        """Store the number of seconds that remaining processes may take to stop."""
        self._patience = timeout_seconds
        self._known: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def register_process(self, pid: int) -> None:
        """Register a process that must end with the supervisor."""
        self._known.add(pid)
        self._write_line(f"+{pid}\n")

    def unregister_process(self, pid: int) -> None:
        """Unregister a process that has ended, since its ID may be reused."""
        self._known.discard(pid)
        self._write_line(f"-{pid}\n")

    def ensure_running(self) -> None:
        """Start the watchdog process, or restart it if it has died."""
        if self._process is None or self._process.poll() is not None:
            # The processes are passed as arguments, because this process may die before it writes
            # them.
            numbers = (str(self._patience), *map(str, self._known))
            # A separate session shields the watchdog from signals to the supervisor's process
            # group.
            self._process = subprocess.Popen(  # noqa: S603 - our own words
                (sys.executable, "-m", "web.server.watchdog", *numbers),
                stdin=subprocess.PIPE,
                start_new_session=True,
            )

    def close_pipe(self) -> None:
        """Close the pipe, and wait until the watchdog has ended all registered processes."""
        if self._process is not None:
            with suppress(BrokenPipeError):
                self._process.communicate()

    def _write_line(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):  # `ensure_running` restarts the watchdog
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


def main() -> None:
    """Wait until the supervisor exits, and then end its remaining processes."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    left = set(map(int, sys.argv[2:]))
    for line in sys.stdin:
        pid = int(line[1:])
        (left.add if line.startswith("+") else left.discard)(pid)
    _end_processes(left, timeout_seconds=float(sys.argv[1]))


def _end_processes(left: set[int], *, timeout_seconds: float) -> None:
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = monotonic() + timeout_seconds
    while any(map(_is_alive, left)) and monotonic() < deadline:
        sleep(_POLL_SECONDS)
    for pid in left:
        # Each process leads a session, so its children are killed as well.
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
