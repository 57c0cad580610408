"""Web processes share counters, and servers that are gone leave nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

from web.shared_counters import (
    close_shared_counters,
    open_shared_counters,
    shared_counters_path,
)


def pid_of_a_process_that_ended() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_opening_removes_what_dead_servers_left_and_keeps_the_living(tmp_path: Path) -> None:
    dead = shared_counters_path(tmp_path, server_pid=pid_of_a_process_that_ended())
    living = shared_counters_path(tmp_path, server_pid=os.getppid())
    ours = shared_counters_path(tmp_path, server_pid=os.getpid())
    for path in (dead, living, ours):
        open_shared_counters(path)
    assert not dead.exists()
    assert living.exists()
    assert ours.exists()


def test_closing_removes_only_our_own(tmp_path: Path) -> None:
    living = shared_counters_path(tmp_path, server_pid=os.getppid())
    ours = shared_counters_path(tmp_path, server_pid=os.getpid())
    open_shared_counters(living)
    open_shared_counters(ours)
    close_shared_counters(ours)
    assert living.exists()
    assert not ours.exists()
