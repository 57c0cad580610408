"""Tests of escalations under difficult conditions: flapping, failing contacts, archiving."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import update

from domain.access.roles import Role
from domain.paging.notifications.batching import batch_due_pages
from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactAddress
from domain.paging.notifications.contacts import (
    Contact,
    ContactOwner,
    delete_contact,
)
from domain.paging.silences.flapping import store_flap_settings
from domain.paging.silences.types import FlapSettings
from domain.projects.namespace_changes import archive_project_row, unarchive_project
from models import Alert, User
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person
from tests.support.service.message_receiver import Receiver, running_telephone
from web.jobs.paging import build_paging_settings

MINUTE = timedelta(minutes=1)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_telephone() as running:
        yield running


def addressees(mailbox: Mailbox) -> list[str]:
    return [each[0] for each in mailbox.recipients]


def chat(shop: Escalated, receiver: Receiver, person: Person) -> Contact:
    """Give a user an Apprise contact as their only contact."""
    address = ContactAddress(
        type=APPRISE,
        clear=f"ntfy://127.0.0.1:{receiver.port}/{person.username}",
        shown="ntfy://127.0.0.1/…",
        lane=f"ntfy 127.0.0.1:{receiver.port}",
    )
    return shop.contact(ContactOwner(user_id=person.id), address, label="Chat")


# Severity increases


@pytest.mark.long
def test_an_alert_that_becomes_more_severe_switches_its_policy(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", "5m user:bob", name="Night", is_default=False)
    shop.route(night, "Critical", severities=["critical"])
    shop.policy("0s user:bob", name="Chat")
    alert = shop.alert(severity=3)
    shop.pass_time(minutes=30)
    assert shop.paged(alert) == [("bob", 1, 1)]
    shop.raise_severity(alert, 0)
    shop.pass_time(seconds=1)
    assert shop.paged(alert)[1:] == [("alice", 1, 1)]
    shop.pass_time(minutes=5)
    assert shop.paged(alert)[1:] == [("alice", 1, 1), ("bob", 1, 2)]
    assert "The alert became more severe. Paging starts with Night." in shop.said(alert)


@pytest.mark.long
def test_an_alert_that_becomes_more_severe_after_the_last_step_starts_again(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert(severity=3)
    shop.pass_time(minutes=30)
    shop.raise_severity(alert, 1)
    shop.pass_time(seconds=1)
    assert shop.paged(alert) == [("alice", 1, 1), ("alice", 1, 1)]


@pytest.mark.long
def test_an_alert_that_becomes_more_severe_between_steps_does_not_start_again(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alert = shop.alert(severity=3)
    shop.pass_time()
    shop.raise_severity(alert, 0)
    shop.pass_time(minutes=5)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
def test_an_acknowledged_alert_that_does_not_become_critical_pages_no_user(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", name="Night", is_default=False)
    shop.route(night, "High", severities=["high"])
    shop.policy("0s user:bob", name="Chat")
    alert = shop.alert(severity=3)
    shop.pass_time(minutes=1)
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.raise_severity(alert, 1)
    shop.pass_time(minutes=10)
    assert shop.paged(alert) == [("bob", 1, 1)]


@pytest.mark.long
def test_an_alert_that_becomes_less_severe_keeps_its_policy(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", "5m user:bob", name="Night", is_default=False)
    shop.route(night, "Critical", severities=["critical"])
    shop.policy("0s user:bob", name="Chat")
    alert = shop.alert()
    shop.pass_time()
    shop.raise_severity(alert, 3)
    shop.pass_time(minutes=5)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


# Failing contacts


@pytest.mark.long
def test_a_failing_contact_is_replaced_by_the_account_s_address(
    shop: Escalated, mailbox: Mailbox, receiver: Receiver
) -> None:
    receiver.answer = lambda _request: (503, {})
    carol = shop.person("carol", has_contact=False)
    chat(shop, receiver, carol)
    shop.policy("0s user:carol", "60m user:bob")
    alert = shop.alert()
    shop.pass_time()
    shop.pass_time(seconds=20)
    assert addressees(mailbox) == ["carol@accounts.example"]
    assert shop.paged(alert) == [("carol", 1, 1)]


@pytest.mark.long
def test_the_next_step_runs_immediately_if_all_contacts_of_a_step_fail(
    shop: Escalated, mailbox: Mailbox, receiver: Receiver
) -> None:
    receiver.answer = lambda _request: (503, {})
    shop.person("maria", role=Role.MAINTAINER)
    carol = shop.person("carol", has_contact=False)
    chat(shop, receiver, carol)
    shop.policy("0s user:carol", "60m user:bob")
    mailbox.recipient_answers.append("550 no such user")
    alert = shop.alert()
    shop.pass_time()
    shop.pass_time(seconds=30)
    shop.pass_time(seconds=30)
    assert shop.paged(alert) == [("carol", 1, 1), ("bob", 1, 2)]
    assert "bob@pager.example" in addressees(mailbox)
    (said,) = [each for each in shop.said(alert) if "reached nobody" in each]
    assert said == (
        "Step 1 of Night reached nobody: no contact accepted the pages, so the next step runs "
        "immediately."
    )
    assert ("page", "carol") in [each[:2] for each in shop.activity(alert)]
    (notice,) = shop.notices()
    assert (notice.recipient, notice.subject) == (
        "maria@accounts.example",
        "Pages of acme/shop were not sent",
    )


@pytest.mark.long
def test_maintainers_are_notified_by_their_own_contacts(
    shop: Escalated, mailbox: Mailbox, receiver: Receiver
) -> None:
    receiver.answer = lambda request: (503 if request.event["topic"] == "carol" else 200, {})
    maria = shop.person("maria", role=Role.MAINTAINER, has_contact=False)
    carol = shop.person("carol", has_contact=False)
    chat(shop, receiver, maria)
    chat(shop, receiver, carol)
    shop.policy("0s user:carol")
    mailbox.recipient_answers.append("550 no such user")
    shop.alert()
    shop.pass_time()
    shop.pass_time(seconds=30)
    told = [each.event["title"] for each in receiver.received if each.event["topic"] == "maria"]
    assert "Pages of acme/shop were not sent" in told


@pytest.mark.long
def test_an_unavailable_mail_server_does_not_delay_steps(shop: Escalated, mailbox: Mailbox) -> None:
    mail_url = shop.settings.mail_url
    shop.policy("0s user:alice", "60m user:bob", repeats=0)
    alert = shop.alert()
    shop.settings = replace(shop.settings, mail_url="smtp://127.0.0.1:1")
    for _ in range(4):
        shop.pass_time(seconds=30)
    # Both users were tried, and the next round starts soon.
    assert {name for name, _, _ in shop.paged(alert)} == {"alice", "bob"}
    assert shop.escalation(alert).state == "running"
    shop.settings = replace(shop.settings, mail_url=mail_url)
    for _ in range(7):
        shop.pass_time(minutes=1)
    assert {"alice@pager.example", "bob@pager.example"} <= set(addressees(mailbox))
    assert shop.escalation(alert).has_reached


@pytest.mark.long
def test_a_user_who_is_locked_before_the_page_is_sent_does_not_delay_steps(shop: Escalated) -> None:
    shop.policy("0s user:alice", "60m user:bob")
    alert = shop.alert()
    shop.follow()
    with shop.session() as session:
        session.execute(update(User).where(User.id == shop.alice.id).values(state="locked"))
    shop.pass_time()
    shop.pass_time(seconds=1)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    assert ("page", "alice", "is not active and was not paged") in shop.activity(alert)


@pytest.mark.long
def test_a_contact_that_is_deleted_before_its_message_is_sent_does_not_delay_steps(
    shop: Escalated, receiver: Receiver
) -> None:
    carol = shop.person("carol", has_contact=False)
    contact = chat(shop, receiver, carol)
    shop.policy("0s user:carol", "60m user:bob")
    alert = shop.alert()
    shop.follow()
    shop.wait(seconds=2)
    with shop.session() as session:
        assert (
            batch_due_pages(build_paging_settings(shop.settings), session=session, now=shop.now)
            == 1
        )
    with shop.session() as session:
        delete_contact(contact.id, ContactOwner(user_id=carol.id), session=session, now=shop.now)
    shop.pass_time(seconds=1)
    assert shop.paged(alert) == [("carol", 1, 1), ("bob", 1, 2)]


def test_the_next_step_runs_although_a_page_has_no_outcome(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "60m user:bob")
    alert = shop.alert()
    shop.follow()
    # No worker sends the pages.
    for _ in range(4):
        shop.wait(seconds=30)
        shop.follow()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


# Flapping alerts


@pytest.mark.long
def test_a_flapping_alert_reaches_all_users_and_continues_to_page(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    start = shop.now
    shop.outage(hours=1.5, severity=1)
    with shop.session() as session:
        names = {user.id: user.username for user in session.query(User)}
    found = [((row.paged_at - start) / MINUTE, names[row.user_id or 0]) for row in shop.pages()]
    first = {name: min(at for at, each in found if each == name) for name in ("alice", "bob")}
    assert first["alice"] == 0
    # The delay is the five minutes of the policy, plus the time while the alert was resolved.
    assert 5 <= first["bob"] <= 7
    times = sorted(at for at, _ in found)
    assert max(later - earlier for earlier, later in pairwise(times)) <= 15
    assert times[-1] >= 75
    # From the seventh opening on the alert is flapping, and most openings page no user.
    assert len([at for at, name in found if name == "alice" and at >= 30]) <= 60 / 10 + 1


def test_a_short_silence_holds_a_flapping_alert(shop: Escalated, mailbox: Mailbox) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    for _ in range(8):
        former = shop.alert(severity=1, fingerprint=b"flaps")
        shop.pass_time(seconds=20)
        with shop.session() as session:
            row = session.get_one(Alert, former)
            row.status, row.ended_at = "resolved", shop.now
        shop.pass_time(seconds=14)
    alert = shop.alert(severity=1, fingerprint=b"flaps")
    shop.pass_time(seconds=20)
    shop.silence('title=~".+"', hours=0.1)
    before = len(mailbox.recipients)
    for _ in range(5):
        shop.pass_time(minutes=1)
    assert mailbox.recipients[before:] == []
    assert shop.escalation(alert).state == "held"
    for _ in range(3):
        shop.pass_time(minutes=1)
    assert "bob@pager.example" in addressees(mailbox)[before:]


@pytest.mark.long
def test_a_critical_alert_pages_at_each_opening(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    opened = shop.outage(hours=1, severity=0)
    assert len(shop.pages()) == len(opened)


@pytest.mark.long
def test_critical_flapping_alerts_are_held_if_the_project_is_configured_so(shop: Escalated) -> None:
    with shop.session() as session:
        settings = FlapSettings(holds_critical=True)
        store_flap_settings(shop.project_id, settings, session=session)
    shop.policy("0s user:alice")
    opened = shop.outage(hours=1, severity=0)
    assert 6 <= len(shop.pages()) < len(opened) - 4


@pytest.mark.long
def test_an_acknowledged_alert_that_recurs_starts_at_the_first_step(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    first = shop.alert(fingerprint=b"disk")
    shop.pass_time(minutes=5)
    shop.act(first, "acknowledged", by=shop.bob)
    shop.resolve([first])
    with shop.session() as session:
        session.get_one(Alert, first).ended_at = shop.now
    shop.pass_time(minutes=1)
    second = shop.alert(fingerprint=b"disk")
    shop.pass_time(seconds=1)
    assert shop.paged(second) == [("alice", 1, 1)]


# Archived projects


@pytest.mark.long
def test_an_archived_project_holds_its_escalations_until_it_is_unarchived(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alert = shop.alert()
    shop.pass_time(minutes=1)
    with shop.session() as session:
        archive_project_row(shop.project_id, session=session, now=shop.now)
    for _ in range(2):
        shop.pass_time(minutes=3)
    assert shop.paged(alert) == [("alice", 1, 1)]
    assert shop.escalation(alert).state == "held"
    with shop.session() as session:
        unarchive_project(shop.project_id, session=session)
    for _ in range(2):
        shop.pass_time(minutes=3)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    assert shop.said(alert)[:2] == [
        "Paging is held back: the project is archived.",
        "Paging continues. It was held back: the project is archived.",
    ]


# Clocks that ran ahead


@pytest.mark.long
def test_a_clock_that_ran_ahead_delays_no_step(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    shop.now += timedelta(hours=1)
    alert = shop.alert()
    shop.pass_time()
    shop.now -= timedelta(hours=1)
    shop.pass_time(seconds=10)
    shop.pass_time(minutes=5)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


# Unanswered alerts


@pytest.mark.long
def test_an_unanswered_escalation_ends_with_a_notice(shop: Escalated, mailbox: Mailbox) -> None:
    shop.person("maria", role=Role.MAINTAINER)
    shop.policy("0s user:alice", "5m user:bob", pause="10m")
    alert = shop.alert()
    shop.pass_time()
    shop.pass_time(minutes=6)
    assert shop.escalation(alert).state == "exhausted"
    assert shop.notices() == []
    shop.pass_time(minutes=10)
    assert shop.escalation(alert).state == "unanswered"
    (notice,) = shop.notices()
    assert notice.subject == "Nobody answered alerts in acme/shop"
    assert shop.said(alert)[-1] == (
        "Nobody answered within 10m after the last step. The maintainers are notified."
    )
    # The notice is sent to her contact as well.
    assert "maria@pager.example" in addressees(mailbox)
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.pass_time()
    assert shop.escalation(alert).state == "stopped"


@pytest.mark.long
def test_maintainers_get_no_notice_if_a_user_answers_in_time(shop: Escalated) -> None:
    shop.person("maria", role=Role.MAINTAINER)
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.pass_time(minutes=1)
    shop.act(alert, "acknowledged", by=shop.alice)
    shop.pass_time(minutes=60)
    assert shop.notices() == []
