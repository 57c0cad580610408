"""What an idle worker logs, and one whose database is away."""

import logging

import pytest
from peewee import OperationalError

from web.jobs.worker import BriefOutages
from web.logging import logging_configuration
from web.settings.reader import read_settings


@pytest.mark.parametrize("kind", ["json", "text"])
def test_the_jobs_of_each_minute_leave_no_line(kind: str) -> None:
    settings = read_settings({"BASE_URL": "http://localhost", "LOG_FORMAT": kind})
    levels = logging_configuration(settings)["loggers"]
    for name in ("huey", "huey.consumer.Scheduler", "huey.consumer.Worker"):
        assert levels[name]["level"] == "WARNING"


def record(error: Exception | None) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    return logging.makeLogRecord({"msg": "Error reading %s", "args": ("queue",), "exc_info": info})


def test_an_outage_is_told_once_in_a_minute_and_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, clock = BriefOutages(), [0.0]
    monkeypatch.setattr("web.jobs.worker.monotonic", lambda: clock[0])
    first, second, bug = record(OperationalError()), record(OperationalError()), record(KeyError())
    assert told.filter(first)
    assert first.getMessage() == "Error reading queue (the database is unavailable)"
    assert first.exc_info is None
    assert not told.filter(second)
    assert told.filter(bug)
    assert bug.exc_info is not None
    clock[0] = 61.0
    assert told.filter(record(OperationalError()))
