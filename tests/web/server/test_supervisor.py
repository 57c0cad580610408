"""Tests of the supervisor, which starts and stops programs together."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest

ROOT = Path(__file__).parents[3]

#: Program that exits with 0 after a stop signal, but only after a moment.
GENTLE = """
import signal, sys, time
def finish(*_):
    time.sleep(0.5)
    sys.stdout.write("finished\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, finish)
sys.stdout.write("started\\n")
sys.stdout.flush()
time.sleep(60)
"""
DEAF = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write("started\\n")
sys.stdout.flush()
time.sleep(60)
"""


#: Program that has not set a signal handler yet.
BEGINNING = """
import sys, time
sys.stdout.write("started\\n")
sys.stdout.flush()
time.sleep(60)
"""

#: Program that starts to work once a file exists, and prints who started it.
SIGN = """
import os, socket, sys, time
while not os.path.exists(sys.argv[2]): time.sleep(0.05)
sys.stdout.write(f"{sys.argv[1]} {os.getpid()}\\n")
sys.stdout.flush()
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
time.sleep(60)
"""
#: Program that prepares something, and then becomes another program that loads for a long time.
PREPARES = """
import os, socket, sys, time
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"STATUS=", os.environ["NOTIFY_SOCKET"])
os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(3); print('loaded')"])
"""
#: Program that has loaded, and starts when another program has started.
HELD = """
import sys, time
from web.server.supervisor import wait_until_released
sys.stdout.write("loaded\\n")
sys.stdout.flush()
wait_until_released()
sys.stdout.write("released\\n")
sys.stdout.flush()
time.sleep(60)
"""
#: Program that prints why it cannot start.
REFUSES = "import sys; sys.stdout.write('no\\n'); sys.exit(2)"
#: Program that fails.
FAILS = "raise LookupError('it failed')"

#: Program that prints a line and ends.
BRIEF = "import sys; sys.stdout.write('began\\n')"


def supervise(
    *programs: str, patience: float = 10, is_restarted: bool = False
) -> subprocess.Popen[str]:
    """Supervise programs; optionally restart the last one when it ends."""
    made = [f"SupervisedProgram(command=[sys.executable, '-c', {each!r}])" for each in programs]
    if is_restarted:
        made[-1] = f"{made[-1][:-1]}, when_ended=RestartPolicy.RESTART)"
    return begin(f"dict(zip('0123', [{', '.join(made)}]))", patience=patience)


def begin(programs: str, *, patience: float = 10) -> subprocess.Popen[str]:
    """Start a supervisor in its own process; `programs` is Python code."""
    code = (
        "import sys; from web.server.supervisor import RestartPolicy;"
        "from web.server.supervisor import SupervisedProgram, Supervisor;"
        f" sys.exit(Supervisor({programs}, timeout_seconds={patience}).supervise_programs())"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_starts(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdout is not None
    for _ in range(count):
        assert process.stdout.readline() == "started\n"


@pytest.mark.long
def test_all_programs_get_the_stop_signal_and_can_finish() -> None:
    process = supervise(GENTLE, GENTLE)
    wait_for_starts(process, 2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output == "finished\nfinished\n"
    assert process.returncode == 0


@pytest.mark.long
def test_a_program_that_is_stopped_before_it_handles_signals_counts_as_stopped() -> None:
    process = supervise(GENTLE, BEGINNING)
    wait_for_starts(process, 2)
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert (output, process.returncode) == ("finished\n", 0)


@pytest.mark.long
def test_a_program_that_exits_stops_the_others_with_status_1(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    brief = f"import os, time\nwhile not os.path.exists({str(sign)!r}): time.sleep(0.05)"
    process = supervise(GENTLE, brief)
    wait_for_starts(process, 1)
    sign.touch()
    output, _ = process.communicate(timeout=60)
    assert "Process exited unexpectedly; stopping all processes." in output
    assert output.count("finished") == 1
    assert process.returncode == 1


@pytest.mark.long
def test_a_program_that_ignores_the_stop_signal_is_killed_after_a_timeout() -> None:
    process = supervise(DEAF, patience=1)
    wait_for_starts(process, 1)
    began = monotonic()
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert 0.5 < monotonic() - began < 40


@pytest.mark.long
def test_simultaneous_signals_count_as_one() -> None:
    process = supervise(GENTLE)
    wait_for_starts(process, 1)
    for _ in range(200):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert (output, process.returncode) == ("finished\n", 0)


@pytest.mark.long
def test_a_second_stop_signal_kills_immediately() -> None:
    process = supervise(DEAF, patience=60)
    wait_for_starts(process, 1)
    process.terminate()
    sleep(0.5)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 1


def test_an_optional_program_is_restarted_with_backoff() -> None:
    process = supervise(GENTLE, BRIEF, is_restarted=True)
    began = monotonic()
    assert process.stdout is not None
    moments: list[float] = []
    is_beside = False
    # On a busy machine the brief program can end several times before the other one starts.
    while len(moments) < 3 or not is_beside:
        line = process.stdout.readline()
        is_beside = is_beside or line == "started\n"
        moments += [monotonic() - began] if line == "began\n" else []
        assert "exited" in line or line in {"started\n", "began\n"}
    process.terminate()
    output, _ = process.communicate(timeout=60)
    # The first restart is after one second, the second after two more.
    assert moments[1] >= 1
    assert moments[2] >= 3
    assert "finished" in output


def prepared(first: str, sign: Path, *, watchdog_seconds: int = 50) -> subprocess.Popen[str]:
    """Start a program, and another one that waits for it."""
    python = "sys.executable, '-c'"
    return begin(
        f"{{'first': SupervisedProgram(command=[{python}, {SIGN!r}, 'later', '{sign}'],"
        f" watchdog_seconds={watchdog_seconds},"
        f" first_command=[{python}, {first!r}, 'first', '{sign}'],"
        " when_ended=RestartPolicy.RESTART),"
        f" 'second': SupervisedProgram(command=[{python}, {HELD!r}], waits_for='first')}}"
    )


@pytest.mark.long
def test_a_program_waits_until_another_one_is_ready(
    tmp_path: Path,
) -> None:
    process = prepared(SIGN, tmp_path / "sign")
    assert process.stdout is not None
    assert process.stdout.readline() == "loaded\n"
    sleep(0.5)
    (tmp_path / "sign").touch()
    told = process.stdout.readline().split()
    assert told[0] == "first"
    assert process.stdout.readline() == "released\n"
    os.kill(int(told[1]), signal.SIGKILL)
    assert "Process exited unexpectedly; it will be restarted" in process.stdout.readline()
    assert process.stdout.readline().startswith("later ")
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert (output, process.returncode) == ("", 0)


@pytest.mark.long
def test_a_prepared_program_gets_time_to_load_again(tmp_path: Path) -> None:
    process = prepared(PREPARES, tmp_path, watchdog_seconds=1)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    process.terminate()
    process.communicate(timeout=60)
    assert {"released\n", "loaded\n"} <= {*lines}
    assert lines.count("loaded\n") == 2  # The second program loads as well.


@pytest.mark.long
def test_a_program_that_cannot_start_stops_all_with_its_status(tmp_path: Path) -> None:
    process = prepared(REFUSES, tmp_path)
    output, _ = process.communicate(timeout=60)
    assert "no\n" in output
    assert "released" not in output.partition("no\n")[0]
    assert "exited unexpectedly" not in output
    assert process.returncode == 2


def test_a_program_that_fails_at_its_first_start_is_not_restarted(tmp_path: Path) -> None:
    process = prepared(FAILS, tmp_path)
    output, _ = process.communicate(timeout=60)
    # Since Python 3.13 the traceback also shows the program's source.
    assert output.count("\nLookupError: it failed") == 1
    assert "Process exited unexpectedly; stopping all processes." in output
    assert process.returncode == 1


@pytest.mark.long
def test_no_program_is_left_after_the_supervisor_is_killed() -> None:
    process = supervise(GENTLE, DEAF, patience=1)
    wait_for_starts(process, 2)
    process.kill()
    # The output ends only when no process can write to it any more.
    output, _ = process.communicate(timeout=60)
    assert output == "finished\n"


@pytest.mark.long
def test_a_killed_watchdog_is_restarted() -> None:
    process = supervise(GENTLE)
    wait_for_starts(process, 1)
    killed = watchdogs_of(process.pid)
    for watch in killed:
        os.kill(watch, signal.SIGKILL)
    deadline = monotonic() + 60
    # A killed process can be listed for another moment.
    while not set(watchdogs_of(process.pid)) - set(killed):
        assert monotonic() < deadline
        sleep(0.1)
    process.kill()
    output, _ = process.communicate(timeout=60)
    assert output == "finished\n"


def watchdogs_of(parent: int) -> list[int]:
    return [
        each.pid
        for each in psutil.Process(parent).children()
        if each.status() != psutil.STATUS_ZOMBIE and "web.server.watchdog" in each.cmdline()
    ]
