"""Tests that the worker and the web server share memory after the start of `make run`."""

import sys
from pathlib import Path
from time import sleep

import pytest

from tests.faults.processes import children, wait_until
from tests.support.service.live import NewService, running
from web.memory import measure_proportional_bytes

_MIB = 1024 * 1024
#: Maximum memory of all idle processes in MiB, with a margin for other versions of Python.
_MAX_TOTAL_MIB = 300


@pytest.mark.long
@pytest.mark.one_database("sqlite")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports shared memory")
def test_the_worker_and_the_web_server_share_memory(new_service: NewService) -> None:
    live = new_service("sqlite", WEB_CONCURRENCY="2")
    with running(live):
        wait_until(lambda: '"worker.started"' in live.log_text())
        sleep(5)
        found = {words.strip(): pid for pid, words in children(live.pid)}
        names = [words.partition(" -m ")[2].split()[0] for words in found]
        assert sorted(names) == ["gunicorn", "web.jobs.worker", "web.server.watchdog"]
        (worker,) = (pid for words, pid in found.items() if "web.jobs.worker" in words)
        assert _read_shared_mib(worker) > 10
        total = sum(map(measure_proportional_bytes, _list_tree(live.pid or 0))) / _MIB
    assert total <= _MAX_TOTAL_MIB


def _list_tree(pid: int) -> list[int]:
    return [pid, *(each for child, _ in children(pid) for each in _list_tree(child))]


def _read_shared_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return int(text.partition("Shared_Dirty:")[2].split()[0]) / 1024
