"""Tests that followers get the changes of alerts in order and once, in spite of failures."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import (
    ChangeKind,
    Follower,
    ProjectRoundRobin,
    QueuedChange,
    add_follower,
    delete_handled_changes,
    lock_due_changes,
    remove_follower,
)
from domain.alerts.handling.status import StatusChange, change_alert_status
from domain.audit.events import EventActor
from models import AlertChange
from tests.support.accounts.namespaces import get_namespace
from tests.support.alerts.senders import JSON, item, webhook
from tests.support.notifications.escalations import Escalated
from tests.support.service.commands import operate
from web.database.engine import use_engine
from web.extensions import db
from web.jobs.alert_changes import AlertChangeJob, ChangeHandler
from web.settings.environment import Settings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Project:
    """Represents a project whose incidents follow its alerts, and the handled changes."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self.now = NOON
        person = ("users", "create", "alice", "--email", "alice@people.example")
        self.user_id = int(operate(app, *person)["id"])
        operate(app, "groups", "create", "acme")
        operate(app, "projects", "create", "acme/shop")
        made = ("integrations", "create", "acme/shop", "--name", "any")
        self.receivers = {
            kind: operate(app, *made, "--type", kind) for kind in ("http", "prometheus")
        }
        with app.app_context():
            project_id = get_namespace("acme/shop", session=db.session()).project_id
        assert project_id is not None
        self.id = project_id
        #: Kind and alert of each handled change, in order.
        self.handled: list[tuple[str, int]] = []
        #: Alerts whose changes cannot be handled.
        self.broken: set[int] = set()

    def follow(self, *followers: Follower) -> None:
        with self.app.app_context():
            for follower in followers:
                add_follower(self.id, follower, session=db.session())
            db.session.commit()

    def send(self, body: bytes, kind: str = "prometheus") -> None:
        receiver = self.receivers[kind]
        answer = self.app.test_client().post(
            receiver["url"].removeprefix("http://localhost"),
            data=body,
            headers={"Authorization": f"Bearer {receiver['key']}", "Content-Type": JSON},
        )
        assert answer.status_code == 200, answer.text

    def set_status(self, iid: int, status: str) -> None:
        change = StatusChange(status=status, by=EventActor(id=self.user_id, name="alice"))
        with self.app.app_context():
            change_alert_status(self.id, iid, change, session=db.session(), now=self.now)
            db.session.commit()

    def handle(self, changes: Sequence[QueuedChange], **_others: Any) -> None:
        for change in changes:
            if change.alert_id in self.broken:
                raise LookupError(change.alert_id)
        self.handled += [(change.kind.value, change.alert_id) for change in changes]

    def run(self) -> None:
        handlers: dict[Follower, ChangeHandler] = {Follower.INCIDENTS: self.handle}
        with AlertChangeJob(self.settings, clock=lambda: self.now, handlers=handlers) as loop:
            loop.process_all_due_work()

    def waiting(self) -> int:
        with self.app.app_context():
            return db.session.scalar(select(func.count()).select_from(AlertChange)) or 0


@pytest.fixture
def project(app: Flask, settings: Settings) -> Project:
    return Project(app, settings)


def test_no_changes_are_stored_for_a_project_without_followers(project: Project) -> None:
    project.send(webhook(item("a")))
    assert project.waiting() == 0

    project.follow(Follower.INCIDENTS)
    with project.app.app_context():
        remove_follower(project.id, Follower.INCIDENTS, session=db.session())
        db.session.commit()
    project.send(webhook(item("b")))
    assert project.waiting() == 0


@pytest.mark.long
def test_each_change_is_handled_once_and_in_order(project: Project) -> None:
    project.follow(Follower.INCIDENTS)
    project.send(webhook(item("a"), item("b")))
    project.send(webhook(item("a")))  # Another event of the alert is not a change.
    for status in ("acknowledged", "triggered", "ignored", "resolved"):
        project.set_status(1, status)
    project.send(webhook(item("b", status="resolved")))
    project.run()
    project.run()

    of_first = [kind for kind, alert_id in project.handled if alert_id == project.handled[0][1]]
    assert of_first == ["opened", "acknowledged", "reopened", "ignored", "resolved"]
    assert [kind for kind, alert_id in project.handled if alert_id != project.handled[0][1]] == [
        "opened",
        "resolved",
    ]
    assert project.waiting() == 0


@pytest.mark.long
def test_changes_are_batched_after_a_transaction_that_was_not_full(project: Project) -> None:
    project.follow(Follower.INCIDENTS)
    handlers: dict[Follower, ChangeHandler] = {Follower.INCIDENTS: project.handle}
    project.send(webhook(item("a")))
    with AlertChangeJob(project.settings, clock=lambda: NOON, handlers=handlers) as loop:
        assert loop.process_due_work() == 1
        project.send(webhook(item("b")))
        began = monotonic()
        assert loop.process_due_work() == 1
        assert monotonic() - began > 0.25
        assert loop.process_due_work() == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "resolved",
    [webhook(item("late", status="resolved")), b'{"title": "x", "end_time": "2026-01-01"}'],
)
def test_an_alert_stored_as_resolved_is_not_a_change(project: Project, resolved: bytes) -> None:
    project.follow(Follower.INCIDENTS)
    project.send(resolved, "prometheus" if b"alerts" in resolved else "http")
    assert project.waiting() == 0


@pytest.mark.long
def test_only_an_increase_of_the_severity_is_a_change(
    project: Project,
) -> None:
    project.follow(Follower.INCIDENTS)
    for severity in ("low", "critical", "medium", "medium"):
        said = f'{{"title": "disk", "fingerprint": "one", "severity": "{severity}"}}'
        project.send(said.encode(), "http")
    project.run()
    assert [kind for kind, _ in project.handled] == ["opened", "raised"]


@pytest.mark.long
def test_each_follower_has_its_own_changes(project: Project) -> None:
    project.follow(Follower.INCIDENTS, Follower.WEBHOOKS)
    project.send(webhook(item("a")))
    project.run()
    assert [kind for kind, _ in project.handled] == ["opened"]
    # The change for the webhooks remains, since no handler runs here.
    assert project.waiting() == 1


@pytest.mark.long
def test_a_failed_change_delays_only_its_own_alert(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.follow(Follower.INCIDENTS)
    project.send(webhook(item("a"), item("b"), item("c")))
    project.run()
    first = project.handled[0][1]
    project.handled.clear()
    project.broken = {first}

    project.set_status(1, "acknowledged")
    project.set_status(1, "resolved")
    project.set_status(2, "resolved")
    project.run()
    assert [kind for kind, alert_id in project.handled if alert_id != first] == ["resolved"]
    events = [vars(each).get("event") for each in caplog.records]
    assert "alert_change.processing_failed" in events
    assert project.waiting() == 2

    project.broken.clear()
    project.run()
    assert project.waiting() == 2  # The retry is not due yet.
    project.now += timedelta(seconds=2)
    project.run()
    assert [kind for kind, alert_id in project.handled if alert_id == first] == [
        "acknowledged",
        "resolved",
    ]
    assert project.waiting() == 0


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_two_workers_do_not_handle_changes_of_the_same_alert(project: Project) -> None:
    project.follow(Follower.INCIDENTS)
    project.send(webhook(item("a"), item("b")))
    project.set_status(1, "acknowledged")
    with (
        use_engine(project.settings) as engine,
        Session(engine) as one,
        Session(engine) as other,
    ):
        (taken,) = lock_due_changes(
            Follower.INCIDENTS, turns=ProjectRoundRobin(), session=one, now=NOON, limit=1
        )
        (left,) = lock_due_changes(
            Follower.INCIDENTS, turns=ProjectRoundRobin(), session=other, now=NOON, limit=9
        )
        assert taken.alert_id != left.alert_id
        delete_handled_changes([taken], session=one)
        one.commit()
        other.rollback()
        later = lock_due_changes(
            Follower.INCIDENTS, turns=ProjectRoundRobin(), session=other, now=NOON, limit=9
        )
        assert {each.kind for each in later} == {ChangeKind.ACKNOWLEDGED, ChangeKind.OPENED}


class Storms(Escalated):
    """Represents projects with followed alerts; a transaction handles 200 changes."""

    def handled(self) -> list[tuple[str, int]]:
        """Handle all changes, and return the kind and alert of each change in order."""
        handled: list[tuple[str, int]] = []

        def handle(changes: Sequence[QueuedChange], **_others: Any) -> None:
            handled.extend((each.kind.value, each.alert_id) for each in changes)

        handlers: dict[Follower, ChangeHandler] = {Follower.INCIDENTS: handle}
        with AlertChangeJob(self.settings, clock=lambda: self.now, handlers=handlers) as loop:
            loop.process_all_due_work()
        return handled

    def followed(self, path: str) -> int:
        """Create a project whose alerts are followed, and return its id."""
        project_id = self.project(path)
        with self.session() as session:
            add_follower(project_id, Follower.INCIDENTS, session=session)
        return project_id


@pytest.fixture
def storms(settings: Settings) -> Iterator[Storms]:
    made = Storms(settings)
    yield made
    made.engine.dispose()


@pytest.mark.long
@pytest.mark.both_databases
def test_changes_of_more_severe_alerts_are_handled_first(storms: Storms) -> None:
    project_id = storms.followed("acme/storm")
    storms.alerts(450, severity=1, project_id=project_id)
    mild = storms.alert(severity=5, project_id=project_id)
    critical = storms.alert(severity=0, project_id=project_id)
    handled = [alert_id for _, alert_id in storms.handled()]
    assert (handled.index(critical), handled.index(mild)) == (0, 451)
    assert len(handled) == len(set(handled)) == 452


@pytest.mark.long
@pytest.mark.both_databases
def test_projects_take_turns(storms: Storms) -> None:
    stormy = [storms.followed(f"acme/storm-{number}") for number in range(3)]
    for project_id in stormy:
        storms.alerts(300, project_id=project_id)
    quiet = [storms.followed(f"acme/quiet-{number}") for number in range(40)]
    alone = [storms.alert(project_id=project_id) for project_id in quiet]
    handled = [alert_id for _, alert_id in storms.handled()]
    # A transaction has places for twenty projects, and the next transaction for the next ones.
    assert max(handled.index(alert_id) for alert_id in alone) < 3 * 200
    assert len(handled) == len(set(handled)) == 940


@pytest.mark.long
@pytest.mark.both_databases
def test_earlier_changes_of_an_alert_that_becomes_critical_are_handled_first(
    storms: Storms,
) -> None:
    project_id = storms.followed("acme/storm")
    storms.alerts(700, severity=1, project_id=project_id)
    risen = storms.alert(severity=4, project_id=project_id)
    storms.raise_severity(risen, 0)
    handled = storms.handled()
    assert [kind for kind, alert_id in handled if alert_id == risen] == ["opened", "raised"]
    assert handled.index(("opened", risen)) == 0
    assert handled.index(("raised", risen)) == 200
