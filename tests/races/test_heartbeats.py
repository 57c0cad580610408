"""Tests of concurrent pings: at most one alert is open, and a success resolves it."""

from functools import partial

import pytest

from tests.support.alerts.heartbeats import Job, heartbeat
from tests.support.database.stored import list_stored_alerts
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell

CROWD = 16


def at_once(job: Job, signals: list[str]) -> set[int]:
    """Send all signals simultaneously, and return the statuses."""
    pings = [partial(job.ping, signal, method="POST", body=b"log") for signal in signals]
    return {answer.status_code for answer in run_simultaneously(pings)}


@pytest.mark.long
def test_concurrent_failures_are_one_alert(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    assert at_once(job, ["/fail"] * CROWD) == {200}
    (alert,) = list_stored_alerts(gatebell, job.project)
    assert alert.status == "triggered"
    assert 1 <= alert.events <= CROWD


def test_concurrent_failures_and_successes_leave_no_open_alert(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    assert at_once(job, ["/fail", "", "/start", "/log"] * (CROWD // 4)) == {200}
    assert job.ping().status_code == 200
    assert {alert.status for alert in list_stored_alerts(gatebell, job.project)} <= {"resolved"}
