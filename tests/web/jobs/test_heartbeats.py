"""Tests of the times when a missed heartbeat opens an alert, with a simulated clock."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from app import create_app
from blueprints.heartbeats import pings
from domain.alerts.handling.status import StatusChange, change_alert_status
from domain.projects.deletion import delete_project
from models import Alert, Delivery, Heartbeat, HeartbeatPing, Project
from tests.support.accounts.namespaces import get_namespace
from tests.support.service.commands import operate
from tests.support.service.live import close_app
from web.extensions import db
from web.jobs.clock_corrections import ClockCorrectionJob
from web.jobs.heartbeats import process_all_due_work
from web.jobs.retention import prune_database, remove_deleted_data
from web.settings.environment import Settings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Night:
    """Represents a project with a heartbeat, and a clock that the test moves."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.now = settings, NOON
        self.app: Flask = create_app(settings, clock=self.clock)
        operate(self.app, "groups", "create", "acme")
        operate(self.app, "projects", "create", "acme/shop")
        self.url, self.id = "", 0

    def clock(self) -> datetime:
        return self.now

    def create(self, *options: str, name: str = "backup") -> None:
        made = operate(self.app, "heartbeats", "create", "acme/shop", "--name", name, *options)
        self.url, self.id = made["url"].removeprefix("http://localhost"), made["id"]

    def operate(self, command: str, *options: str) -> dict[str, Any]:
        return operate(self.app, "heartbeats", command, "acme/shop", str(self.id), *options)

    def ping(self, signal: str = "") -> None:
        answer = self.app.test_client().post(f"{self.url}{signal}")
        assert answer.status_code == 200

    def pass_time(self, seconds: float) -> None:
        self.now += seconds * SECOND

    def work(self) -> int:
        return process_all_due_work(self.settings, clock=self.clock)

    def at(self, seconds: float) -> list[str]:
        """Set the clock to seconds after noon, run a worker, and return the alerts."""
        self.now = NOON + seconds * SECOND
        self.work()
        return self.alerts()

    def alerts(self) -> list[str]:
        with self.app.app_context():
            found = db.session.scalars(select(Alert).order_by(Alert.iid)).all()
            return [f"{each.title}: {each.status}" for each in found]

    def count(self, model: type[Any]) -> int:
        with self.app.app_context():
            return db.session.scalar(select(func.count()).select_from(model)) or 0

    def state(self) -> str:
        (found,) = operate(self.app, "heartbeats", "list", "acme/shop")["heartbeats"]
        assert isinstance(found["state"], str)
        return found["state"]


MISSED = "Heartbeat missed: backup"
UNFINISHED = "Heartbeat did not finish: backup"


@pytest.fixture
def night(settings: Settings) -> Iterator[Night]:
    made = Night(settings)
    yield made
    close_app(made.app)


@pytest.mark.long
def test_an_alert_opens_when_the_grace_time_is_over_and_the_next_ping_resolves_it(
    night: Night,
) -> None:
    night.create("--every", "5m", "--grace", "1m")
    night.ping()
    assert night.at(359) == []
    assert night.state() == "late"
    assert night.at(360) == [f"{MISSED}: triggered"]
    assert night.state() == "down"
    assert night.at(100_000) == [f"{MISSED}: triggered"]
    night.ping()
    assert night.alerts() == [f"{MISSED}: resolved"]
    assert night.state() == "up"
    assert night.at(100_360) == [f"{MISSED}: resolved", f"{MISSED}: triggered"]


@pytest.mark.long
def test_a_second_is_the_shortest_interval_and_no_grace_is_possible(night: Night) -> None:
    night.create("--every", "1s", "--grace", "0s")
    night.ping()
    assert night.at(0.9) == []
    assert night.at(1) == [f"{MISSED}: triggered"]
    night.ping()
    assert night.alerts() == [f"{MISSED}: resolved"]


@pytest.mark.long
def test_nothing_is_expected_before_the_first_ping(night: Night) -> None:
    night.create("--every", "1s", "--grace", "0s")
    assert night.at(1_000_000) == []
    assert night.state() == "new"


def test_pings_received_without_a_worker_prevent_false_alarms(night: Night) -> None:
    night.create("--every", "5m", "--grace", "1m")
    for _ in range(12):
        night.ping()
        night.pass_time(300)
    assert night.at(3_600) == []
    assert night.state() == "up"


def test_pings_missed_without_a_worker_are_detected_when_it_returns(night: Night) -> None:
    night.create("--every", "5m", "--grace", "1m")
    night.ping()
    assert night.at(3_600) == [f"{MISSED}: triggered"]
    with night.app.app_context():
        alert = db.session.scalars(select(Alert)).one()
        assert alert.started_at == NOON + timedelta(minutes=6)


@pytest.mark.long
def test_a_late_ping_that_arrives_before_the_check_opens_no_alert(night: Night) -> None:
    night.create("--every", "5m", "--grace", "1m")
    night.ping()
    night.pass_time(1_800)
    night.ping()
    assert night.work() == 0
    assert night.alerts() == []


@pytest.mark.long
def test_a_cron_schedule_uses_its_time_zone(night: Night) -> None:
    # Noon in UTC is 13:00 in Berlin, so the next run at 13:30 is half an hour later.
    zone = ("--time-zone", "Europe/Berlin")
    night.create("--cron", "30 13 * * *", *zone, "--grace", "10m")
    night.ping()
    assert night.at(30 * 60 + 599) == []
    night.ping()  # The ping is within the grace time, so the next one is expected tomorrow.
    assert night.at(24 * 3_600) == []
    assert night.at(24 * 3_600 + 30 * 60 + 599) == []
    assert night.at(24 * 3_600 + 30 * 60 + 600) == [f"{MISSED}: triggered"]
    night.ping()
    assert night.at(24 * 3_600 + 30 * 60 + 700) == [f"{MISSED}: resolved"]


@pytest.mark.long
def test_a_run_that_does_not_end_within_the_grace_time_opens_an_alert(night: Night) -> None:
    night.create("--every", "1d", "--grace", "10m")
    night.ping()
    night.pass_time(60)
    night.ping("/start")
    assert night.at(60 + 599) == []
    assert night.at(60 + 600) == [f"{UNFINISHED}: triggered"]
    night.ping()
    assert night.alerts() == [f"{UNFINISHED}: resolved"]


@pytest.mark.long
def test_a_run_that_ends_in_time_opens_no_alert(night: Night) -> None:
    night.create("--every", "1d", "--grace", "10m")
    for _ in range(2):
        night.ping("/start")
        night.pass_time(500)
        night.ping()
        night.pass_time(500)
        night.work()
    assert night.alerts() == []


@pytest.mark.long
def test_log_entries_do_not_count_as_pings(night: Night) -> None:
    night.create("--every", "5m", "--grace", "0s")
    night.ping()
    night.pass_time(299)
    night.ping("/log")
    assert night.at(300) == [f"{MISSED}: triggered"]


@pytest.mark.long
def test_a_paused_heartbeat_expects_no_pings_until_it_is_resumed(night: Night) -> None:
    night.create("--every", "5m", "--grace", "0s")
    night.ping()
    night.operate("pause")
    assert night.at(100_000) == []
    night.operate("resume")
    assert night.at(100_299) == []
    assert night.at(100_300) == [f"{MISSED}: triggered"]


@pytest.mark.long
def test_a_new_schedule_counts_from_the_last_ping(night: Night) -> None:
    night.create("--every", "1h", "--grace", "0s")
    night.ping()
    night.operate("change", "--every", "5m", "--grace", "0s")
    assert night.at(299) == []
    assert night.at(300) == [f"{MISSED}: triggered"]


def resolve(night: Night, status: str = "resolved") -> None:
    """Set the status of the newest alert, as a user does."""
    with night.app.app_context():
        alert = db.session.scalars(select(Alert).order_by(Alert.iid.desc())).first()
        assert alert is not None
        change = StatusChange(status=status, by=None)
        change_alert_status(
            alert.project_id, alert.iid, change, session=db.session(), now=night.now
        )
        db.session.commit()


@pytest.mark.long
@pytest.mark.both_databases
def test_a_manually_resolved_alert_opens_again_if_pings_are_still_missing(
    night: Night,
) -> None:
    night.create("--every", "5m", "--grace", "1m")
    night.ping()
    assert night.at(360) == [f"{MISSED}: triggered"]
    # An open alert is not reported again.
    assert night.at(800) == [f"{MISSED}: triggered"]
    assert night.count(Delivery) == 1
    resolve(night)
    assert night.at(800 + 359) == [f"{MISSED}: resolved"]
    assert night.at(800 + 361) == [f"{MISSED}: resolved", f"{MISSED}: triggered"]
    with night.app.app_context():
        alert = db.session.scalars(select(Alert).where(Alert.iid == 2)).one()
        assert alert.started_at == NOON + timedelta(seconds=800 + 360)
    night.ping()
    assert night.at(1_300) == [f"{MISSED}: resolved"] * 2


@pytest.mark.long
def test_an_ignored_alert_stays_ignored(night: Night) -> None:
    night.create("--every", "5m", "--grace", "1m")
    night.ping()
    night.at(360)
    resolve(night, "ignored")
    assert night.at(100_000) == [f"{MISSED}: ignored"]


@pytest.mark.long
def test_a_resolved_failure_opens_again_and_each_failure_is_counted(night: Night) -> None:
    night.create("--every", "5m", "--grace", "1m")
    failed = "Heartbeat failed: backup"
    for _ in range(3):
        night.ping("/fail")
        night.pass_time(60)
    assert night.at(100_000) == [f"{failed}: triggered"]
    with night.app.app_context():
        assert db.session.scalars(select(Alert)).one().events == 3
    resolve(night)
    night.pass_time(100)
    night.ping("/fail")
    assert night.alerts() == [f"{failed}: resolved", f"{failed}: triggered"]
    resolve(night)
    assert night.at(200_000)[2:] == [f"{failed}: triggered"]


@pytest.mark.long
def test_a_resolved_alert_stays_closed_for_at_least_a_minute(night: Night) -> None:
    night.create("--every", "1s", "--grace", "0s")
    night.ping()
    night.at(1)
    resolve(night)
    assert night.at(60) == [f"{MISSED}: resolved"]
    assert night.at(63) == [f"{MISSED}: resolved", f"{MISSED}: triggered"]


@pytest.mark.long
def test_a_project_with_alerts_disabled_gets_none_until_they_are_enabled(night: Night) -> None:
    night.create("--every", "5m", "--grace", "0s")
    night.ping()
    with night.app.app_context():
        project = db.session.scalars(select(Project)).one()
        project.monitor_access_level = "disabled"
        db.session.commit()
    assert night.at(300) == []
    with night.app.app_context():
        project = db.session.scalars(select(Project)).one()
        project.monitor_access_level = "enabled"
        db.session.commit()
    assert night.at(360) == [f"{MISSED}: triggered"]


@pytest.mark.long
def test_concurrent_workers_open_each_alert_once(night: Night) -> None:
    for number in range(20):
        night.create("--every", "5m", "--grace", "0s", name=f"job {number}")
        night.ping()
    night.pass_time(300)
    with ThreadPoolExecutor(4) as workers:
        settled = list(workers.map(lambda _: night.work(), range(4)))
    assert sum(settled) == 20
    assert len(night.alerts()) == 20
    assert night.count(Delivery) == 20
    assert night.count(HeartbeatPing) == 20


@pytest.mark.long
def test_the_log_keeps_the_newest_pings(night: Night) -> None:
    night.create("--every", "5m")
    for _ in range(15):
        night.ping()
    prune_database(replace(night.settings, heartbeat_log_keep_count=10))
    assert night.count(HeartbeatPing) == 10
    night.ping()
    assert night.count(HeartbeatPing) == 11


@pytest.mark.long
def test_urls_survive_a_change_of_the_secret_key(night: Night) -> None:
    night.create("--every", "5m", "--grace", "0s")
    old, night.settings = (
        night.settings.secret_key,
        replace(night.settings, secret_key="another key that only tests have, and everybody knows"),
    )
    close_app(night.app)
    both = replace(night.settings, secret_key_fallbacks=(old,))
    night.app = create_app(both, clock=night.clock)
    night.ping()
    assert operate(night.app, "secrets", "reencrypt")["reencrypted"]["heartbeat_urls"] == 1
    close_app(night.app)
    night.app = create_app(night.settings, clock=night.clock)
    night.ping()
    assert night.count(HeartbeatPing) == 2


@pytest.mark.long
def test_the_heartbeats_of_a_deleted_project_are_deleted(night: Night) -> None:
    night.create("--every", "5m", "--grace", "0s")
    night.ping()
    # The newest project is not deleted, so that its id is not reused.
    operate(night.app, "projects", "create", "acme/newest")
    with night.app.app_context():
        project = get_namespace("acme/shop", session=db.session())
        delete_project(project, session=db.session(), now=night.now)
        db.session.commit()
    assert night.app.test_client().get(night.url).status_code == 404
    assert night.at(300) == []
    remove_deleted_data(night.settings, clock=night.clock)
    assert (night.count(Heartbeat), night.count(HeartbeatPing)) == (0, 0)


@pytest.mark.long
def test_the_worker_completes_the_evaluation_of_a_ping(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    night.create("--every", "5m", "--grace", "0s")
    with monkeypatch.context() as patch:
        patch.setattr(pings, "evaluate_heartbeat", _away)
        night.ping("/fail")
    assert night.alerts() == []
    assert night.work() == 1
    assert night.alerts() == ["Heartbeat failed: backup: triggered"]


def _away(*_: object, **__: object) -> None:
    raise OperationalError("", None, Exception())


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("schedule", [("--every", "1h"), ("--cron", "0 * * * *")])
def test_a_clock_that_ran_ahead_delays_no_alert(night: Night, schedule: tuple[str, str]) -> None:
    night.create(*schedule, "--grace", "5m")
    night.now = NOON + timedelta(hours=6)
    night.ping()
    night.work()
    night.now = NOON
    with ClockCorrectionJob(night.settings, clock=night.clock) as loop:
        loop.process_all_due_work()
    assert night.at(3_600 + 299) == []
    assert night.at(3_600 + 301) == [f"{MISSED}: triggered"]
    # Afterwards, the heartbeat works as before.
    with ClockCorrectionJob(night.settings, clock=night.clock) as loop:
        loop.process_all_due_work()
    assert night.at(3_600 + 400) == [f"{MISSED}: triggered"]
