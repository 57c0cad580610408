"""A worker leaves a sign of life, and a web process sees it."""

from datetime import UTC, datetime

from flask import Flask

from web.admin.instance_state import worker_seen_at
from web.jobs.worker import add_worker_heartbeat, open_queue
from web.settings.reader import Settings


def test_before_the_first_worker_nobody_was_heard_of(app: Flask) -> None:
    with app.app_context():
        assert worker_seen_at() is None


def test_a_worker_is_heard_of_at_once_and_each_minute(app: Flask, settings: Settings) -> None:
    queue = open_queue(settings)
    add_worker_heartbeat(queue, settings)
    now = datetime.now(UTC)
    with app.app_context():
        seen_at = worker_seen_at()
    assert seen_at is not None
    assert (now - seen_at).total_seconds() < 61
    assert [task.name for task in queue.read_periodic(now.replace(minute=30))] == ["pulse"]
    queue.storage.close()
