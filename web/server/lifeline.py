"""Ends what a supervisor has started when the supervisor itself is gone, however it went.

`python -m web.server.lifeline SECONDS` reads the ids of processes, a line each, from a pipe that
only the supervisor holds: `+ID` for one that it has started, `-ID` for one that has ended. Nobody
can keep the end of the pipe from coming, not even `kill -9`, on any system that has pipes.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from time import monotonic, sleep

_POLL_SECONDS = 0.1


class Lifeline:
    """The supervisor's end of the pipe."""

    def __init__(self, *, patience: float) -> None:
        """Hold it; `patience` is how many seconds what is left may take to stop."""
        self._patience = patience
        self._known: set[int] = set()
        self._watch: subprocess.Popen[bytes] | None = None

    def add(self, pid: int) -> None:
        """Have this process ended when we are gone."""
        self._known.add(pid)
        self._say(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        """Forget a process that has ended: its number may be somebody else's soon."""
        self._known.discard(pid)
        self._say(f"-{pid}\n")

    def keep(self) -> None:
        """Make sure that somebody holds the other end."""
        if self._watch is None or self._watch.poll() is not None:
            # In a session of its own: what is sent to all of ours must not reach it.
            self._watch = subprocess.Popen(  # noqa: S603 - our own words
                (sys.executable, "-m", "web.server.lifeline", str(self._patience)),
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
            for pid in self._known:
                self._say(f"+{pid}\n")

    def let_go(self) -> None:
        """Have everything ended that was not removed."""
        if self._watch is not None:
            with suppress(BrokenPipeError):
                self._watch.communicate()

    def _say(self, line: str) -> None:
        if self._watch is not None and self._watch.stdin is not None:
            with suppress(BrokenPipeError):  # `keep` says it once more
                self._watch.stdin.write(line.encode())
                self._watch.stdin.flush()


def main() -> None:
    """Wait for the end of the supervisor, and end what it leaves behind."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    left: set[int] = set()
    for line in sys.stdin:
        pid = int(line[1:])
        (left.add if line.startswith("+") else left.discard)(pid)
    _end(left, patience=float(sys.argv[1]))


def _end(left: set[int], *, patience: float) -> None:
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = monotonic() + patience
    while any(map(_is_alive, left)) and monotonic() < deadline:
        sleep(_POLL_SECONDS)
    for pid in left:
        # With all that it has started: each leads a session.
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
