"""Tests that a full disk under INSTANCE_PATH cuts off no client and stores nothing partially."""

import shutil
from pathlib import Path
from time import monotonic, sleep

import pytest
import requests

from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.processes import web_processes
from tests.faults.small_disk import small_disk
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

_SECONDS = 30


def readiness(live: LiveGatebell) -> tuple[int, str]:
    answer = requests.get(f"{live.url}/readyz", timeout=10)
    assert answer.elapsed.total_seconds() < 10
    return answer.status_code, answer.json()["database"]


def wait_for(live: LiveGatebell, expected: tuple[int, str]) -> None:
    deadline = monotonic() + _SECONDS
    while (found := readiness(live)) != expected:
        assert monotonic() < deadline, found
        sleep(0.2)


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("the disk is full (file system of its own: {may_mount})")
@pytest.mark.parametrize("may_mount", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_full_disk_is_answered_with_503_until_there_is_space(
    tmp_path: Path, migrated_sqlite: Path, *, may_mount: bool
) -> None:
    with small_disk(tmp_path / "disk", may_mount=may_mount) as disk:
        shutil.copy(migrated_sqlite, disk.path / "gatebell.db")
        live = LiveGatebell(
            instance_path=disk.path, database_url="", only="web", WEB_CONCURRENCY="1"
        )
        live.start()
        try:
            endpoint = connect(live)
            processes = web_processes(live)
            with load_on(endpoint) as answers:
                answers.wait_for(20)
                disk.fill(processes)
                wait_for(live, (503, disk.word))
                full = endpoint.send(title="while it is full")
                form = {"login": "alice", "password": "wrong"}
                signing_in = requests.post(f"{live.url}/users/sign_in", data=form, timeout=30)
                alive = requests.get(f"{live.url}/healthz", timeout=30)
                counted = requests.get(f"{live.url}/metrics", timeout=30)
                disk.free(processes)
                answers.fault_ends()
                wait_for(live, (200, "ok"))
                answers.wait_for(20)
            assert web_processes(live) == processes
            account = assert_nothing_was_lost(live, endpoint, answers)
            assert set(account.answered) == {200, 503}
            assert account.reset == 0
            assert full.status_code == 503
            assert int(full.headers["Retry-After"]) > 0
            assert signing_in.status_code < 500 or signing_in.status_code == 503
            assert (alive.status_code, counted.status_code) == (200, 200)
            assert "gatebell_http_requests_total" in counted.text
            assert endpoint.send(title="after").status_code == 200
        finally:
            live.stop()
