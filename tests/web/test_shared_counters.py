"""Tests of the counters that web processes share, and of their removal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from flask import Flask

from web.server import shared_counters
from web.server.shared_counters import (
    close_shared_counters,
    get_shared_counters_path,
    open_shared_counters,
    reserve_counters,
)

#: Program that counts every kind of request.
COUNT_EVERYTHING = """
import json, sys
from web.metrics import count_alerts, count_http_request, count_token_request
for route, methods in json.load(sys.stdin):
    for method in (*methods, "other"):
        for status in (200, 302, 404, 503):
            count_http_request(method=method, route=route, status=status, seconds=0.1)
for number in range(100):
    count_alerts(f"outcome {number}", 1)
    count_token_request("password", f"outcome {number}")
"""


@pytest.fixture(autouse=True)
def no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store counters in the test's own folder, which is removed after the test."""
    monkeypatch.setattr(shared_counters, "_MEMORY_FILE_SYSTEM", tmp_path / "no such directory")


def pid_of_a_process_that_ended() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_opening_removes_the_counters_of_dead_servers_only(tmp_path: Path) -> None:
    dead = get_shared_counters_path(tmp_path, server_pid=pid_of_a_process_that_ended())
    living = get_shared_counters_path(tmp_path, server_pid=os.getppid())
    ours = get_shared_counters_path(tmp_path, server_pid=os.getpid())
    for path in (dead, living, ours):
        open_shared_counters(path)
    assert not dead.exists()
    assert living.exists()
    assert ours.exists()


def test_closing_removes_only_our_own(tmp_path: Path) -> None:
    living = get_shared_counters_path(tmp_path, server_pid=os.getppid())
    ours = get_shared_counters_path(tmp_path, server_pid=os.getpid())
    open_shared_counters(living)
    open_shared_counters(ours)
    close_shared_counters(ours)
    assert living.exists()
    assert not ours.exists()


def test_counters_are_in_memory_and_not_in_a_folder_that_others_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, instance = tmp_path / "memory", tmp_path / "instance"
    for path in (memory, instance):
        path.mkdir()
    monkeypatch.setattr(shared_counters, "_MEMORY_FILE_SYSTEM", memory)
    ours = get_shared_counters_path(instance, server_pid=7)
    assert ours.is_relative_to(memory)
    assert ours.parent.stat().st_mode & 0o777 == 0o700
    ours.parent.chmod(0o777)  # The folder belongs to another user or is writable by others.
    assert get_shared_counters_path(instance, server_pid=7) == instance / "metrics" / "7"
    monkeypatch.setattr(shared_counters, "_MEMORY_FILE_SYSTEM", tmp_path / "no such directory")
    assert get_shared_counters_path(instance, server_pid=7) == instance / "metrics" / "7"


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_enough_space_is_reserved_before_a_process_counts(app: Flask, tmp_path: Path) -> None:
    assert reserve_counters(tmp_path, pid=1)
    reserved = sizes(tmp_path)
    # A hole in a sparse file has no reserved space yet.
    assert all(file.stat().st_blocks * 512 >= file.stat().st_size for file in tmp_path.iterdir())
    routes = [(rule.rule, sorted(rule.methods or ())) for rule in app.url_map.iter_rules()]
    counted = tmp_path / "counted"
    counted.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", COUNT_EVERYTHING],
        input=json.dumps(routes),
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(counted)},
        cwd=Path(__file__).parents[2],
        text=True,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    for kind, size in sizes(counted).items():
        assert size <= reserved[kind]


def sizes(path: Path) -> dict[str, int]:
    return {file.name.partition("_")[0]: file.stat().st_size for file in path.glob("*.db")}


def test_reserving_counters_fails_without_space(tmp_path: Path) -> None:
    assert not reserve_counters(tmp_path / "no such directory", pid=1)
