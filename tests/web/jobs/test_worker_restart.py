"""Tests the first worker, which executes another program after the database migration."""

import fcntl
import os
import subprocess
import sys
from time import sleep

import pytest

from tests.support.service.live import ROOT

PROGRAM = """
import sys
from web.jobs import worker
from web.standard_streams import print_line, unblock_standard_streams
unblock_standard_streams()
print_line("The first administrator is admin")
sys.modules.setdefault("alembic", sys)
sys.executable = "/bin/true"
sys.stderr.write("said\\n")
worker._restart_without_migrations()
"""


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux says how large it is")
def test_the_last_lines_are_written_for_a_slow_reader() -> None:
    reading, writing = os.pipe()
    filler = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b"x" * filler)
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE) as first:
        os.close(writing)
        assert first.stderr is not None
        assert first.stderr.readline() == b"said\n"
        sleep(0.2)
        with os.fdopen(reading, "rb") as output:
            assert output.read().lstrip(b"x") == b"The first administrator is admin\n"
    assert first.returncode == 0
