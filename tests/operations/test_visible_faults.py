"""Tests that faults of an installation appear in /metrics and in `gatebell doctor`."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from domain.core.job_results import (
    get_backup_state,
    record_backup,
    record_failed_backup,
    record_failed_job,
)
from tests.support.accounts.people import now
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.commands import operate
from tests.support.service.ports import free_port
from web.extensions import db
from web.settings.environment import Settings

Record = Callable[..., None]


def note(app: Flask, record: Record, *arguments: object, ago: timedelta = timedelta()) -> None:
    with app.app_context(), Session(db.engine) as session, session.begin():
        record(*arguments, session=session, now=now() - ago)


def findings(app: Flask, check: str) -> list[tuple[str, str]]:
    checks = json.loads(app.test_cli_runner().invoke(args=["doctor"]).stdout)["checks"]
    return [(each["state"], each["message"]) for each in checks if each["check"] == check]


def value(client: FlaskClient, name: str) -> float:
    (line,) = (x for x in client.get("/metrics").text.splitlines() if x.startswith(f"{name} "))
    return float(line.rpartition(" ")[2])


@pytest.mark.one_database("sqlite")
def test_failed_and_missing_backups_are_shown(
    app: Flask, client: FlaskClient, tmp_path: Path
) -> None:
    assert (
        "warning",
        "This database has never been backed up with `gatebell backup`.",
    ) in findings(app, "backups")
    assert value(client, "gatebell_backup_last_success_timestamp_seconds") == 0
    made = operate(app, "backup", str(tmp_path / "first"))
    assert made["recorded"] is True
    assert value(client, "gatebell_backup_last_success_bytes") == made["bytes"]
    assert value(client, "gatebell_backup_last_success_timestamp_seconds") > now().timestamp() - 60
    again = app.test_cli_runner().invoke(args=["backup", str(tmp_path / "first")])
    assert again.exit_code == 1
    assert value(client, "gatebell_backup_last_failure_timestamp_seconds") > 0
    failed = [message for state, message in findings(app, "backups") if state == "failed"]
    assert len(failed) == 1
    assert "is not empty. Use a new directory" in failed[0]


def test_an_old_backup_is_a_warning(app: Flask) -> None:
    note(app, record_backup, 2_000_000, ago=timedelta(hours=40))
    note(app, record_failed_backup, "disk full", ago=timedelta(hours=50))
    found = findings(app, "backups")
    assert ("warning", "The last backup was made 1 day ago.") in found
    assert not any("disk full" in message for _, message in found)
    with app.app_context(), Session(db.engine) as session:
        assert get_backup_state(session=session).bytes == 2_000_000


def test_a_failed_job_of_the_worker_is_shown(app: Flask, client: FlaskClient) -> None:
    note(app, record_failed_job, "prune", "ValueError")
    assert (
        'gatebell_task_last_failure_timestamp_seconds{task="prune"}' in client.get("/metrics").text
    )
    assert any("Job prune failed" in message for _, message in findings(app, "jobs"))


def test_disk_space_and_ignored_variables_are_metrics(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = value(client, "gatebell_configuration_warnings")
    monkeypatch.setenv("TRUSTED_PROXYS", "1")
    assert value(client, "gatebell_configuration_warnings") == before + 1
    assert value(client, 'gatebell_disk_free_bytes{place="instance"}') > 0
    assert value(client, 'gatebell_disk_size_bytes{place="repositories"}') > 0


def test_an_unavailable_rate_limit_store_is_a_metric(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    away = replace(settings, ratelimit_storage_uri=f"redis://127.0.0.1:{free_port()}")
    assert value(make_app(away).test_client(), "gatebell_rate_limit_store_up") == 0


@pytest.mark.long
def test_administrators_are_notified_of_a_failed_unit(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        app = make_app(replace(settings, mail_url=f"smtp://127.0.0.1:{port}"))
        operate(app, "users", "create", "root", "--email", "root@acme.example", "--admin")
        told = operate(app, "mail", "failure", "gatebell-backup.service")
    assert "root@acme.example" in told["sent_to"]
    assert "gatebell-backup.service failed on" in str(mailbox.messages[0]["Subject"])
