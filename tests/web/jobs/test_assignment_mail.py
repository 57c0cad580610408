"""Tests of the email that a user gets after another user assigns an alert or an incident."""

from dataclasses import replace

import pytest
from flask import Flask
from sqlalchemy import select, update

from models import Alert, AssignmentNotice, PageRecipient, User
from tests.support.alerts.incidents import PROJECT, IncidentProject
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.mail.stored_texts import list_stored_mails
from tests.support.service.commands import operate
from web.extensions import db
from web.jobs.mail import queue_assignment_notices, send_mail
from web.settings.environment import Settings

pytestmark = pytest.mark.both_databases


@pytest.fixture
def project(app: Flask, settings: Settings) -> IncidentProject:
    made = IncidentProject(app, replace(settings, mail_url="smtp://127.0.0.1:1"))
    operate(app, "users", "create", "bob", "--email", "bob@people.example")
    operate(app, "members", "add", PROJECT, "bob", "Developer")
    return made


def assign(project: IncidentProject, iid: int, username: str, *, token: str = "") -> None:
    project.api("PUT", f"/alert_management_alerts/{iid}", assignee=username, token=token)


def queued_messages(project: IncidentProject) -> list[tuple[str, str, str]]:
    """Queue the messages of assignments, and return all queued messages."""
    queue_assignment_notices(project.settings, clock=lambda: project.now)
    with project.app.app_context():
        rows = [
            (row.recipient, row.subject, row.text)
            for row in list_stored_mails(db.session(), project.settings.secret_key)
        ]
        db.session.rollback()
    return rows


@pytest.mark.long
def test_an_assignment_by_another_user_sends_an_email_with_a_link(project: IncidentProject) -> None:
    project.now_fire("Disk full", severity="high")
    assign(project, 1, "bob")
    ((to, subject, text),) = queued_messages(project)
    assert (to, subject) == ("bob@people.example", "Assigned to you: Disk full (acme/shop #1)")
    assert "[high] Disk full (acme/shop #1), by @alice\n" in text
    assert "http://localhost/acme/shop/-/alerts/1\n" in text
    assert len(queued_messages(project)) == 1
    # Bob gets no email about alerts that he assigned to himself.
    assign(project, 1, "-")
    assign(project, 1, "bob", token=project.token_of("bob"))
    assert len(queued_messages(project)) == 1


@pytest.mark.long
def test_many_assignments_are_one_message(project: IncidentProject) -> None:
    project.now_fire(*(f"alert {number}" for number in range(30)))
    for iid in range(1, 31):
        assign(project, iid, "bob")
    project.api("POST", "/incidents", code=201, title="Outage", assignees="bob,alice")
    operate(project.app, "incidents", "create", PROJECT, "--title", "Slow", "--assignee", "alice")
    to_bob, to_alice = queued_messages(project)
    assert to_bob[1].endswith(" and 30 more")
    assert "and 11 more\n" in to_bob[2]
    assert (to_alice[0], to_alice[1]) == (
        "alice@people.example",
        "Assigned to you: Slow (acme/shop #2)",
    )
    assert "[unknown] Slow (acme/shop #2)\nhttp://localhost/acme/shop/-/incidents/2" in to_alice[2]


def test_no_email_is_sent_for_a_removed_assignment_or_against_a_preference(
    project: IncidentProject,
) -> None:
    project.now_fire("a", "b")
    assign(project, 1, "bob")
    assign(project, 1, "-")
    assert queued_messages(project) == []
    assign(project, 2, "bob")
    with project.app.app_context():
        bob = db.session.scalars(select(User).where(User.username == "bob")).one()
        db.session.add(PageRecipient(user_id=bob.id, time_zone="UTC", wants_follow_ups=False))
        db.session.commit()
    assert queued_messages(project) == []
    with project.app.app_context():
        db.session.execute(update(PageRecipient).values(wants_follow_ups=True))
        db.session.execute(update(Alert).values(title="x\r\nBcc: evil"))
        db.session.commit()
    assign(project, 1, "bob")
    ((_, subject, _),) = queued_messages(project)
    assert subject == "Assigned to you: x Bcc: evil (acme/shop #1)"


def test_no_email_is_sent_to_a_user_who_lost_access(project: IncidentProject) -> None:
    project.now_fire("a")
    assign(project, 1, "bob")
    operate(project.app, "members", "remove", PROJECT, "bob")
    assert queued_messages(project) == []


def test_a_waiting_message_is_cancelled_if_the_user_lost_access(
    project: IncidentProject,
) -> None:
    project.now_fire("a")
    assign(project, 1, "bob")
    assert len(queued_messages(project)) == 1
    operate(project.app, "members", "remove", PROJECT, "bob")
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        settings = replace(project.settings, mail_url=f"smtp://127.0.0.1:{port}")
        send_mail(settings, clock=lambda: project.now)
    assert mailbox.messages == []
    with project.app.app_context():
        (row,) = list_stored_mails(db.session(), project.settings.secret_key)
        assert row.last_error == "canceled: the recipient no longer has access to the project"
        assert row.send_at is None
        db.session.rollback()


@pytest.mark.long
def test_without_a_mail_server_no_notices_accumulate(project: IncidentProject) -> None:
    project.now_fire("a")
    assign(project, 1, "bob")
    project.settings = replace(project.settings, mail_url="")
    assert queued_messages(project) == []
    with project.app.app_context():
        assert db.session.scalars(select(AssignmentNotice)).all() == []
        db.session.rollback()
