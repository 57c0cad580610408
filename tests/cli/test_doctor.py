"""Tests of `gatebell doctor` and `gatebell mail test`."""

import json
import os
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from platform import python_version

import pytest
from flask import Flask

from domain.core.hosts import WORKER_HEARTBEAT_JOB, HostReport, record_host_report, record_job_run
from domain.core.job_results import record_backup
from domain.delivery.mail.outbox import NewEmail, queue_emails
from models import AlertChange
from tests.conftest import KINDS
from tests.support.accounts.people import now
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.commands import operate
from tests.support.service.live import NewService, running
from tests.support.service.ports import free_port
from web.commands.doctor.command import FORGED_ADDRESS, evaluate_forwarded_headers
from web.extensions import db
from web.sealing.sealed_values import DOCTOR_HEADER, create_proxy_probe
from web.services import get_services
from web.settings.environment import Settings

States = dict[str, tuple[str, str]]


def diagnosis(app: Flask) -> tuple[int, States]:
    """Return the exit status, and the first state and message of each check."""
    done = app.test_cli_runner().invoke(args=["doctor"])
    found: States = {}
    for each in json.loads(done.stdout)["checks"]:
        found.setdefault(each["check"], (each["state"], each["message"]))
    return done.exit_code, found


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_running_service_passes_all_checks(new_service: NewService, kind: str) -> None:
    # The service is not shared, because pages of other tests could be overdue.
    with running(new_service(kind)) as gatebell:
        told = gatebell.cli("doctor")
    states = {each["check"]: each["state"] for each in told["checks"]}
    well = ("database", "migrations", "keys", "clock", "worker", "hosts", "pages", "proxy")
    assert {name: states[name] for name in well} == dict.fromkeys(well, "ok")
    assert states["mail"] == "warning"


@pytest.mark.parametrize(("option", "state"), [("--enable-optimizations", "ok"), ("", "warning")])
def test_a_python_that_was_built_without_optimization_is_a_warning(
    option: str, state: str, app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"CONFIG_ARGS": option}
    monkeypatch.setattr(sysconfig, "get_config_var", variables.get)
    monkeypatch.setattr(sysconfig, "get_scheme_names", lambda: ("posix_prefix",))
    found, message = diagnosis(app)[1]["python"]
    assert found == state
    assert message.startswith(f"Python {python_version()}, ")
    assert ("docs/deployment.md#choose-a-python" in message) == (state == "warning")


@pytest.mark.long
def test_missing_parts_are_reported_and_set_the_exit_status(app: Flask) -> None:
    status, found = diagnosis(app)
    assert status == 1
    assert found["worker"] == (
        "failed",
        "No background worker has ever reported, so nobody is paged.",
    )
    assert found["database"][0] == found["migrations"][0] == "ok"
    # No server listens at BASE_URL.
    assert found["proxy"][0] == "failed"


def test_a_report_ahead_of_the_clock_does_not_show_that_a_worker_runs(app: Flask) -> None:
    with app.app_context():
        ahead = now() + timedelta(hours=1)
        record_job_run(WORKER_HEARTBEAT_JOB, session=db.session(), now=ahead)
        db.session.commit()
    _, found = diagnosis(app)
    said = "The latest report of the background worker has a time in the future."
    assert found["worker"] == ("failed", said)


def test_unprocessed_changes_are_reported(app: Flask) -> None:
    with app.app_context():
        since = now() - timedelta(minutes=10)
        record_job_run(WORKER_HEARTBEAT_JOB, session=db.session(), now=now())
        change = {"project_id": 1, "alert_id": 1, "kind": "opened", "created_at": since}
        db.session.add(AlertChange(follower="escalations", severity=0, **change))
        db.session.commit()
    _, found = diagnosis(app)
    said = "Alert changes have been waiting for 10 minutes, so nobody is paged for them."
    assert found["pages"] == ("warning", said)


@pytest.mark.one_database("postgres")
def test_an_unavailable_database_does_not_stop_the_other_checks(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    away = f"postgresql://gatebell:secret-word@127.0.0.1:{free_port()}/gatebell"
    app = make_app(replace(settings, database_url=away, database_connect_timeout_seconds=1))
    status, found = diagnosis(app)
    assert status == 1
    assert found["database"][0] == "failed"
    assert "secret-word" not in str(found)
    assert found["disk"][0] in {"ok", "warning"}
    assert "worker" not in found


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_an_unsuitable_pg_dump_is_reported(
    app: Flask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "pg_dump"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for version, state, said in (
        ("9.6.24", "warning", "pg_dump 9 is older than Postgres"),
        ("999.1", "ok", "pg_dump 999 can back up Postgres"),
    ):
        program.write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version}'\n")
        program.chmod(0o755)
        _, found = diagnosis(app)
        assert found["pg_dump"][0] == state
        assert said in found["pg_dump"][1]
        assert "never been backed up" in found["backups"][1]


@pytest.mark.both_databases
def test_each_successful_check_has_one_row(app: Flask) -> None:
    with app.app_context():
        record_backup(1, session=db.session(), now=now())
        db.session.commit()
    done = app.test_cli_runner().invoke(args=["doctor"])
    names = [each["check"] for each in json.loads(done.stdout)["checks"] if each["state"] == "ok"]
    assert "backups" in names
    assert len(names) == len(set(names))


def report(app: Flask, name: str) -> None:
    with app.app_context():
        told = HostReport(
            name=name,
            key_fingerprints=get_services().keyring.fingerprints,
            revision="0001",
            clock_lead_ms=None,
            seen_at=now(),
        )
        record_host_report(told, session=db.session())
        db.session.commit()


@pytest.mark.long
def test_separate_rate_limit_counters_of_web_servers_are_reported(app: Flask) -> None:
    report(app, "one:8000 web")
    report(app, "one:8000 worker")
    report(app, "two:8000 worker")
    _, found = diagnosis(app)
    assert found["rate limits"] == (
        "ok",
        "Rate limits are counted on this host, and no other host reports.",
    )
    report(app, "two:8000 web")
    _, found = diagnosis(app)
    state, said = found["rate limits"]
    assert state == "warning"
    assert said.startswith("one:8000, two:8000 count rate limits separately, so clients can send 2")


@pytest.mark.long
def test_an_unreachable_shared_rate_limit_store_is_reported(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    store = f"redis://127.0.0.1:{free_port()}"
    app = make_app(replace(settings, ratelimit_storage_uri=store))
    report(app, "one:8000 web")
    report(app, "two:8000 web")
    _, found = diagnosis(app)
    assert found["rate limits"] == (
        "failed",
        "RATELIMIT_STORAGE_URI is unreachable, so each web process counts separately.",
    )


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_readable_file_is_reported_only_if_its_folder_is_accessible(
    app: Flask, settings: Settings
) -> None:
    (settings.instance_path / "gatebell.db").chmod(0o644)
    settings.instance_path.chmod(0o755)
    _, found = diagnosis(app)
    assert "Other users can read" in found["keys"][1]
    settings.instance_path.chmod(0o700)
    _, found = diagnosis(app)
    assert found["keys"] == ("ok", "SECRET_KEY matches the database.")


SEEN = (
    (0, FORGED_ADDRESS, "ok", "through 0 proxies"),
    (1, "203.0.113.9", "ok", "through 1 proxy. The address of this host is 203.0.113.9"),
    (1, f"{FORGED_ADDRESS}, 203.0.113.9", "ok", "through 1 proxy"),
    (1, FORGED_ADDRESS, "failed", "clients can choose their own IP address"),
    (0, "203.0.113.9", "failed", "Set TRUSTED_PROXIES=1."),
    (1, f"{FORGED_ADDRESS}, 203.0.113.9, 10.0.0.2", "failed", "Set TRUSTED_PROXIES=2."),
    # The proxy replaces the header that the client sent, as the files of deploy/ do.
    (2, "203.0.113.9", "failed", "Set TRUSTED_PROXIES=1, unless"),
    (3, "203.0.113.9, 10.0.0.2", "failed", "Set TRUSTED_PROXIES=2, unless"),
    (2, f"{FORGED_ADDRESS}, 203.0.113.9", "failed", "clients can choose their own IP address"),
    # The proxy removes the header.
    (1, "", "failed", "Set TRUSTED_PROXIES=0, unless"),
)


def test_the_number_of_proxies_is_detected(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    apps = [make_app(replace(settings, trusted_proxies=trusted)) for trusted in range(4)]
    for trusted, forwarded, state, sentence in SEEN:
        app = apps[trusted]
        with app.app_context():
            probe = create_proxy_probe()
        headers = {DOCTOR_HEADER: probe} | ({"X-Forwarded-For": forwarded} if forwarded else {})
        body = app.test_client().get("/healthz", headers=headers).data
        found = evaluate_forwarded_headers(body, trusted=trusted)
        assert found.state == state
        assert sentence in found.message
        # Requests without a valid probe get no information.
        headers[DOCTOR_HEADER] = f"{probe}x"
        assert app.test_client().get("/healthz", headers=headers).get_json() == {"status": "ok"}


@pytest.mark.long
def test_a_test_message_is_sent_or_the_error_is_reported(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        app = make_app(replace(settings, mail_url=f"smtp://127.0.0.1:{port}"))
        assert operate(app, "mail", "test", "alice@acme.example")["sent_to"] == "alice@acme.example"
        assert mailbox.messages[0]["Subject"] == "Test message from Gatebell"
        assert diagnosis(app)[1]["mail"][0] == "ok"
        mailbox.recipient_answers.append("550 no such mailbox")
        done = app.test_cli_runner().invoke(args=["mail", "test", "bob@acme.example"])
    assert done.exit_code == 1
    assert "no such mailbox" in json.loads(done.stderr)["error"]
    assert diagnosis(app)[1]["mail"][0] == "failed"
    message = NewEmail(key="k", recipient="a@acme.example", subject="s", text="t")
    with app.app_context():
        queue_emails([message], session=db.session(), keyring=get_services().keyring, now=now())
        db.session.commit()
    assert operate(app, "mail", "status")["waiting"] == 1
