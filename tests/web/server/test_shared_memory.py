"""Tests of the processes of `make run` that are forked from one process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.support.service.live import ROOT
from tests.support.service.ports import free_port

#: Code that lists the modules outside of the standard library that keep an object that gevent
#: replaces, and the resources that must not be inherited.
_LISTING = """
import gc, json, os, sys, threading, types, warnings
before = set(os.listdir("/dev/fd"))
import web.server.serve
from web.server.shared_memory import load_shared_modules
load_shared_modules()
threads, opened = threading.active_count(), set(os.listdir("/dev/fd")) - before
loaded = set(sys.modules)
warnings.simplefilter("error")
from gevent import monkey
monkey.patch_all()
SIMPLE = (type(None), bool, int, str, float, tuple)
held = set()
for module, names in monkey.saved.items():
    for name, original in names.items():
        if isinstance(original, SIMPLE):
            continue
        for other in loaded - {"__main__"}:
            if other.partition(".")[0] in sys.stdlib_module_names:
                continue
            variables = vars(sys.modules[other])
            classes = [each for each in variables.values() if isinstance(each, type)]
            if (
                any(each is original for each in variables.values())
                or any(value is original for each in classes for value in vars(each).values())
                or any(original in each.__mro__ for each in classes if each is not original)
            ):
                held.add(f"{other} {module}.{name}")
json.dump([sorted(held), threads, sorted(opened), "gevent" in loaded], sys.stdout)
"""
#: Objects that web processes do not use. Only the process that is forked, the supervisor, its
#: watchdog and an asynchronous driver of SQLite use them.
_UNUSED = {
    "sqlalchemy.dialects.sqlite.aiosqlite threading.Thread",
    "web.child_work threading.Thread",
    "web.server.serve threading.Thread",
    "web.server.serve time.sleep",
    "web.server.watchdog time.sleep",
}


def test_shared_modules_keep_nothing_that_gevent_replaces() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LISTING], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    held, threads, opened, is_patched = json.loads(done.stdout)
    assert set(held) <= _UNUSED
    assert (threads, opened, is_patched) == (1, [], False)


#: Code that starts programs as `make run` does, and runs the given code instead of the supervisor.
_START = """
import os, signal, sys, time
from web.server import shared_memory
from web.server.supervisor import SupervisedProgram
sys.path.insert(0, {folder!r})
shared_memory.SHARED_MODULES = ()
def supervise(*_):
    {supervisor}
os.execve = supervise
command = (sys.executable, "-m", "reports", "first")
shared_memory.fork_programs({{
    "worker": SupervisedProgram(command=command, watchdog_seconds=30.0),
    "web": SupervisedProgram(command=(*command[:3], "second"), waits_for="worker"),
}})
"""
_REPORTS = """
import json, os, signal, sys, time
from web.server.supervisor import wait_until_released
wait_until_released()
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
kept = [each for each in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{each}")]
report = [sys.argv[1:], os.getsid(0) == os.getpid(), list(blocked), sorted(map(int, kept))]
with open(os.path.join(os.path.dirname(__file__), sys.argv[1]), "w") as out:
    json.dump([*report, "NOTIFY_SOCKET" in os.environ, __name__], out)
"""
_RELEASE = """os.environ.update(_[2])
    started = shared_memory.pop_started_programs()
    for each in started.values():
        os.write(each.release, b"!")
        assert os.waitpid(each.pid, 0)[1] == 0
    os._exit(0)"""


def start(folder: Path, supervisor: str) -> "subprocess.CompletedProcess[str]":
    (folder / "reports.py").write_text(_REPORTS)
    reading, writing = os.pipe()  # a descriptor that the processes must not inherit
    try:
        return subprocess.run(
            [sys.executable, "-c", _START.format(folder=str(folder), supervisor=supervisor)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            pass_fds=(reading,),
        )
    finally:
        os.close(reading)
        os.close(writing)


def test_forked_programs_run_as_in_new_interpreters(tmp_path: Path) -> None:
    done = start(tmp_path, _RELEASE)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("first", "second"):
        arguments, leads, blocked, kept, is_watched, module = json.loads(
            (tmp_path / name).read_text()
        )
        assert (arguments, leads, blocked, module) == ([name], True, [], "__main__")
        assert kept == [0, 1, 2]
        assert is_watched == (name == "first")


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)"])
def test_forked_programs_exit_if_the_supervisor_dies_before_it_releases_them(
    tmp_path: Path, end: str
) -> None:
    done = start(tmp_path, end)  # returns when no process holds the output any more
    assert done.stderr == ""
    assert not (tmp_path / "first").exists()
    assert not (tmp_path / "second").exists()


def test_a_stop_signal_while_modules_load_ends_all_processes(tmp_path: Path) -> None:
    environment = {
        "INSTANCE_PATH": str(tmp_path),
        "PORT": str(free_port()),
        "PATH": os.environ["PATH"],
    }
    first = subprocess.Popen(
        [sys.executable, "-m", "web.server.serve"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = monotonic() + 60
        while signal.SIGTERM not in _blocked_signals(first.pid) and monotonic() < deadline:
            sleep(0.01)
        first.terminate()
        _, told = first.communicate(timeout=60)
    finally:
        first.kill()
    assert (first.returncode, told) == (0, b"")


def _blocked_signals(pid: int) -> set[signal.Signals]:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return set()
    mask = int(status.partition("SigBlk:")[2].split()[0], 16)
    return {each for each in signal.Signals if mask >> (each - 1) & 1}
