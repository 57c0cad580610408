"""Tests that past shifts do not change with rotations and members."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, update

from domain.core.errors import DomainError
from domain.paging.on_call.actions import (
    change_schedule,
    create_schedule,
    delete_schedule,
    list_shifts,
    put_rotation,
    show_balance,
    show_schedule,
)
from domain.paging.on_call.eligibility import record_eligibility_changes
from domain.paging.on_call.overrides_and_swaps import (
    create_override,
    create_swap,
    end_override,
    list_upcoming_overrides,
    list_upcoming_swaps,
    undo_swap,
)
from domain.paging.on_call.shifts import find_users_on_call
from domain.paging.on_call.types import (
    BalanceQuery,
    NewOverride,
    NewRotation,
    NewSchedule,
    NewSwap,
    ScheduleChange,
    ShiftQuery,
)
from models import Member, OnCallEligibility, User
from tests.paging.escalations.test_incident_paging import do
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person
from tests.support.wire.garbage import bounded

pytestmark = pytest.mark.one_database("sqlite")
_ZONES = ("UTC", "Europe/Berlin", "America/New_York")
_DEVELOPER = 30


def record_eligibility(shop: Escalated) -> None:
    """Record who can be on call, as the worker does every few minutes."""
    with shop.session() as session:
        record_eligibility_changes(session=session, now=shop.now, commit_batch=session.flush)


def member(shop: Escalated, person: Person, *, is_one: bool, **more: Any) -> None:
    with shop.session() as session:
        session.execute(delete(Member).where(Member.user_id == person.id))
        if is_one:
            given = {"project_id": shop.project_id, "role": _DEVELOPER, "created_at": shop.now}
            session.add(Member(user_id=person.id, **given, **more))


class History:
    """Makes random changes to a schedule, and records who was on call."""

    def __init__(self, shop: Escalated, people: Sequence[Person], chance: Random) -> None:
        self.shop, self.people, self.chance = shop, people, chance
        self.answers: dict[datetime, tuple[int, ...]] = {}
        given = {"name": f"At {shop.now}", "time_zone": chance.choice(_ZONES)}
        new = NewSchedule.model_validate({**given, "rotations": [self.rotation()]})
        self.id: int = do(shop, create_schedule, new).id

    def rotation(self) -> NewRotation:
        chance = self.chance
        users = [each.username for each in chance.sample(self.people, chance.randint(1, 3))]
        given: dict[str, Any] = {"type": "daily", "users": users}
        given["handover_time"] = f"{chance.randrange(24):02}:00"
        if chance.random() < 0.3:
            given |= {"type": "custom", "every": chance.randint(5, 30), "unit": "hours"}
        if chance.random() < 0.3:
            given["restrictions"] = [{"start_time": "20:00", "end_time": "09:00"}]
        return NewRotation.model_validate(given)

    def time(self, prefix: str = "") -> dict[str, datetime]:
        """Return a period that can be past, current or future."""
        start = self.shop.now + timedelta(hours=self.chance.randint(-9, 30))
        return {f"{prefix}starts_at": start, f"{prefix}ends_at": start + timedelta(hours=8)}

    def change(self) -> None:
        """Make a change, or leave the schedule as it is if the change is rejected."""
        changes = (
            *(self.change_rotation, self.change_rotation, self.change_zone),
            *(self.override, self.override, self.swap, self.undo),
            *(self.come_or_go, self.come_or_go, self.lock_or_unlock),
        )
        with suppress(DomainError):
            self.chance.choice(changes)()

    def change_rotation(self) -> None:
        rotations = do(self.shop, show_schedule, self.id).rotations
        present = self.chance.choice([None, *(each.id for each in rotations)])
        wanted = self.rotation() if present is None or self.chance.random() < 0.7 else None
        do(self.shop, put_rotation, self.id, present, wanted)

    def change_zone(self) -> None:
        change = ScheduleChange.model_validate({"time_zone": self.chance.choice(_ZONES)})
        do(self.shop, change_schedule, self.id, change)

    def override(self) -> None:
        user, other = self.chance.sample(self.people, 2)
        kind: dict[str, Any] = self.chance.choice(
            [{}, {"instead_of": other.username}, {"in_addition": True}],
        )
        new = NewOverride.model_validate({"user": user.username, **self.time(), **kind})
        do(self.shop, create_override, self.id, new)

    def swap(self) -> None:
        user, other = self.chance.sample(self.people, 2)
        given = {"user": user.username, "other_user": other.username}
        times = {**self.time(), **self.time("other_")}
        do(self.shop, create_swap, self.id, NewSwap.model_validate({**given, **times}))

    def undo(self) -> None:
        for ahead, end in (
            (list_upcoming_overrides, end_override),
            (list_upcoming_swaps, undo_swap),
        ):
            if found := do(self.shop, ahead, self.id):
                do(self.shop, end, self.id, self.chance.choice(found).id)

    def come_or_go(self) -> None:
        day = (self.shop.now + timedelta(days=self.chance.randint(1, 2))).date()
        more = self.chance.choice([{}, {"expires_at": day}])
        person = self.chance.choice(self.people)
        member(self.shop, person, is_one=self.chance.random() < 0.6, **more)

    def lock_or_unlock(self) -> None:
        person, state = self.chance.choice(self.people), self.chance.choice(["blocked", "active"])
        with self.shop.session() as session:
            session.execute(update(User).where(User.id == person.id).values(state=state))

    def ask(self) -> None:
        with self.shop.session() as session:
            found = find_users_on_call([self.id], moment=self.shop.now, session=session)
        self.answers[self.shop.now] = tuple(sorted(found[self.id]))

    def answers_later(self) -> dict[datetime, tuple[int, ...]]:
        query = ShiftQuery.model_validate({"from": min(self.answers), "until": self.shop.now})
        shifts = do(
            self.shop, list_shifts, self.id, query.model_copy(update={"per_page": 9999})
        ).items
        return {
            at: tuple(sorted(user.id for user in each.users))
            for at in self.answers
            for each in shifts
            if each.starts_at <= at < each.ends_at
        }


@pytest.mark.long
@given(chance=st.randoms(use_true_random=False), length=st.integers(4, 12))
@bounded(3)
def test_who_was_on_call_does_not_change_afterwards(
    shop: Escalated, chance: Random, length: int
) -> None:
    with shop.session() as session:
        names = {row.username: row.id for row in session.query(User)}
    people = [Person(names[each], each, None) for each in names] + [
        shop.person(each, has_contact=False) for each in ("carol", "dan") if each not in names
    ]
    for person in people:
        member(shop, person, is_one=True)
    with shop.session() as session:
        session.execute(update(User).values(state="active"))
    history = History(shop, people, chance)
    try:
        record_eligibility(shop)
        for _ in range(length):
            for _ in range(chance.randint(1, 6)):
                history.ask()
                shop.now += timedelta(hours=chance.randint(1, 7))
                record_eligibility(shop)
            history.change()
            record_eligibility(shop)
        assert history.answers_later() == history.answers
    finally:
        # A project can have few schedules, and there can be hundreds of examples.
        do(shop, delete_schedule, history.id)
    shop.now += timedelta(hours=1)


@pytest.mark.both_databases
def test_shifts_of_a_former_member_stay_in_calendar_and_balance(shop: Escalated) -> None:
    schedule = shop.schedule("Primary", shop.alice, shop.bob)
    record_eligibility(shop)
    shop.now += timedelta(hours=36)
    query = BalanceQuery.model_validate({"from": shop.now - timedelta(hours=36)})
    before = do(shop, show_balance, schedule, query)
    assert {each.user.username for each in before.users} == {"alice", "bob"}
    for person in (shop.alice, shop.bob):
        member(shop, person, is_one=False)
    record_eligibility(shop)
    assert do(shop, show_balance, schedule, query) == before
    shop.now += timedelta(hours=12)
    query = BalanceQuery.model_validate({"from": shop.now - timedelta(hours=48)})
    after = do(shop, show_balance, schedule, query)
    assert (after.users, after.gap_seconds) == (before.users, 12 * 3600)
    # A membership that started a day ago does not fill the time before it.
    member(shop, shop.alice, is_one=True)
    record_eligibility(shop)
    assert do(shop, show_balance, schedule, query) == after
    assert len(shop.rows(OnCallEligibility)) == 3
