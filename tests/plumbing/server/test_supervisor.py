"""Programs that start together stop together."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest

ROOT = Path(__file__).parents[3]

#: Ends with 0 when told to stop, but only after a moment.
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


#: Has not yet said what a signal shall do.
BEGINNING = """
import sys, time
sys.stdout.write("started\\n")
sys.stdout.flush()
time.sleep(60)
"""

#: Begins to work when a file is there, and says who started it.
SIGN = """
import os, socket, sys, time
while not os.path.exists(sys.argv[2]): time.sleep(0.05)
sys.stdout.write(f"{sys.argv[1]} {os.getpid()}\\n")
sys.stdout.flush()
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
time.sleep(60)
"""
#: Has prepared something, and then becomes another program, which loads for long.
PREPARES = """
import os, socket, sys, time
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"STATUS=", os.environ["NOTIFY_SOCKET"])
os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(3); print('loaded')"])
"""
#: Has loaded, and begins when another one has begun.
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
#: Says why it cannot start.
REFUSES = "import sys; sys.stdout.write('no\\n'); sys.exit(2)"
#: Has a fault.
FAILS = "raise LookupError('it failed')"

#: Says so and ends.
BRIEF = "import sys; sys.stdout.write('began\\n')"


def supervise(
    *programs: str, patience: float = 10, is_restarted: bool = False
) -> subprocess.Popen[str]:
    """Supervise programs; whether the last of them is started again, is said."""
    made = [f"Program(command=[sys.executable, '-c', {each!r}])" for each in programs]
    if is_restarted:
        made[-1] = f"{made[-1][:-1]}, when_ended=WhenEnded.RESTART)"
    return begin(f"dict(zip('0123', [{', '.join(made)}]))", patience=patience)


def begin(programs: str, *, patience: float = 10) -> subprocess.Popen[str]:
    """Begin a supervisor in a process of its own; `programs` is Python."""
    code = (
        "import sys; from web.server.supervisor import Program, Supervisor, WhenEnded;"
        f" sys.exit(Supervisor({programs}, patience={patience}).run())"
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
def test_all_are_told_to_stop_and_may_finish() -> None:
    process = supervise(GENTLE, GENTLE)
    wait_for_starts(process, 2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output == "finished\nfinished\n"
    assert process.returncode == 0


@pytest.mark.long
def test_one_that_is_told_to_stop_before_it_can_listen_has_stopped_as_told() -> None:
    process = supervise(GENTLE, BEGINNING)
    wait_for_starts(process, 2)
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert (output, process.returncode) == ("finished\n", 0)


@pytest.mark.long
def test_when_one_ends_by_itself_the_others_stop_and_the_status_says_so(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    brief = f"import os, time\nwhile not os.path.exists({str(sign)!r}): time.sleep(0.05)"
    process = supervise(GENTLE, brief)
    wait_for_starts(process, 1)
    sign.touch()
    output, _ = process.communicate(timeout=60)
    assert "Process exited unexpectedly; all processes are stopped." in output
    assert output.count("finished") == 1
    assert process.returncode == 1


@pytest.mark.long
def test_one_that_does_not_listen_is_killed_after_a_while() -> None:
    process = supervise(DEAF, patience=1)
    wait_for_starts(process, 1)
    began = monotonic()
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert 0.5 < monotonic() - began < 40


@pytest.mark.long
def test_signals_that_come_together_are_one() -> None:
    process = supervise(GENTLE)
    wait_for_starts(process, 1)
    for _ in range(200):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert (output, process.returncode) == ("finished\n", 0)


@pytest.mark.long
def test_being_told_twice_means_at_once() -> None:
    process = supervise(DEAF, patience=60)
    wait_for_starts(process, 1)
    process.terminate()
    sleep(0.5)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 1


def test_one_that_others_can_do_without_is_started_again_after_ever_longer_pauses() -> None:
    process = supervise(GENTLE, BRIEF, is_restarted=True)
    began = monotonic()
    assert process.stdout is not None
    moments: list[float] = []
    is_beside = False
    # On a busy machine the brief one has ended once or twice before the other has started.
    while len(moments) < 3 or not is_beside:
        line = process.stdout.readline()
        is_beside = is_beside or line == "started\n"
        moments += [monotonic() - began] if line == "began\n" else []
        assert "ended" in line or line in {"started\n", "began\n"}
    process.terminate()
    output, _ = process.communicate(timeout=60)
    # After a second, and then after two more.
    assert moments[1] >= 1
    assert moments[2] >= 3
    assert "finished" in output


def prepared(first: str, sign: Path, *, watchdog_seconds: int = 50) -> subprocess.Popen[str]:
    """Begin a program, and one that waits for it."""
    python = "sys.executable, '-c'"
    return begin(
        f"{{'first': Program(command=[{python}, {SIGN!r}, 'later', '{sign}'],"
        f" watchdog_seconds={watchdog_seconds},"
        f" first_command=[{python}, {first!r}, 'first', '{sign}'], when_ended=WhenEnded.RESTART),"
        f" 'second': Program(command=[{python}, {HELD!r}], waits_for='first')}}"
    )


@pytest.mark.long
def test_a_program_waits_for_the_first_sign_of_another_one_which_then_starts_differently(
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
    assert "Process exited unexpectedly; it is restarted" in process.stdout.readline()
    assert process.stdout.readline().startswith("later ")
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert (output, process.returncode) == ("", 0)


@pytest.mark.long
def test_one_that_has_prepared_something_has_time_to_load_again(tmp_path: Path) -> None:
    process = prepared(PREPARES, tmp_path, watchdog_seconds=1)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    process.terminate()
    process.communicate(timeout=60)
    assert {"released\n", "loaded\n"} <= {*lines}
    assert lines.count("loaded\n") == 2  # of the second program as well


@pytest.mark.long
def test_one_that_says_why_it_cannot_start_stops_all_with_its_status(tmp_path: Path) -> None:
    process = prepared(REFUSES, tmp_path)
    output, _ = process.communicate(timeout=60)
    assert "no\n" in output
    assert "released" not in output.partition("no\n")[0]
    assert "exited unexpectedly" not in output
    assert process.returncode == 2


def test_one_that_fails_before_it_has_ever_begun_is_not_started_again(tmp_path: Path) -> None:
    process = prepared(FAILS, tmp_path)
    output, _ = process.communicate(timeout=60)
    # The traceback shows the source of the program too since Python 3.13.
    assert output.count("\nLookupError: it failed") == 1
    assert "Process exited unexpectedly; all processes are stopped." in output
    assert process.returncode == 1


@pytest.mark.long
def test_nothing_is_left_when_the_supervisor_is_killed() -> None:
    process = supervise(GENTLE, DEAF, patience=1)
    wait_for_starts(process, 2)
    process.kill()
    # It ends only when nobody can write to it any more.
    output, _ = process.communicate(timeout=60)
    assert output == "finished\n"


@pytest.mark.long
def test_the_watchdog_is_started_again_when_it_was_killed() -> None:
    process = supervise(GENTLE)
    wait_for_starts(process, 1)
    killed = watchdogs_of(process.pid)
    for watch in killed:
        os.kill(watch, signal.SIGKILL)
    deadline = monotonic() + 60
    # One that was killed can be listed for another moment.
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
