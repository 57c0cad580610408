"""Tests that a worker records its heartbeat, and that web processes can read it."""

from datetime import UTC, datetime

from flask import Flask

from web.admin.instance_state import find_last_worker_heartbeat
from web.jobs.job_intervals import WorkerHeartbeatJob
from web.settings.environment import Settings


def test_no_heartbeat_exists_before_the_first_worker(app: Flask) -> None:
    with app.app_context():
        assert find_last_worker_heartbeat() is None


def test_a_worker_records_a_heartbeat_immediately_and_each_minute(
    app: Flask, settings: Settings
) -> None:
    with WorkerHeartbeatJob(settings) as pulse:
        assert pulse.is_new_period()
        pulse.process_all_due_work()
    now = datetime.now(UTC)
    with app.app_context():
        seen_at = find_last_worker_heartbeat()
    assert seen_at is not None
    assert (now - seen_at).total_seconds() < 61
    assert pulse.every is not None
    assert pulse.every.total_seconds() == 60
