"""Tests that pages for a person are batched, sent once, and canceled when they are pointless."""

from typing import Any

import pytest

from domain.access.roles import Role
from domain.alerts.handling.activity import ActivityEntryKind, add_activity_entry
from domain.audit.events import EventActor
from domain.paging.notifications.contact_types.mail import parse_email_address
from domain.paging.notifications.contacts import ContactOwner
from domain.paging.notifications.page_queue import NewPage, release_critical_pages
from models import Alert, Page, PageRecipient, Project
from tests.support.database.refusing import refuse_rows
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.paging import Pages, subjects


@pytest.mark.long
@pytest.mark.spec("J1")
def test_the_first_page_is_sent_within_five_seconds(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    assert pages.page([pages.alert("Disk full on web-1")], alice) == 1
    pages.run_for(4)
    assert subjects(mailbox) == ["[critical] Disk full on web-1 (acme/shop #1)"]
    assert mailbox.recipients == [["alice@pager.example"]]
    (message,) = mailbox.messages
    text = message.text
    assert "http://localhost/acme/shop/-/alerts/1" in text
    assert "Acknowledge it: http://localhost/-/acknowledge/" in text
    pages.run_for(60)
    assert len(mailbox.messages) == 1


@pytest.mark.long
def test_a_page_includes_the_severity_reason_and_earlier_notes(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice")
    known: dict[str, Any] = {"fingerprint": b"f" * 32, "severity_reason": "reported as “page”"}
    former = [pages.alert(**known, status="resolved") for _ in range(2)][-1]
    with pages.session() as session:
        by = EventActor(id=alice.id, name="alice")
        note = (former, ActivityEntryKind.NOTE, "Restart the\npool")
        add_activity_entry(*note, by=by, session=session, now=pages.now)
    pages.page([pages.alert(**known)], alice)
    pages.run_for(4)
    (message,) = mailbox.messages
    text = message.text.replace("\r\n", "\n")
    assert "Severity reason: reported as “page”" in text
    assert "Seen twice before, last at " in text
    assert "@alice wrote: Restart the pool\nhttp://localhost/acme/shop/-/alerts/2\n" in text


@pytest.mark.long
def test_a_page_with_a_known_key_is_not_stored_again(pages: Pages, mailbox: Mailbox) -> None:
    alice, alert = pages.person("alice"), pages.alert()
    assert [pages.page([alert], alice), pages.page([alert], alice)] == [1, 0]
    pages.run_for(40)
    assert len(mailbox.messages) == 1


@pytest.mark.long
def test_an_alert_storm_is_one_page_with_the_number_of_alerts(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice, bob = pages.person("alice"), pages.person("bob")
    assert pages.page(pages.alerts(5_000), alice, bob) == 10_000
    pages.run_for(3)
    assert subjects(mailbox) == ["[critical] 5000 alerts in acme/shop: Disk full 1 and others"] * 2
    assert sorted(mailbox.recipients) == [["alice@pager.example"], ["bob@pager.example"]]
    assert "… and 4990 more." in mailbox.messages[0].text
    pages.run_for(60)
    assert len(mailbox.messages) == 2


@pytest.mark.long
@pytest.mark.both_databases
def test_five_hundred_alerts_in_a_minute_are_at_most_ten_pages(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice")
    with pages.worker() as worker:
        for _ in range(60):
            pages.page(pages.alerts(9), alice)
            pages.wait(seconds=1)
            worker.process_all_due_work()
        for _ in range(40):
            pages.wait(seconds=1)
            worker.process_all_due_work()
    counts = [int(each.split()[1]) for each in subjects(mailbox)]
    assert sum(counts) == 540
    assert len(counts) <= 4
    assert pages.waiting_pages() == []


@pytest.mark.long
def test_the_paging_interval_of_one_user_does_not_delay_others(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice, bob = pages.person("alice"), pages.person("bob")
    pages.page([pages.alert()], alice)
    pages.run_for(3)
    pages.page([pages.alert()], alice, bob)
    pages.run_for(3)
    assert mailbox.recipients == [["alice@pager.example"], ["bob@pager.example"]]
    pages.run_for(30)
    assert mailbox.recipients[2:] == [["alice@pager.example"]]


@pytest.mark.long
@pytest.mark.both_databases
def test_a_more_severe_page_is_sent_immediately(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert("Backup old", severity=4)], alice)
    pages.run_for(2)
    pages.page([pages.alert("Disk full", severity=0)], alice, is_critical=True)
    pages.run_for(2)
    told = ["[info] Backup old (acme/shop #1)", "[critical] Disk full (acme/shop #2)"]
    assert subjects(mailbox) == told
    # Pages that are not more severe than the last one wait for the interval after it.
    pages.page([pages.alert("Slow", severity=1), pages.alert("Down", severity=0)], alice)
    pages.run_for(27)
    assert subjects(mailbox) == told
    pages.run_for(3)
    assert subjects(mailbox) == [*told, "[critical] 2 alerts in acme/shop: Down and others"]


@pytest.mark.long
def test_a_waiting_page_is_sent_immediately_when_its_alert_becomes_critical(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert(severity=2)], alice)
    pages.run_for(2)
    worse = pages.alert(severity=2)
    pages.page([worse], alice)
    with pages.session() as session:
        session.get_one(Alert, worse).severity = 0
        release_critical_pages([worse], session=session, now=pages.now)
    pages.run_for(2)
    assert len(mailbox.messages) == 2


@pytest.mark.long
@pytest.mark.both_databases
def test_a_clock_that_ran_ahead_does_not_delay_the_next_page(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice")
    pages.wait(hours=1)
    first = pages.alert()
    pages.page([first], alice)
    pages.run_for(2)
    pages.wait(hours=-1)
    pages.page([pages.alert()], alice)
    pages.set_status([first], "resolved")
    pages.run_for(3)
    assert len(mailbox.messages) == 2
    # Afterwards, pages wait for each other as before.
    pages.page([pages.alert()], alice)
    pages.run_for(27)
    assert len(mailbox.messages) == 2
    pages.run_for(5)
    assert len(mailbox.messages) == 3


@pytest.mark.long
def test_an_unsent_page_is_cancelled_when_its_alert_is_acknowledged(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice")
    first, second = pages.alerts(2)
    pages.page([first, second], alice)
    pages.set_status([first], "acknowledged")
    pages.run_for(5)
    assert subjects(mailbox) == ["[critical] Disk full 2 (acme/shop #2)"]


@pytest.mark.long
def test_a_page_that_waits_for_its_channel_is_cancelled(pages: Pages, mailbox: Mailbox) -> None:
    alice, alert = pages.person("alice"), pages.alert()
    pages.page([alert], alice)
    pages.run_for(3, mail_url="smtp://127.0.0.1:1")
    pages.set_status([alert], "resolved")
    for _ in range(10):
        pages.wait(seconds=60)
        pages.run()
    assert mailbox.messages == []
    assert pages.waiting_messages() == []


@pytest.mark.long
def test_every_confirmed_contact_gets_the_page_and_no_other(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    pages.email_contact(alice.id, "alice@second.example")
    owner, address = (
        ContactOwner(user_id=alice.id),
        parse_email_address("alice@unconfirmed.example"),
    )
    pages.contact(owner, address, is_confirmed=False)
    pages.page([pages.alert()], alice)
    pages.run_for(3)
    assert sorted(mailbox.recipients) == [["alice@pager.example"], ["alice@second.example"]]


@pytest.mark.long
def test_without_a_contact_the_page_is_sent_to_the_account_s_address(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice", has_contact=False)
    pages.page([pages.alert()], alice)
    pages.run_for(3)
    assert mailbox.recipients == [["alice@accounts.example"]]
    pages.email_contact(alice.id, "alice@pager.example")
    pages.page([pages.alert()], alice)
    pages.run_for(60)
    assert mailbox.recipients == [["alice@accounts.example"], ["alice@pager.example"]]


@pytest.mark.long
def test_the_activity_shows_that_a_user_could_not_be_paged(pages: Pages, mailbox: Mailbox) -> None:
    alice, alert = pages.person("alice", has_contact=False), pages.alert()
    pages.page([alert], alice)
    pages.run_for(3, mail_url="")
    assert pages.activity(alert) == [
        ("page", "alice", "could not be paged: there is no confirmed contact")
    ]
    pages.run_for(60)
    assert mailbox.messages == []


@pytest.mark.parametrize("role", [None, Role.REPORTER])
def test_users_are_not_paged_about_alerts_that_they_cannot_see(
    pages: Pages, mailbox: Mailbox, role: Role | None
) -> None:
    outsider = pages.person("mallory", role=role)
    pages.page([pages.alert()], outsider)
    pages.run_for(3)
    assert mailbox.messages == []
    assert pages.waiting_pages() == []


@pytest.mark.long
def test_a_channel_gets_only_pages_of_its_own_project(pages: Pages, mailbox: Mailbox) -> None:
    channel = pages.contact(
        ContactOwner(project_id=pages.project_id), parse_email_address("team@acme.example")
    )
    other = pages.project("acme/other")
    alerts = [pages.alert("Ours"), pages.alert("Theirs", project_id=other)]
    pages.queue(
        [
            NewPage(
                key=f"channel {alert}",
                project_id=pages.project_id,
                alert_id=alert,
                channel_id=channel.id,
            )
            for alert in alerts
        ]
    )
    pages.run_for(3)
    assert subjects(mailbox) == ["[critical] Ours (acme/shop #1)"]
    # The readers of a channel are unknown, so its pages have no link to acknowledge.
    assert "acknowledge" not in mailbox.messages[0].text.lower()


def test_pages_for_missing_alerts_or_recipients_are_not_stored(pages: Pages) -> None:
    alice, alert = pages.person("alice"), pages.alert()
    contact_id = alice.contact.id if alice.contact else 0
    # A contact of a user is not a channel of a project.
    wanted = ((alert, 10_000, None), (alert, None, 10_000), (9_999, alice.id, None))
    stored = pages.queue(
        [
            NewPage(
                key=f"{alert_id} {user_id} {channel_id}",
                project_id=pages.project_id,
                alert_id=alert_id,
                user_id=user_id,
                channel_id=channel_id,
            )
            for alert_id, user_id, channel_id in (*wanted, (alert, None, contact_id))
        ]
    )
    assert (stored, pages.rows(Page)) == (0, [])


def test_nothing_is_sent_about_a_deleted_project(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    pages.page([pages.alert()], alice)
    with pages.session() as session:
        session.get_one(Project, pages.project_id).deleted_at = pages.now
    pages.run_for(5)
    assert mailbox.messages == []


@pytest.mark.long
@pytest.mark.both_databases
def test_an_error_for_one_recipient_does_not_delay_others(pages: Pages, mailbox: Mailbox) -> None:
    alice, bob = pages.person("alice"), pages.person("bob")
    pages.page([pages.alert()], alice, bob)
    of_alice = next(row.id for row in pages.rows(PageRecipient) if row.user_id == alice.id)
    allow = refuse_rows("page_batches", f"NEW.recipient_id = {of_alice}", engine=pages.engine)
    pages.run_for(4)
    assert mailbox.recipients == [["bob@pager.example"]]
    allow()
    pages.run_for(60)
    assert mailbox.recipients == [["bob@pager.example"], ["alice@pager.example"]]
