"""Acknowledgement links in messages: the page confirms, and acts for the recipient."""

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import delete, update
from werkzeug.test import TestResponse

from domain.paging.notifications.page_queue import NewPage, cancel_pages
from models import (
    Alert,
    AlertNote,
    AuditEvent,
    Escalation,
    Incident,
    IncidentAlert,
    IncidentNote,
    Member,
    User,
)
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.paging import Pages, Person
from web.settings.environment import Settings

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("J1")]


@pytest.fixture
def alice(pages: Pages) -> Person:
    return pages.person("alice")


def link_of(pages: Pages, mailbox: Mailbox, alerts: list[int], *people: Person) -> str:
    """Page users about alerts and return the link of the last message."""
    pages.page(alerts, *people)
    pages.run_for(40)
    return last_link(mailbox)


def last_link(mailbox: Mailbox) -> str:
    text = mailbox.messages[-1].text
    found = re.search(r"http://localhost(/-/acknowledge/\S+)", text)
    assert found is not None, text
    return found[1]


def press(client: FlaskClient, link: str, *, without: Collection[str] = ()) -> TestResponse:
    """Submit the form of the page with its checked boxes, except for some values."""
    page = client.get(link).text
    inputs = re.findall(r"<input[^>]*>", page)
    form: dict[str, list[str]] = {}
    for each in inputs:
        name, value = re.search(r'name="(\w+)"', each), re.search(r'value="([^"]+)"', each)
        is_sent = "checkbox" not in each or " checked" in each
        if name and value and is_sent and f"{name[1]} {value[1]}" not in without:
            form.setdefault(name[1], []).append(value[1])
    return client.post(link, data=form)


def statuses(pages: Pages) -> list[str]:
    return [row.status for row in pages.rows(Alert)]


@pytest.mark.long
@pytest.mark.both_databases
def test_only_the_button_acknowledges_the_alert(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    alert = pages.alert("Disk full on web-1")
    link = link_of(pages, mailbox, [alert], alice)
    for method in ("GET", "HEAD", "OPTIONS", "GET"):
        assert client.open(link, method=method).status_code == 200
    assert statuses(pages) == ["triggered"]

    page = client.get(link)
    assert "Set-Cookie" not in page.headers
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "Disk full on web-1" in page.text
    assert "critical" in page.text.lower()
    assert "@alice" in page.text
    assert page.text.count('method="post"') == 1
    buttons = re.findall(r"<button[^>]*type=\"submit\"[^>]*>([^<]*)<", page.text)
    assert buttons == ["Acknowledge alert", "Snooze for 1 hour", "Snooze for 4 hours"]

    done = client.post(link)
    assert (done.status_code, statuses(pages)) == (200, ["acknowledged"])
    assert "1 alert acknowledged as @alice" in done.text
    (entry,) = pages.activity(alert)
    assert entry == ("status", "alice", "acknowledged")
    assert [row.via for row in pages.rows(AlertNote)] == ["from the link in a message"]


@pytest.mark.long
@pytest.mark.both_databases
def test_the_link_can_snooze_an_alert(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    alert = pages.alert()
    link = link_of(pages, mailbox, [alert], alice)
    done = client.post(link, data={"snooze": "4h"})
    assert "1 alert snoozed for 4h as @alice" in done.text
    (row,) = pages.rows(Escalation)
    assert (row.alert_id, row.state, statuses(pages)) == (alert, "snoozed", ["acknowledged"])
    assert [entry[:2] for entry in pages.activity(alert)] == [
        ("status", "alice"),
        ("handling", "alice"),
    ]
    assert {row.via for row in pages.rows(AlertNote)} == {"from the link in a message"}
    (event,) = [each for each in pages.rows(AuditEvent) if each.kind == "alert.snoozed"]
    assert event.actor_id == alice.id


@pytest.mark.long
def test_a_link_acknowledges_only_the_alerts_of_its_message(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    other = pages.alert("Not paged")
    link = link_of(pages, mailbox, pages.alerts(450), alice)
    page = client.get(link).text
    assert "450 alerts need attention." in page
    assert "400 more alerts in acme/shop that are not listed" in page
    assert "450 alerts acknowledged" in press(client, link).text
    assert statuses(pages).count("acknowledged") == 450
    assert statuses(pages)[other - 1] == "triggered"


@pytest.mark.long
@pytest.mark.both_databases
def test_alerts_of_a_digest_can_be_deselected(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    other = pages.project("acme/api")
    with pages.session() as session:
        session.add(Member(user_id=alice.id, project_id=other, role=30, created_at=pages.now))
    mine, left = pages.alert("Mine"), pages.alert("Left")
    elsewhere = pages.alert("Elsewhere", project_id=other, severity=3)
    many = pages.alerts(60, project_id=other, severity=4)
    link = link_of(pages, mailbox, [mine, left, elsewhere, *many], alice)
    page = client.get(link).text
    assert page.index("<legend>acme/shop</legend>") < page.index("<legend>acme/api</legend>")
    # In a message about several projects, unlisted alerts are not selected.
    assert "13 more alerts in acme/api that are not listed" in page
    done = press(client, link, without={f"alert {left}", f"alert {elsewhere}"})
    assert "48 alerts acknowledged as @alice" in done.text
    assert "15 alerts still need attention." in done.text
    stored = {row.id: row.status for row in pages.rows(Alert)}
    assert stored[mine] == "acknowledged"
    assert {stored[left], stored[elsewhere]} == {"triggered"}
    # The remaining alerts can be acknowledged on the same page.
    client.post(link, data={"others_of": [str(other)], "named": [str(left), str(elsewhere)]})
    stored = {row.id: row.status for row in pages.rows(Alert)}
    assert [each for each, status in stored.items() if status == "triggered"] == [left, elsewhere]


@pytest.mark.long
def test_an_empty_selection_and_foreign_alerts_are_not_acknowledged(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    foreign = pages.alert("Not paged")
    link = link_of(pages, mailbox, pages.alerts(2), alice)
    for form in ({}, {"alert": "x"}, {"named": "1"}, {"alert": "9" * 400}, {"alert": "-1"}):
        page = client.post(link, data=form)
        assert page.status_code == 422, form
        assert "Select at least one alert." in page.text
    assert statuses(pages) == ["triggered"] * 3
    chosen = {"alert": [str(foreign), "2"], "others_of": ["0", "99999999999999999"]}
    assert "1 alert acknowledged" in client.post(link, data=chosen).text
    assert statuses(pages) == ["triggered", "acknowledged", "triggered"]


@pytest.mark.long
def test_a_message_delayed_by_an_outage_acknowledges_all_its_alerts(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    pages.page([pages.alert()], alice)
    pages.run_for(35, mail_url="smtp://127.0.0.1:1")
    link = link_of(pages, mailbox, [pages.alert()], alice)
    assert len(mailbox.messages) == 1
    press(client, link)
    assert statuses(pages) == ["acknowledged", "acknowledged"]


@pytest.mark.long
def test_a_second_acknowledgement_changes_nothing(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    alert = pages.alert()
    link = link_of(pages, mailbox, [alert], alice)
    client.post(link)
    for page in (client.get(link), client.post(link)):
        assert page.status_code == 200
        assert "This alert is already acknowledged." in page.text
        assert "<button class" not in page.text
    assert len(pages.activity(alert)) == 1
    pages.set_status([alert], "resolved")
    assert "This alert is already resolved." in client.post(link).text
    assert statuses(pages) == ["resolved"]


@pytest.mark.long
def test_an_expired_link_shows_an_error(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    pages.wait(days=-4)
    link = link_of(pages, mailbox, [pages.alert()], alice)
    pages.wait(days=4)
    for page in (client.get(link), client.post(link)):
        assert page.status_code == 410
        assert "This link has expired." in page.text
    assert statuses(pages) == ["triggered"]


def test_locked_users_and_former_members_cannot_acknowledge(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    link = link_of(pages, mailbox, [pages.alert("Secret title")], alice)
    with pages.session() as session:
        session.execute(update(User).where(User.id == alice.id).values(state="locked"))
    assert client.post(link).status_code == 403
    with pages.session() as session:
        session.execute(update(User).where(User.id == alice.id).values(state="active"))
        session.execute(delete(Member).where(Member.user_id == alice.id))
    for page in (client.get(link), client.post(link)):
        assert page.status_code == 403
        assert "@alice no longer has access" in page.text
        assert "Secret title" not in page.text
    assert statuses(pages) == ["triggered"]


@pytest.mark.long
def test_a_forged_link_is_not_found(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    link = link_of(pages, mailbox, [pages.alert()], alice)
    for changed in (
        link[:-3],
        link.replace("/-/acknowledge/", "/-/acknowledge/x"),
        "/-/acknowledge/WzEsMSwxLDk5OTk5OTk5OTld.aaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ):
        assert client.post(changed).status_code == 404
    assert statuses(pages) == ["triggered"]


@pytest.mark.long
def test_a_link_survives_a_change_of_the_key(
    pages: Pages,
    mailbox: Mailbox,
    alice: Person,
    settings: Settings,
    make_app: Callable[[Settings], Flask],
) -> None:
    link = link_of(pages, mailbox, [pages.alert()], alice)
    new = replace(settings, secret_key="another key that only tests have, and no one else")
    assert make_app(new).test_client().post(link).status_code == 404
    rotated = replace(new, secret_key_fallbacks=(settings.secret_key,))
    assert make_app(rotated).test_client().post(link).status_code == 200
    assert statuses(pages) == ["acknowledged"]


@pytest.mark.long
def test_a_follow_up_names_the_acknowledging_user(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    bob = pages.person("bob")
    alert = pages.alert("Disk full")
    pages.page([alert], alice, bob)
    pages.run_for(3)
    (mine,) = (each for each in mailbox.messages if each["To"] == "alice@pager.example")
    found = re.search(r"http://localhost(/-/acknowledge/\S+)", mine.text)
    assert found is not None
    client.post(found[1])
    with pages.session() as session:
        cancel_pages([alert], session=session, now=pages.now)
    pages.run_for(40)
    follow_ups = [(each["To"], each["Subject"]) for each in mailbox.messages[2:]]
    assert follow_ups == [("bob@pager.example", "Acknowledged by @alice: Disk full (acme/shop #1)")]


@pytest.mark.long
@pytest.mark.both_databases
def test_the_link_acknowledges_incidents_with_their_alerts(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    alert, other = pages.alert("Disk full"), pages.alert("Slow")
    with pages.session() as session:
        of_all = {"project_id": pages.project_id, "description": "", "author_name": ""}
        times = {"created_at": pages.now, "updated_at": pages.now, "status": "triggered"}
        rows = [
            Incident(**of_all, **times, iid=iid, urgency=5, title=f"Outage {iid}") for iid in (1, 2)
        ]
        session.add_all(rows)
        session.flush()
        session.add(IncidentAlert(incident_id=rows[0].id, alert_id=alert))
        ids = [row.id for row in rows]
    about: dict[str, Any] = {"project_id": pages.project_id, "user_id": alice.id}
    pages.queue([NewPage(key=f"page {each}", incident_id=each, **about) for each in ids])
    pages.run_for(3)
    page = client.get(last_link(mailbox)).text
    assert "2 incidents need attention." in page
    assert "Snooze" not in page
    again = [NewPage(key=f"again {each}", incident_id=each, **about) for each in ids]
    pages.queue([*again, NewPage(key="again", alert_id=other, **about)])
    pages.run_for(40)
    link = last_link(mailbox)
    assert "3 problems need attention." in client.get(link).text
    assert "Select at least one problem." in client.post(link).text
    done = press(client, link, without={f"alert incident-{ids[1]}"})
    assert "2 problems acknowledged as @alice. 1 problem still needs" in done.text
    assert [row.status for row in pages.rows(Incident)] == ["acknowledged", "triggered"]
    assert statuses(pages) == ["acknowledged", "acknowledged"]
    (entry,) = pages.rows(IncidentNote)
    assert (entry.user_name, entry.details["via"]) == ("alice", "from the link in a message")
    events = {each.kind: each.actor_id for each in pages.rows(AuditEvent)}
    assert events["incident.changed"] == alice.id


def test_a_device_acknowledges_without_a_page(
    pages: Pages, mailbox: Mailbox, alice: Person, client: FlaskClient
) -> None:
    link = link_of(pages, mailbox, [pages.alert()], alice)
    json = {"Accept": "application/json"}
    assert client.post(link, headers=json).json == {"acknowledged": 1}
    assert statuses(pages) == ["acknowledged"]
    assert client.post(link, headers=json).json == {"acknowledged": 0}
