"""Tests of a user's notification rules: which contacts get a page immediately or later."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import select

from domain.housekeeping.clock_corrections import correct_future_times, count_future_times
from domain.paging.contacts.rule_actions import change_rule
from domain.paging.contacts.rule_types import ContactRuleChange
from domain.paging.notifications.batching import batch_due_pages
from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactAddress
from domain.paging.notifications.contacts import Contact, ContactOwner, delete_contact
from domain.paging.notifications.message_queue_state import (
    count_overdue_pages,
    find_contact_type_states,
)
from domain.paging.notifications.page_queue import release_critical_pages
from domain.paging.notifications.rules import (
    MINUTES_PER_WEEK,
    AlertSelection,
    NotificationRule,
    TimeWindow,
    UserRules,
    find_first_delays,
)
from models import Alert, ContactRule, Page
from tests.support.database.work import user_actor, work_in
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.paging import Pages, Person
from tests.support.service.message_receiver import Receiver, running_telephone
from web.jobs.paging import build_paging_settings

WORK = {"start": 9 * 60, "end": 17 * 60, "weekdays": [0, 1, 2, 3, 4]}
AWAY = "smtp://127.0.0.1:1"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_telephone() as running:
        yield running


@pytest.fixture
def alice(pages: Pages) -> Person:
    return pages.person("alice", has_contact=False)


def mail(pages: Pages, person: Person, name: str) -> Contact:
    return pages.email_contact(person.id, f"{name}@pager.example")


def telephone(pages: Pages, person: Person, receiver: Receiver) -> Contact:
    address = ContactAddress(
        type=APPRISE,
        clear=f"ntfy://127.0.0.1:{receiver.port}/phone",
        shown="ntfy://127.0.0.1/…",
        lane=f"ntfy 127.0.0.1:{receiver.port}",
    )
    return pages.contact(ContactOwner(user_id=person.id), address, label="Phone")


def rule(
    pages: Pages,
    contact: Contact,
    alerts: str = "all",
    delay: int = 0,
    only: dict[str, object] | None = None,
) -> None:
    with pages.session() as session:
        session.add(
            ContactRule(
                user_id=contact.user_id,
                contact_id=contact.id,
                alerts=alerts,
                delay_minutes=delay,
                only=only,
                created_at=pages.now,
            )
        )


def new_recipients(mailbox: Mailbox) -> list[str]:
    """Return the recipients of the messages since the last call."""
    found = sorted(str(each["To"]).partition("@")[0] for each in mailbox.messages)
    mailbox.messages.clear()
    return found


def outcomes(pages: Pages) -> list[str | None]:
    with pages.session() as session:
        return list(session.scalars(select(Page.outcome).order_by(Page.id)))


@pytest.mark.long
def test_a_delayed_contact_is_notified_unless_the_page_was_answered(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice", has_contact=False)
    rule(pages, mail(pages, alice, "first"))
    second = mail(pages, alice, "second")
    rule(pages, second, delay=2)
    rule(pages, second, delay=9)
    third = mail(pages, alice, "third")
    rule(pages, third, delay=20)
    alert = pages.alert()
    pages.page([alert], alice)
    pages.run_for(5)
    assert new_recipients(mailbox) == ["first"]
    assert outcomes(pages) == ["accepted"]
    # A delayed message is not late, and no clock correction applies.
    pages.wait(seconds=110)
    pages.run()
    with pages.session() as session:
        assert count_overdue_pages(session=session, now=pages.now) == 0
        assert count_future_times(session=session, now=pages.now) == {}
        assert (
            sum(each.waiting for each in find_contact_type_states(session=session, now=pages.now))
            == 0
        )
    assert new_recipients(mailbox) == []
    pages.run_for(10)
    assert new_recipients(mailbox) == ["second"]
    pages.set_status([alert], "resolved")
    pages.run_for(40)
    assert new_recipients(mailbox) == ["first", "second"]
    pages.wait(minutes=20)
    pages.run_for(3)
    assert new_recipients(mailbox) == []
    assert pages.waiting_messages() == []


@pytest.mark.parametrize(
    ("severity", "hour", "expected"),
    [
        (0, 10, ["phone"]),
        (0, 20, ["night", "phone"]),
        (2, 10, ["day"]),
        # No rule applies, so all contacts are notified.
        (2, 20, ["day", "night", "phone"]),
    ],
)
@pytest.mark.one_database("sqlite")
def test_rules_depend_on_urgency_and_on_the_user_s_local_time(
    pages: Pages, mailbox: Mailbox, severity: int, hour: int, expected: list[str]
) -> None:
    alice = pages.person("alice", has_contact=False)
    rule(pages, mail(pages, alice, "phone"), "critical")
    rule(pages, mail(pages, alice, "day"), "other", only=WORK)
    nights = {"start": 17 * 60, "end": 9 * 60, "weekdays": [0, 1, 2, 3, 4, 5, 6]}
    rule(pages, mail(pages, alice, "night"), "critical", only=nights)
    # This day is a Monday.
    pages.now = pages.now.replace(day=2, hour=hour)
    pages.page([pages.alert(severity=severity)], alice, is_critical=severity == 0)
    pages.run_for(3)
    assert new_recipients(mailbox) == expected


@pytest.mark.long
def test_simultaneous_alerts_are_one_message_for_a_contact_of_both_rules(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice", has_contact=False)
    rule(pages, mail(pages, alice, "both"))
    rule(pages, mail(pages, alice, "phone"), "critical")
    pages.page([pages.alert("Fire")], alice, is_critical=True)
    pages.page([pages.alert("Smoke", severity=2)], alice)
    pages.run_for(3)
    subjects = {str(each["To"]): str(each["Subject"]) for each in mailbox.messages}
    assert subjects == {
        "both@pager.example": "[critical] 2 alerts in acme/shop: Fire and others",
        "phone@pager.example": "[critical] Fire (acme/shop #1)",
    }


@pytest.mark.long
def test_later_contacts_are_notified_immediately_if_the_first_ones_fail(
    pages: Pages, mailbox: Mailbox, receiver: Receiver, alice: Person
) -> None:
    rule(pages, telephone(pages, alice, receiver))
    rule(pages, mail(pages, alice, "later"), delay=30)
    mail(pages, alice, "without")
    receiver.answer = lambda _request: (503, {})
    pages.page([pages.alert()], alice)
    pages.run_for(4)
    assert new_recipients(mailbox) == ["later"]
    assert outcomes(pages) == ["accepted"]


@pytest.mark.parametrize(
    ("reached", "minutes"),
    [
        ({1: True, 2: True, 3: True}, {1: 0, 2: 30}),
        # The contact of the first rule is known to fail.
        ({1: False, 2: True, 3: True}, {1: 0, 2: 0}),
        ({1: True, 2: False, 3: True}, {1: 0, 2: 30}),
        # All contacts of the rules fail.
        ({1: False, 2: False, 3: True}, {1: 0, 2: 0, 3: 0}),
        # A contact was deleted.
        ({2: True, 3: True}, {2: 30}),
        ({3: True}, {3: 0}),
    ],
)
def test_notified_contacts_depend_on_reachability(
    reached: dict[int, bool], minutes: dict[int, int]
) -> None:
    rules = [NotificationRule(contact_id=1, alert_selection=AlertSelection.ALL, delay=0)]
    rules.append(NotificationRule(contact_id=2, alert_selection=AlertSelection.ALL, delay=30))
    told_after = UserRules(rules=rules, minute=0).find_contact_delays(AlertSelection.OTHER, reached)
    assert told_after == {each: timedelta(minutes=delay) for each, delay in minutes.items()}


@pytest.mark.long
def test_other_contacts_and_the_account_are_notified_if_all_contacts_of_the_rules_fail(
    pages: Pages, mailbox: Mailbox, receiver: Receiver, alice: Person
) -> None:
    rule(pages, telephone(pages, alice, receiver))
    mail(pages, alice, "without")
    receiver.answer = lambda _request: (503, {})
    alert = pages.alert()
    pages.page([alert], alice)
    pages.run_for(4)
    assert new_recipients(mailbox) == ["alice", "without"]
    assert outcomes(pages) == ["accepted"]
    assert pages.activity(alert) == []


def test_pages_of_a_deleted_contact_go_to_the_next_contacts(
    pages: Pages, mailbox: Mailbox, receiver: Receiver, alice: Person
) -> None:
    phone = telephone(pages, alice, receiver)
    rule(pages, phone)
    rule(pages, mail(pages, alice, "later"), delay=30)
    pages.page([pages.alert()], alice)
    pages.wait(seconds=2)
    with pages.session() as session:
        batch_due_pages(build_paging_settings(pages.settings), session=session, now=pages.now)
    with pages.session() as session:
        delete_contact(phone.id, ContactOwner(user_id=alice.id), session=session, now=pages.now)
    pages.run_for(2)
    assert new_recipients(mailbox) == ["later"]
    assert outcomes(pages) == ["accepted"]


@pytest.mark.long
def test_rules_for_critical_alerts_apply_when_an_alert_becomes_critical(
    pages: Pages, mailbox: Mailbox, alice: Person
) -> None:
    rule(pages, mail(pages, alice, "office"), "other")
    rule(pages, mail(pages, alice, "phone"), "critical")
    alert = pages.alert(severity=2)
    pages.page([alert], alice)
    pages.run_for(3)
    assert new_recipients(mailbox) == ["office"]
    with pages.session() as session:
        session.get_one(Alert, alert).severity = 0
        session.flush()
        for _ in range(2):
            release_critical_pages([alert], session=session, now=pages.now)
    pages.run_for(3)
    assert new_recipients(mailbox) == ["phone"]


@pytest.mark.long
@pytest.mark.both_databases
def test_a_changed_rule_applies_to_later_pages(
    pages: Pages, mailbox: Mailbox, alice: Person
) -> None:
    rule(pages, mail(pages, alice, "first"))
    rule(pages, mail(pages, alice, "later"), delay=5)
    other = mail(pages, alice, "other")
    pages.page([pages.alert("Disk full")], alice)
    pages.run_for(3)
    assert new_recipients(mailbox) == ["first"]
    with pages.session() as session:
        (number,) = session.scalars(select(ContactRule.id).where(ContactRule.delay_minutes == 5))
        work = work_in(session, actor=user_actor(alice.id, "alice"), now=pages.now)
        change_rule(work, number, ContactRuleChange(contact_id=other.id, delay_minutes=1))
    pages.page([pages.alert("Fire")], alice)
    pages.run_for(35)
    assert new_recipients(mailbox) == ["first"]
    pages.wait(minutes=1)
    pages.run_for(3)
    assert new_recipients(mailbox) == ["other"]
    # A message that already waits keeps its time.
    pages.wait(minutes=4)
    pages.run_for(3)
    assert new_recipients(mailbox) == ["later"]
    assert pages.waiting_messages() == []


@pytest.mark.one_database("sqlite")
def test_a_clock_that_ran_ahead_delays_no_message(
    pages: Pages, mailbox: Mailbox, alice: Person
) -> None:
    rule(pages, mail(pages, alice, "first"))
    rule(pages, mail(pages, alice, "later"), delay=2)
    pages.wait(hours=5)
    pages.page([pages.alert()], alice)
    pages.run_for(3)
    pages.wait(hours=-5)
    for _ in range(2):
        with pages.session() as session:
            correct_future_times(session=session, now=pages.now)
    pages.run_for(2)
    assert new_recipients(mailbox) == ["first", "later"]


def test_times_without_a_rule_are_found_in_any_week() -> None:
    night = TimeWindow(start=22 * 60, end=6 * 60, weekdays=(6,))
    rules = [
        NotificationRule(contact_id=1, alert_selection=AlertSelection.CRITICAL, delay=5),
        NotificationRule(contact_id=1, alert_selection=AlertSelection.ALL, delay=0, only=night),
    ]
    sunday = 6 * 24 * 60 + 22 * 60
    edges = [0, 6 * 60, sunday, MINUTES_PER_WEEK]
    assert find_first_delays(rules, AlertSelection.CRITICAL) == [
        (edges[0], edges[1], 0),
        (edges[1], edges[2], 5),
        (edges[2], edges[3], 0),
    ]
    assert [first for _, _, first in find_first_delays(rules, AlertSelection.OTHER)] == [0, None, 0]
