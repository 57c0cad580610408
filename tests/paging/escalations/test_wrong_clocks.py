"""Tests that a clock that ran ahead and was set back delays nothing."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from domain.housekeeping.clock_corrections import (
    correct_future_times,
    count_future_times,
    describe_recent_correction,
)
from domain.paging.notifications.recipients import PagingPreferences, QuietHours, store_preferences
from domain.paging.silences.flapping import store_flap_settings
from domain.paging.silences.types import FlapSettings
from models import Alert, Application, BackchannelSession, Contact, Escalation, Page, PageRecipient
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import subjects
from web.jobs.clock_corrections import ClockCorrectionJob


def correct_times(shop: Escalated) -> None:
    with ClockCorrectionJob(shop.settings, clock=lambda: shop.now) as loop:
        assert loop.process_all_due_work() == 0


def ahead(shop: Escalated) -> dict[str, int]:
    with shop.session() as session:
        return dict(count_future_times(session=session, now=shop.now))


@pytest.mark.long
def test_pages_queued_by_a_clock_ahead_are_sent_after_the_correction(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.wait(hours=1)
    shop.page([shop.alert()], shop.alice)
    shop.wait(hours=-1)
    shop.run_for(2)
    assert mailbox.messages == []
    assert ahead(shop) == {"pages.due_at": 1}
    correct_times(shop)
    shop.run_for(3)
    assert len(mailbox.messages) == 1
    assert ahead(shop) == {}
    with shop.session() as session:
        said = describe_recent_correction(session=session, now=shop.now)
        assert said is not None
        assert "until 2026-03-01 20:00 UTC" in said
        assert (
            describe_recent_correction(session=session, now=shop.now + timedelta(hours=2)) is None
        )


@pytest.mark.long
def test_the_next_steps_of_an_escalation_follow_the_correct_clock(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    shop.wait(hours=1)
    first = shop.alert()
    shop.pass_time()
    shop.wait(hours=-1)
    second = shop.alert()
    correct_times(shop)
    shop.pass_time(seconds=2)
    shop.pass_time(minutes=6)
    assert shop.paged(first) == [("alice", 1, 1), ("bob", 1, 2)]
    assert shop.paged(second) == [("alice", 1, 1), ("bob", 1, 2)]
    assert sorted({each[0] for each in mailbox.recipients}) == [
        "alice@pager.example",
        "bob@pager.example",
    ]
    assert ahead(shop) == {}


@pytest.mark.long
def test_a_step_run_by_a_clock_ahead_does_not_delay_the_next_step(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "10m user:bob", "20m user:alice")
    alert = shop.alert()
    shop.pass_time()
    shop.wait(hours=1)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    shop.wait(hours=-1)
    correct_times(shop)
    shop.pass_time(seconds=1)
    shop.pass_time(minutes=9)
    assert shop.paged(alert)[2:] == []
    shop.pass_time(minutes=2)
    assert shop.paged(alert)[2:] == [("alice", 1, 3)]
    # The corrected times do not delay or hurry anything any more.
    assert ahead(shop) == {}


@pytest.mark.long
def test_a_clock_that_was_a_few_seconds_ahead_delays_no_step(shop: Escalated) -> None:
    shop.policy("0s user:alice", "10m user:bob")
    shop.wait(seconds=20)
    alert = shop.alert()
    shop.pass_time()
    shop.wait(seconds=-20)
    shop.pass_time(seconds=1)
    shop.pass_time(minutes=10)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
def test_an_alert_opened_by_a_clock_ahead_is_not_held_until_that_time(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    with shop.session() as session:
        wanted = FlapSettings(reopen_minutes=10)
        store_flap_settings(shop.project_id, wanted, session=session)
    shop.wait(hours=1)
    former = shop.alert(fingerprint=b"disk")
    shop.pass_time()
    shop.act(former, "acknowledged", by=shop.alice)
    shop.pass_time()
    with shop.session() as session:
        row = session.get_one(Alert, former)
        row.status, row.ended_at = "resolved", shop.now
    # The alert continues the former one, so it pages only after ten minutes.
    alert = shop.alert(fingerprint=b"disk")
    shop.pass_time()
    assert shop.paged(alert) == []
    shop.wait(hours=-1)
    correct_times(shop)
    shop.pass_time(minutes=1)
    shop.pass_time(minutes=10)
    assert shop.paged(alert) == [("alice", 1, 1)]


def test_a_recurring_alert_continues_with_the_correct_clock(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    shop.wait(hours=1)
    former = shop.alert(fingerprint=b"disk")
    shop.pass_time()
    shop.wait(minutes=1)
    with shop.session() as session:
        row = session.get_one(Alert, former)
        row.status, row.ended_at = "resolved", shop.now
    shop.follow()
    shop.wait(hours=-1)
    alert = shop.alert(fingerprint=b"disk")
    shop.follow()
    assert shop.explained(alert).next_step == 2
    next_at = shop.explained(alert).next_at
    assert next_at is not None
    assert timedelta(minutes=3) < next_at - shop.now <= timedelta(minutes=4)


def test_an_alert_is_not_held_for_a_predecessor_ended_by_a_clock_ahead(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice")
    with shop.session() as session:
        store_flap_settings(shop.project_id, FlapSettings(reopen_minutes=10), session=session)
    shop.wait(hours=3)
    former = shop.alert(fingerprint=b"disk")
    shop.follow()
    shop.act(former, "acknowledged", by=shop.alice)
    with shop.session() as session:
        row = session.get_one(Alert, former)
        row.status, row.ended_at = "resolved", shop.now
    shop.follow()
    shop.wait(hours=-1)  # In real time, two hours have passed.
    alert = shop.alert(fingerprint=b"disk")
    shop.follow()
    assert shop.paged(alert) == [("alice", 1, 1)]


@pytest.mark.long
def test_a_contact_that_failed_under_a_clock_ahead_is_retried(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.wait(hours=1)
    shop.page([shop.alert()], shop.alice)
    shop.run_for(3, mail_url="smtp://127.0.0.1:1")
    shop.wait(hours=-1)
    assert "contacts.next_try_at" in ahead(shop)
    correct_times(shop)
    shop.run_for(2)
    assert len(mailbox.messages) == 1


def test_a_claim_made_by_a_clock_ahead_ends(shop: Escalated, mailbox: Mailbox) -> None:
    with shop.session() as session:
        until = shop.now + timedelta(minutes=4)
        session.execute(update(Contact).values(claimed_until=until))
    shop.page([shop.alert()], shop.alice)
    shop.run_for(3)
    assert mailbox.messages == []
    correct_times(shop)
    shop.run_for(2)
    assert len(mailbox.messages) == 1


def test_an_application_is_notified_of_a_sign_in_ended_by_a_clock_ahead(shop: Escalated) -> None:
    with shop.session() as session:
        given = {"uid": "a", "name": "App", "redirect_uris": [], "scopes": ""}
        session.add(Application(id=1, owner_id=shop.alice.id, created_at=shop.now, **given))
        session.flush()
        for sid, hours, tries in (("new", 3, 0), ("tried", 1, 3), ("far", 3, 3)):
            due_at = shop.now + timedelta(hours=hours)
            row = {"application_id": 1, "user_id": shop.alice.id, "sid": sid, "tries": tries}
            session.add(BackchannelSession(due_at=due_at, **row))
    assert ahead(shop) == {"backchannel_sessions.due_at": 2}
    correct_times(shop)
    assert ahead(shop) == {}
    with shop.session() as session:
        due = dict(session.execute(select(BackchannelSession.sid, BackchannelSession.due_at)).all())
    later = shop.now + timedelta(hours=1)
    assert due == {"new": shop.now, "tried": later, "far": shop.now}


@pytest.mark.long
def test_quiet_hours_still_delay_pages(shop: Escalated, mailbox: Mailbox) -> None:
    quiet = QuietHours(time_zone="UTC", starts=19 * 60, ends=23 * 60, lets_critical_through=True)
    with shop.session() as session:
        wanted = PagingPreferences(quiet_hours=quiet)
        store_preferences(shop.alice.id, wanted, session=session, now=shop.now)
    shop.wait(hours=1)
    shop.page([shop.alert("Backup old", severity=4)], shop.alice)
    shop.wait(hours=-1)
    correct_times(shop)
    shop.run_for(60)
    assert mailbox.messages == []
    assert ahead(shop) == {}
    shop.now = shop.now.replace(hour=23, minute=0)
    shop.run_for(3)
    assert subjects(mailbox) == ["[info] Backup old (acme/shop #1)"]


@pytest.mark.long
def test_times_of_a_correct_clock_are_not_changed(shop: Escalated) -> None:
    shop.policy("0s user:alice", "30m user:bob", repeats=2, pause="1d")
    shop.silence('severity="info"', hours=2)
    shop.alert(severity=4)
    shop.alert()
    tables = (Escalation, Page, PageRecipient, Contact)
    for _ in range(10):
        shop.pass_time(minutes=4)
        before = [[vars(row) for row in shop.rows(table)] for table in tables]
        with shop.session() as session:
            assert correct_future_times(session=session, now=shop.now) == {}
        after = [[vars(row) for row in shop.rows(table)] for table in tables]
        for old, new in zip(before, after, strict=True):
            assert [{**row, "_sa_instance_state": 0} for row in old] == [
                {**row, "_sa_instance_state": 0} for row in new
            ]
