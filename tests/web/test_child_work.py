"""Tests of work in a child process, such as the preparation of the database."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

from tests.faults.processes import children, wait_until
from tests.support.service.live import ROOT

_PROGRAM = """
import os, signal, sys, time
from web.child_work import run_in_child
from web.standard_streams import print_line, unblock_standard_streams
def work():
    {work}
run_in_child(work)
sys.stderr.write("done\\n")
"""
_UNBLOCKED = """unblock_standard_streams()
    print_line("The first administrator is admin")
    sys.stderr.write("said\\n")"""


def start(work: str, *, stdout: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(work=work)],
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


@pytest.mark.skipif(
    not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux can set the size of a pipe"
)
def test_the_last_lines_are_written_for_a_slow_reader() -> None:
    reading, writing = os.pipe()
    filler = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b"x" * filler)
    with start(_UNBLOCKED, stdout=writing) as first:
        os.close(writing)
        assert first.stderr is not None
        assert first.stderr.readline() == b"said\n"
        sleep(0.2)
        with os.fdopen(reading, "rb") as output:
            assert output.read().lstrip(b"x") == b"The first administrator is admin\n"
    assert first.returncode == 0


@pytest.mark.parametrize(
    ("work", "status"),
    [
        ("pass", 0),
        ("sys.exit(2)", 2),
        ("raise LookupError", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_the_worker_ends_as_its_child_does(work: str, status: int) -> None:
    with start(work) as first:
        _, told = first.communicate(timeout=60)
    assert first.returncode == status
    assert told.endswith(b"done\n") == (status == 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_child_ends_with_the_worker(number: signal.Signals) -> None:
    with start("sys.stdout.write('began'); sys.stdout.flush(); time.sleep(60)") as first:
        assert first.stdout is not None
        assert first.stdout.read(5) == b"began"
        ((child, _),) = children(first.pid)
        first.send_signal(number)
        first.wait(60)
        # The end of the output shows that the child has ended as well.
        assert first.stdout.read() == b""
        wait_until(lambda: not Path(f"/proc/{child}").exists(), seconds=10)
    assert first.returncode == -number
