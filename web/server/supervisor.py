"""Supervisor of several programs that start and stop together."""

import logging
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic
from types import FrameType
from typing import NamedTuple

from web.server.watchdog import Watchdog
from web.settings.environment import (
    WRONG_SETTING_STATUS,
    build_child_environment,
    pop_environment_variable,
)

_log = logging.getLogger("gatebell.supervisor")
_POLL_SECONDS = 0.2
#: Seconds within which several signals count as one. If a whole process group receives SIGTERM,
#: `make` also forwards the signal to its children.
_SAME_SIGNAL_SECONDS = 0.25
#: Seconds between two checks while all programs run. When a program ends, a signal triggers a check
#: immediately.
_WATCH_INTERVAL_SECONDS = 2.0
#: Pause before the first restart. Each further restart doubles the pause, up to the maximum.
_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 60.0
#: Runtime in seconds after which a program restarts with the first pause again.
_STABLE_RUN_SECONDS = 60.0
#: Seconds that a program may take to send its first watchdog notification. On an overloaded
#: machine, loading takes minutes, and a killed program would have to start again.
_START_TIMEOUT_SECONDS = 600.0
#: Exit statuses of a program that was stopped. The second status occurs if the program had not yet
#: installed a signal handler.
_STOPPED_STATUSES = (0, -signal.SIGTERM)
#: Environment variable with a file descriptor. Before the program begins its work, it reads a byte
#: from this descriptor, which the supervisor writes.
HOLD_VARIABLE = "GATEBELL_HELD_BY"
#: Signals that stop the supervisor.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: Maximum size of a notification in bytes. Notifications are only a few words long.
_MAX_MESSAGE_BYTES = 4_096


class NotifySocket:
    """Socket on which a supervisor receives a program's watchdog notifications.

    The permissions of its directory prevent other users from sending notifications.
    """

    def __init__(self, address: str | None = None, descriptor: int | None = None) -> None:
        """Open a new socket, or use the given address and descriptor of a detached socket."""
        #: Value of NOTIFY_SOCKET for the program.
        self.address = address or str(Path(mkdtemp(prefix="gatebell-")) / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM, fileno=descriptor)
        self._socket.settimeout(0)
        if descriptor is None:
            self._socket.bind(self.address)

    def detach(self) -> int:
        """Return the descriptor of the socket, which stays open without this object."""
        return self._socket.detach()

    def has_new_notification(self) -> bool:
        """Return whether a notification has arrived since the last call."""
        received = False
        try:
            while True:
                self._socket.recv(_MAX_MESSAGE_BYTES)
                received = True
        except BlockingIOError:
            return received

    def close_socket(self) -> None:
        """Close the socket and remove its directory."""
        self._socket.close()
        rmtree(Path(self.address).parent, ignore_errors=True)


class StartedProgram(NamedTuple):
    """Forked process of a program that has not been released yet."""

    pid: int
    #: Descriptor to which the supervisor writes to release the process.
    release: int
    #: Address and descriptor of the socket for watchdog notifications, if the program sends them.
    notify_address: str | None
    notify_descriptor: int | None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that belong to the supervisor."""
        found = self.notify_descriptor
        return (self.release,) if found is None else (self.release, found)

    def set_inheritable(self, *, is_inheritable: bool) -> None:
        """Set whether the descriptors stay open when this process executes another program."""
        for descriptor in self.descriptors:
            os.set_inheritable(descriptor, is_inheritable)


class ForkedProcess:
    """Forked child process, with the methods that the supervisor also calls on other processes."""

    def __init__(self, pid: int) -> None:
        """Store the ID of a child process."""
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int:
        """Wait until the process has ended, and return its exit status."""
        status = self._wait(0)
        assert status is not None  # noqa: S101 - without WNOHANG, the process has ended
        return status

    def terminate(self) -> None:
        """Send SIGTERM to the process, unless it has ended."""
        self._send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the process, unless it has ended."""
        self._send_signal(signal.SIGKILL)

    def _send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _wait(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class RestartPolicy(Enum):
    """Reaction to a program that ends by itself."""

    #: Reaction that stops all programs.
    STOP_ALL = "stop all"
    #: Reaction that restarts a program if it was killed or ran for at least a minute. A program
    #: that exits sooner probably has wrong settings, so all programs are stopped.
    RESTART_IF_IT_RAN = "restart if it ran"
    RESTART = "restart"


@dataclass(frozen=True, kw_only=True)
class SupervisedProgram:
    """Command and restart rules of a program that the supervisor runs."""

    command: Sequence[str]
    #: Command used until the program has sent its first watchdog notification. It has no time
    #: limit. If it fails before that, all programs are stopped.
    first_command: Sequence[str] | None = None
    #: Name of a program that must send its first watchdog notification before this program begins.
    #: This program loads meanwhile (`wait_until_released`).
    waits_for: str | None = None
    when_ended: RestartPolicy = RestartPolicy.STOP_ALL
    #: Seconds without a watchdog notification after which the program is killed, or None if it
    #: sends no notifications. Their socket is in NOTIFY_SOCKET, as under systemd.
    watchdog_seconds: float | None = None


class _ProgramRun:
    """State of a program and its restarts."""

    def __init__(
        self, name: str, program: SupervisedProgram, started: StartedProgram | None
    ) -> None:
        self.name = name
        self.program = program
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.starts_at = self._started_at = monotonic()
        self._pause = _FIRST_PAUSE_SECONDS
        self._signs: NotifySocket | None = None
        #: `True` if the program has ever sent a watchdog notification.
        self.has_begun = False
        #: Supervisor's end of the pipe that holds the program, or None if the program is not held.
        self._holds: int | None = None
        #: Time at which the next watchdog notification is due.
        self._due_at = float("inf")
        if started is not None:
            self.process, self._holds = ForkedProcess(started.pid), started.release
        if program.watchdog_seconds is not None:
            inherited = () if started is None else started[2:]
            self._signs = NotifySocket(*inherited)

    def start_program(self, *, is_held: bool = False) -> int:
        """Start the program in its own session and return the process ID."""
        is_first = self.program.first_command is not None and not self.has_begun
        variables: dict[str, str] = {}
        inherited: tuple[int, ...] = ()
        if self._signs is not None:
            self._due_at = float("inf") if is_first else monotonic() + _START_TIMEOUT_SECONDS
            variables["NOTIFY_SOCKET"] = self._signs.address
        self._close_hold()
        if is_held:
            held_by, self._holds = os.pipe()
            variables[HOLD_VARIABLE], inherited = str(held_by), (held_by,)
        self.process = subprocess.Popen(  # noqa: S603 - the command is a constant
            (self.program.first_command if is_first else None) or self.program.command,
            start_new_session=True,
            env=build_child_environment(**variables),
            pass_fds=inherited,
        )
        for descriptor in inherited:
            os.close(descriptor)
        self._started_at = monotonic()
        return self.process.pid

    def let_program_begin(self) -> None:
        """Let the program begin if it is waiting to be released."""
        if self._holds is not None:
            with suppress(BrokenPipeError):  # the program has ended
                os.write(self._holds, b"\n")
            self._close_hold()

    def _close_hold(self) -> None:
        if self._holds is not None:
            os.close(self._holds)
            self._holds = None

    def has_failed_to_start(self) -> bool:
        """Return whether the first command failed before it sent a watchdog notification."""
        return (
            self.process is not None
            and (self.process.returncode or 0) > 0
            and self.program.first_command is not None
            and not self.has_begun
        )

    def has_ended_with_settings_error(self) -> bool:
        """Return whether the program has ended with the status for a wrong setting."""
        return self.process is not None and self.process.returncode == WRONG_SETTING_STATUS

    def should_restart(self) -> bool:
        """Return whether the ended program should be restarted."""
        assert self.process is not None  # noqa: S101 - it has just ended
        if self.has_failed_to_start():
            return False
        if self.program.when_ended is RestartPolicy.RESTART_IF_IT_RAN:
            return (self.process.returncode or 0) < 0 or self._has_run_stably()
        return self.program.when_ended is RestartPolicy.RESTART

    def record_watchdog_notifications(self) -> None:
        """Record new watchdog notifications and set the due time of the next notification."""
        limit = self.program.watchdog_seconds
        if limit is not None and self._signs is not None and self._signs.has_new_notification():
            # After its first command has prepared the database, the program may take long to start.
            loads = self.program.first_command is not None and not self.has_begun
            self._due_at = monotonic() + (_START_TIMEOUT_SECONDS if loads else limit)
            self.has_begun = True

    def kill_if_hung(self) -> None:
        """Kill the program and its children if its watchdog notification is overdue."""
        if self.process is not None and monotonic() > self._due_at:
            _log.error(
                "Process did not report in time and was killed.",
                extra={"event": "supervisor.process_hung", "program": self.name},
            )
            self._due_at = float("inf")
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def close_descriptors(self) -> None:
        """Close the notification socket and the pipe that keeps the program waiting."""
        self._close_hold()
        if self._signs is not None:
            self._signs.close_socket()

    def _has_run_stably(self) -> bool:
        return monotonic() - self._started_at >= _STABLE_RUN_SECONDS

    def schedule_restart(self) -> None:
        """Schedule the next start after a pause that grows with each restart."""
        assert self.process is not None  # noqa: S101 - it has just ended
        if self._has_run_stably():
            self._pause = _FIRST_PAUSE_SECONDS
        told = {"program": self.name, "status": self.process.returncode, "pause": self._pause}
        _log.error(
            "Process exited unexpectedly; it will be restarted after a pause.",
            extra={"event": "supervisor.process_exited", **told},
        )
        self.process = None
        self.starts_at = monotonic() + self._pause
        self._pause = min(self._pause * 2, _MAX_PAUSE_SECONDS)


def wait_until_released() -> None:
    """Wait until the supervisor lets this program begin, and exit if the supervisor dies.

    The supervisor first registers the process with its watchdog, and waits for the program on which
    this program depends. Return immediately if no supervisor holds this program.
    """
    held_by = pop_environment_variable(HOLD_VARIABLE)
    if held_by is not None:
        is_released = bool(os.read(int(held_by), 1))
        os.close(int(held_by))
        if not is_released:
            sys.exit(1)


class Supervisor:
    """Supervisor of programs that share its output and stop together.

    Each program has its own session, so Ctrl-C only reaches the supervisor, which stops each
    program once. If the supervisor is killed, the watchdog stops the programs.
    """

    def __init__(
        self,
        programs: Mapping[str, SupervisedProgram],
        *,
        timeout_seconds: float,
        started: Mapping[str, StartedProgram] | None = None,
    ) -> None:
        """Store the programs by name, and the seconds that they may take to stop.

        `started` contains the programs that were already forked.
        """
        begun = started or {}
        self._runs = [_ProgramRun(name, each, begun.get(name)) for name, each in programs.items()]
        self._by_name = {run.name: run for run in self._runs}
        self._patience = timeout_seconds
        self._watchdog = Watchdog(timeout_seconds=timeout_seconds)
        for each in begun.values():
            self._watchdog.register_process(each.pid)
        #: Time of the first signal, and whether another signal followed. Both are plain values,
        #: because a lock would deadlock if a signal arrived while another signal was being handled.
        self._told_at: float | None = None
        self._told_twice = False
        #: Sockets that end a pause. Python writes the number of each signal to the second socket.
        self._signals, self._noted = socket.socketpair()
        self._signals.settimeout(0)
        self._noted.settimeout(0)

    def supervise_programs(self) -> int:
        """Run until the supervisor is stopped or a program ends permanently.

        Return the exit status, which is 0 only if all programs stopped as requested. The status is
        WRONG_SETTING_STATUS if a program reported that it cannot start.
        """
        for number in STOP_SIGNALS:
            signal.signal(number, self._record_stop_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._noted.fileno(), warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        ended = self._wait_for_end()
        has_said_why = (
            ended is not None
            and ended.has_failed_to_start()
            and ended.has_ended_with_settings_error()
        )
        if ended and not has_said_why:
            _log.critical(
                "Process exited unexpectedly; stopping all processes.",
                extra={"event": "supervisor.stopping", "program": ended.name},
            )
        statuses = self._stop_programs()
        self._watchdog.close_pipe()
        signal.set_wakeup_fd(-1)
        self._signals.close()
        self._noted.close()
        for run in self._runs:
            run.close_descriptors()
        if has_said_why:
            return WRONG_SETTING_STATUS
        return 1 if ended or any(status not in _STOPPED_STATUSES for status in statuses) else 0

    def _record_stop_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._told_at is None:
            self._told_at = monotonic()
        elif monotonic() - self._told_at > _SAME_SIGNAL_SECONDS:
            self._told_twice = True

    def _wait_for_end(self) -> _ProgramRun | None:
        while True:
            self._watchdog.ensure_running()
            for run in self._runs:
                run.record_watchdog_notifications()
                run.kill_if_hung()
                if not self._is_held(run):
                    run.let_program_begin()
                if not self._start_if_due(run):
                    return run
            all_run = all(run.process is not None and not self._is_held(run) for run in self._runs)
            self._wait_for_signal(_WATCH_INTERVAL_SECONDS if all_run else _POLL_SECONDS)
            if self._told_at is not None:
                return None

    def _wait_for_signal(self, seconds: float) -> None:
        """Wait until the time is up or a signal arrives."""
        select.select([self._signals], [], [], seconds)
        with suppress(BlockingIOError):
            self._signals.recv(1_024)

    def _is_held(self, run: _ProgramRun) -> bool:
        first = run.program.waits_for
        return first is not None and not self._by_name[first].has_begun

    def _start_if_due(self, run: _ProgramRun) -> bool:
        """Start a program if it is due, and return whether the other programs may continue.

        They may not continue if the program has ended and is not restarted.
        """
        if run.process is None:
            if monotonic() >= run.starts_at:
                self._watchdog.register_process(run.start_program(is_held=self._is_held(run)))
            return True
        if run.process.poll() is None:
            return True
        self._watchdog.unregister_process(run.process.pid)
        if is_restarted := run.should_restart():
            run.schedule_restart()
        return is_restarted

    def _stop_programs(self) -> list[int]:
        running = [run.process for run in self._runs if run.process is not None]
        for process in running:
            process.terminate()
        end = monotonic() + self._patience
        while any(process.poll() is None for process in running):
            if self._told_twice or monotonic() > end:
                break
            self._wait_for_signal(_POLL_SECONDS)
        for process in running:
            process.kill()  # this has no effect on an ended process
        statuses = [process.wait() for process in running]
        for process in running:
            self._watchdog.unregister_process(process.pid)
        return statuses
