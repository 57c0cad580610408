"""Programs that start together stop together."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

ROOT = Path(__file__).parents[2]

#: Ends with 0 when told to stop, but only after a moment.
GENTLE = """
import signal, sys, time
def finish(*_):
    time.sleep(0.5)
    sys.stdout.write("finished\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, finish)
print("started", flush=True)
time.sleep(60)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("started", flush=True)
time.sleep(60)
"""


def supervise(*programs: str, patience: float = 10) -> subprocess.Popen[str]:
    commands = {str(number): [sys.executable, "-c", each] for number, each in enumerate(programs)}
    code = (
        "import sys; from web.supervisor import Supervisor;"
        f" sys.exit(Supervisor({commands!r}, patience={patience}).run())"
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


def test_all_are_told_to_stop_and_may_finish() -> None:
    process = supervise(GENTLE, GENTLE)
    wait_for_starts(process, 2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert output == "finished\nfinished\n"
    assert process.returncode == 0


def test_when_one_ends_by_itself_the_others_stop_and_the_status_says_so() -> None:
    process = supervise(GENTLE, "print('started', flush=True)")
    output, _ = process.communicate(timeout=20)
    assert "The 1 process ended by itself" in output
    assert output.count("finished") == 1
    assert process.returncode == 1


def test_one_that_does_not_listen_is_killed_after_a_while() -> None:
    process = supervise(DEAF, patience=1)
    wait_for_starts(process, 1)
    began = monotonic()
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 1
    assert 0.5 < monotonic() - began < 10


def test_being_told_twice_means_at_once() -> None:
    process = supervise(DEAF, patience=60)
    wait_for_starts(process, 1)
    process.terminate()
    sleep(0.5)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 1
