"""Tests of follow-up messages after a page, and of pages that quiet hours delay."""

from datetime import UTC, datetime

import pytest

from domain.core.errors import InvalidError
from domain.paging.notifications.batching import UserReachability, find_reachability
from domain.paging.notifications.recipients import (
    PagingPreferences,
    QuietHours,
    parse_minutes_of_day,
    store_preferences,
)
from domain.projects.views import Namespace
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.paging import Pages, Person, subjects

NIGHT = QuietHours(
    time_zone="Europe/Berlin", starts=parse_minutes_of_day("22:00", field=""), ends=7 * 60
)


def prefer(pages: Pages, person: Person, wanted: PagingPreferences) -> None:
    with pages.session() as session:
        store_preferences(person.id, wanted, session=session, now=pages.now)


@pytest.mark.long
def test_a_paged_user_gets_a_follow_up_after_the_alert_is_resolved(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice, alert = pages.person("alice"), pages.alert("Disk full")
    pages.page([alert], alice)
    pages.run_for(3)
    pages.set_status([alert], "resolved")
    pages.run_for(40)
    assert subjects(mailbox) == [
        "[critical] Disk full (acme/shop #1)",
        "Resolved: Disk full (acme/shop #1)",
    ]


@pytest.mark.long
def test_a_user_whose_page_was_not_sent_gets_no_follow_up(pages: Pages, mailbox: Mailbox) -> None:
    alice, alert = pages.person("alice"), pages.alert()
    pages.page([alert], alice)
    pages.run_for(3, mail_url="smtp://127.0.0.1:1")
    pages.set_status([alert], "resolved")
    pages.run_for(60)
    assert mailbox.messages == []


@pytest.mark.long
def test_users_get_no_follow_up_about_their_own_actions(pages: Pages, mailbox: Mailbox) -> None:
    alice, bob, alert = pages.person("alice"), pages.person("bob"), pages.alert("Disk full")
    pages.page([alert], alice, bob)
    pages.run_for(3)
    pages.set_status([alert], "acknowledged", by=alice)
    pages.run_for(40)
    told = [(str(each["To"]), str(each["Subject"])) for each in mailbox.messages[2:]]
    assert told == [("bob@pager.example", "Acknowledged by @alice: Disk full (acme/shop #1)")]


@pytest.mark.long
def test_follow_ups_are_optional_and_batched(pages: Pages, mailbox: Mailbox) -> None:
    alice, bob = pages.person("alice"), pages.person("bob")
    prefer(pages, bob, PagingPreferences(wants_follow_ups=False))
    alerts = pages.alerts(30)
    pages.page(alerts, alice, bob)
    pages.run_for(3)
    pages.set_status(alerts, "resolved")
    pages.run_for(40)
    assert subjects(mailbox)[2:] == [
        "Updates on 30 alerts in acme/shop: Disk full 1 (resolved) and others"
    ]


@pytest.mark.long
def test_no_follow_up_is_sent_if_the_alert_fires_again(pages: Pages, mailbox: Mailbox) -> None:
    alice, alert = pages.person("alice"), pages.alert()
    pages.page([alert], alice)
    pages.run_for(3)
    pages.set_status([alert], "resolved")
    pages.set_status([alert], "triggered")
    pages.run_for(40)
    assert len(mailbox.messages) == 1


@pytest.mark.long
@pytest.mark.spec("J1")
def test_quiet_hours_delay_pages_except_for_critical_alerts(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    prefer(pages, alice, PagingPreferences(quiet_hours=NIGHT))
    pages.now = datetime(2026, 3, 1, 21, 30, tzinfo=UTC)  # 22:30 in Berlin
    quiet, gone = pages.alerts(2, title="Quiet {}", severity=2)
    loud = pages.alert("Loud")
    pages.page([quiet, gone], alice)
    pages.page([loud], alice, is_critical=True)
    pages.run_for(4)
    assert subjects(mailbox) == ["[critical] Loud (acme/shop #3)"]
    pages.set_status([gone, loud], "resolved")
    pages.now = datetime(2026, 3, 2, 5, 59, tzinfo=UTC)
    pages.run()
    assert len(mailbox.messages) == 1
    pages.now = datetime(2026, 3, 2, 6, 0, 5, tzinfo=UTC)
    pages.run()
    assert subjects(mailbox)[1:] == ["[medium] Quiet 1 (acme/shop #1)"]
    # The follow-up was delayed as well, and is part of the same message.
    assert "Resolved: Loud" in mailbox.messages[1].text


@pytest.mark.long
def test_delayed_pages_are_sent_after_quiet_hours_are_removed(
    pages: Pages, mailbox: Mailbox
) -> None:
    alice = pages.person("alice")
    prefer(pages, alice, PagingPreferences(quiet_hours=NIGHT))
    pages.now = datetime(2026, 3, 1, 21, 30, tzinfo=UTC)
    pages.page([pages.alert(severity=2)], alice)
    pages.run_for(40)
    assert mailbox.messages == []
    prefer(pages, alice, PagingPreferences())
    pages.run_for(3)
    assert len(mailbox.messages) == 1


@pytest.mark.parametrize(
    ("local", "end"),
    [
        ("2026-03-01T21:59+01:00", None),
        ("2026-03-01T22:00+01:00", "2026-03-02T07:00+01:00"),
        ("2026-03-02T06:59+01:00", "2026-03-02T07:00+01:00"),
        ("2026-03-02T07:00+01:00", None),
        # The nights in which daylight saving time begins and ends.
        ("2026-03-28T23:00+01:00", "2026-03-29T07:00+02:00"),
        ("2026-10-24T23:00+02:00", "2026-10-25T07:00+01:00"),
    ],
)
def test_quiet_hours_follow_the_local_time(local: str, end: str | None) -> None:
    found = NIGHT.find_end(datetime.fromisoformat(local))
    assert found == (datetime.fromisoformat(end) if end else None)


def test_quiet_hours_can_end_in_a_skipped_or_repeated_hour() -> None:
    hours = QuietHours(time_zone="Europe/Berlin", starts=60, ends=150)
    spring = hours.find_end(datetime.fromisoformat("2026-03-29T01:30+01:00"))
    assert spring == datetime.fromisoformat("2026-03-29T03:30+02:00")
    # This is the second 02:15 of the night, so the hours end at the second 02:30.
    autumn = hours.find_end(datetime.fromisoformat("2026-10-25T02:15+01:00"))
    assert autumn == datetime.fromisoformat("2026-10-25T02:30+01:00")


@pytest.mark.parametrize(
    "text", ["", "24:00", "7", "07:60", "7:5", "a:b", "\u0667:\u0660\u0660", "-1:00"]
)
def test_an_invalid_time_of_day_is_rejected(text: str) -> None:
    with pytest.raises(InvalidError):
        parse_minutes_of_day(text, field="quiet_from")


def test_reachability_of_users_is_known_before_a_page(pages: Pages) -> None:
    alice, bob = pages.person("alice"), pages.person("bob", has_contact=False)
    mallory = pages.person("mallory", role=None)
    night = pages.person("night")
    prefer(
        pages,
        night,
        PagingPreferences(quiet_hours=QuietHours(time_zone="UTC", starts=0, ends=1439)),
    )
    ids = [each.id for each in (alice, bob, mallory, night)]
    with pages.session() as session:

        def ask(*, is_critical: bool, sends_mail: bool) -> list[UserReachability]:
            found = find_reachability(
                [*ids, 9_999],
                Namespace(project_id=pages.project_id, path="acme/shop"),
                is_critical=is_critical,
                sends_mail=sends_mail,
                session=session,
                now=pages.now,
            )
            return list(found.values())

        assert ask(is_critical=False, sends_mail=False) == [
            UserReachability.REACHABLE,
            UserReachability.NO_CONTACT,
            UserReachability.NO_ACCESS,
            UserReachability.QUIET,
            UserReachability.INACTIVE,
        ]
        assert ask(is_critical=True, sends_mail=True) == [
            UserReachability.REACHABLE,
            UserReachability.REACHABLE,
            UserReachability.NO_ACCESS,
            UserReachability.REACHABLE,
            UserReachability.INACTIVE,
        ]
