"""Notices about conflicts between shifts and absences, each sent once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import SQLAlchemyError

from domain.access.actor import AccessMethod, Actor
from domain.access.roles import Role
from domain.core.types.pagination import OffsetQuery
from domain.paging.on_call.absences.actions import create_absence
from domain.paging.on_call.absences.conflicts import list_conflicts
from domain.paging.on_call.absences.types import NewAbsence
from domain.paging.on_call.actions import delete_schedule
from domain.paging.on_call.overrides_and_swaps import create_override
from domain.paging.on_call.types import NewOverride
from models import Mail, OnCallAbsence, OnCallConflictNotice, User
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person
from web.jobs.on_call_calendars import queue_conflict_mail

DAY = timedelta(days=1)


@pytest.fixture
def schedule(shop: Escalated) -> int:
    """Create a maintainer, and a schedule in which Alice and Bob take daily turns."""
    shop.person("maria", role=Role.MAINTAINER)
    return shop.schedule("Primary", shop.alice, shop.bob)


def check(shop: Escalated, after: timedelta = timedelta(minutes=10)) -> list[tuple[str, str, str]]:
    """Queue the notices that are due, and return their recipients, subjects and texts."""
    shop.now += after
    before = len(shop.rows(Mail))
    queue_conflict_mail(shop.settings, clock=lambda: shop.now)
    new: list[Mail] = shop.rows(Mail)[before:]
    return [(each.recipient.partition("@")[0], each.subject, each.text) for each in new]


def be_absent(shop: Escalated, person: Person, start: float, end: float) -> None:
    """Add an absence that starts and ends a number of days from now."""
    new = NewAbsence(starts_at=shop.now + DAY * start, ends_at=shop.now + DAY * end)
    with shop.session() as session:
        work = shop.work(session)
        actor = Actor(means=AccessMethod.PAGE, id=person.id, name=person.username)
        create_absence(replace(work, actor=actor), new)


def conflicts(shop: Escalated, schedule: int) -> int:
    with shop.session() as session:
        work, project = shop.work(session), shop.project_view(session)
        return len(list_conflicts(work, project, schedule, OffsetQuery()).items)


def override(shop: Escalated, schedule: int, start: float, end: float) -> None:
    new = NewOverride(
        user="bob",
        instead_of="alice",
        starts_at=shop.now + DAY * start,
        ends_at=shop.now + DAY * end,
    )
    with shop.session() as session:
        create_override(shop.work(session), shop.project_view(session), schedule, new)


def test_user_and_maintainers_are_notified_once_and_reminded_a_day_before(
    shop: Escalated, schedule: int
) -> None:
    assert check(shop) == []
    # Overlapping absences are one absence.
    be_absent(shop, shop.alice, 3.2, 6.1)
    be_absent(shop, shop.alice, 5, 7.1)
    to_alice, to_maria = check(shop)
    assert to_alice[:2] == ("alice", "Absent while on call: Primary of acme/shop")
    assert "You are on call and marked as absent:" in to_alice[2]
    assert "Absent users are still paged." in to_alice[2]
    count = to_alice[2].count("- Alice: from ")
    assert count == conflicts(shop, schedule) == 2
    assert to_maria[:2] == ("maria", "Absent while on call: Primary of acme/shop")
    assert to_maria[2].count("- Alice: from ") == count
    assert "http://localhost/acme/shop/-/on_call/schedules/" in to_maria[2]
    assert [check(shop) for _ in range(3)] == [[], [], []]
    assert check(shop, DAY) == []
    reminders = [check(shop, timedelta(hours=6)) for _ in range(26)]
    named = [(who, subject.partition(":")[0]) for some in reminders for who, subject, _ in some]
    assert named == [("alice", "Reminder"), ("maria", "Reminder")] * 2
    # The conflicts are over.
    assert conflicts(shop, schedule) == len(shop.rows(OnCallConflictNotice)) == 0


def test_a_conflict_that_starts_within_a_day_needs_no_reminder(
    shop: Escalated, schedule: int
) -> None:
    be_absent(shop, shop.alice, 0, 1)
    assert len(check(shop)) == 2
    assert [check(shop, timedelta(hours=2)) for _ in range(4)] == [[]] * 4
    assert conflicts(shop, schedule) > 0


def test_a_distant_conflict_is_reported_two_weeks_before(shop: Escalated, schedule: int) -> None:
    be_absent(shop, shop.alice, 20, 24)
    assert check(shop) == []
    assert conflicts(shop, schedule) == 3
    days = [len(check(shop, DAY)) for _ in range(12)]
    # Each of the three turns is reported when it is two weeks away.
    assert sum(days) == 6


def test_an_override_solves_a_conflict_and_can_cause_another(
    shop: Escalated, schedule: int
) -> None:
    be_absent(shop, shop.alice, 3, 5)
    assert len(check(shop)) == 2
    override(shop, schedule, 2.5, 5.5)
    assert conflicts(shop, schedule) == 0
    assert check(shop) == []
    assert shop.rows(OnCallConflictNotice) == []
    be_absent(shop, shop.bob, 3, 5)
    assert {who for who, _, _ in check(shop)} == {"bob", "maria"}


def test_an_absence_after_one_that_was_shortened_is_reported(shop: Escalated) -> None:
    shop.schedule("Primary", shop.alice)
    be_absent(shop, shop.alice, 3, 10)
    assert len(check(shop)) == 1
    with shop.session() as session:
        session.execute(delete(OnCallAbsence))
    be_absent(shop, shop.alice, 3, 4)
    assert check(shop) == []
    be_absent(shop, shop.alice, 8, 9)
    assert len(check(shop)) == 1


def test_an_absent_maintainer_is_told_about_all_conflicts(shop: Escalated) -> None:
    maria = shop.person("maria", role=Role.MAINTAINER)
    shop.schedule("Primary", shop.alice, maria)
    be_absent(shop, shop.alice, 3, 5)
    be_absent(shop, maria, 3, 5)
    texts = {who: text for who, _, text in check(shop)}
    assert "- Alice: from " in texts["maria"]
    assert "- Maria: from " in texts["maria"]
    assert "- Maria: from " not in texts["alice"]


def test_nothing_is_sent_after_an_absence_or_schedule_was_removed(
    shop: Escalated, schedule: int
) -> None:
    be_absent(shop, shop.alice, 3, 5)
    assert len(check(shop)) == 2
    with shop.session() as session:
        session.execute(delete(OnCallAbsence))
    assert [check(shop, DAY / 2) for _ in range(6)] == [[]] * 6
    be_absent(shop, shop.alice, 3, 5)
    with shop.session() as session:
        delete_schedule(shop.work(session), shop.project_view(session), schedule)
    assert check(shop) == []


def test_a_blocked_user_has_no_conflicts(shop: Escalated, schedule: int) -> None:
    be_absent(shop, shop.alice, 3, 5)
    with shop.session() as session:
        session.execute(update(User).where(User.id == shop.alice.id).values(state="blocked"))
    assert check(shop) == []
    assert conflicts(shop, schedule) == 0


def test_a_swap_moves_a_conflict_away(shop: Escalated, schedule: int) -> None:
    # Alice is on call for the first hour after the time of the test, and Bob a day later.
    be_absent(shop, shop.alice, 2, 2 + 1 / 24)
    before = conflicts(shop, schedule)
    shop.swap(schedule, (shop.alice, 48), (shop.bob, 24))
    assert (before, conflicts(shop, schedule)) == (1, 0)


def test_two_workers_send_each_notice_once(shop: Escalated, schedule: int) -> None:
    be_absent(shop, shop.alice, 3, 5)

    def queue() -> None:
        # The worker that is second retries later.
        with suppress(SQLAlchemyError):
            queue_conflict_mail(shop.settings, clock=lambda: shop.now)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(queue) for _ in range(2)]:
            done.result()
    assert len(shop.rows(Mail)) == 2
    assert check(shop) == []
    assert len(shop.rows(OnCallConflictNotice)) == conflicts(shop, schedule)
