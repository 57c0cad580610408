"""On-call schedules over weeks: clock changes, swaps, overrides, and users who leave."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select

from domain.access.actor import UnitOfWork
from domain.core.errors import NotFoundError
from domain.core.keyring import Keyring
from domain.housekeeping.pruning import Retention, prune_expired_rows
from domain.paging.on_call.calendar_feeds import find_feed_by_token, renew_feed
from models import Mail, OnCallSchedule
from tests.support.database.work import project_in, user_actor, work_in
from tests.support.mail.stored_texts import decrypt_mails
from tests.support.on_call.nights import PROJECT, Nights, berlin, wire
from tests.support.service.commands import operate
from web.extensions import db
from web.services import get_settings
from web.settings.environment import Settings

Begin = Callable[[str], Nights]


@pytest.fixture
def begin(app: Flask) -> Begin:
    """Starts a story at a local time in Berlin."""
    return lambda text: Nights(app, berlin(text))


@pytest.mark.long
@pytest.mark.spec("J1")
def test_handoffs_on_days_with_clock_changes(begin: Begin) -> None:
    # On Sunday, 25 October 2026, 03:00 becomes 02:00. The handoff is at 02:30.
    night = begin("2026-10-23 12:00")
    night.create("daily alice,bob 02:30 from 2026-10-20")
    night.now = berlin("2026-10-25 02:29", fold=0)
    before = night.on_call()
    night.now = berlin("2026-10-25 02:30", fold=0)
    assert night.on_call() != before
    after = night.on_call()
    # The second 02:30 is no second handoff.
    night.now = berlin("2026-10-25 02:29", fold=1)
    assert night.on_call() == after
    night.now = berlin("2026-10-25 02:30", fold=1)
    assert night.on_call() == after
    told = night.call("alice", "GET", "/current")["now"]
    assert ([each["username"] for each in told["users"]], told["until"]) == (
        after,
        wire(berlin("2026-10-26 02:30")),
    )
    # That turn has 25 hours; in spring a turn has 23 hours and begins at 03:30.
    assert night.shifts(berlin("2026-10-24 12:00"), berlin("2026-10-26 12:00")) == [
        ("Sat 24 Oct 12:00", "Sun 25 Oct 02:30", before),
        ("Sun 25 Oct 02:30", "Mon 26 Oct 02:30", after),
        ("Mon 26 Oct 02:30", "Mon 26 Oct 12:00", before),
    ]
    spring = night.shifts(berlin("2027-03-27 12:00"), berlin("2027-03-29 12:00"))
    assert [each[:2] for each in spring] == [
        ("Sat 27 Mar 12:00", "Sun 28 Mar 03:30"),
        ("Sun 28 Mar 03:30", "Mon 29 Mar 02:30"),
        ("Mon 29 Mar 02:30", "Mon 29 Mar 12:00"),
    ]
    night.now = berlin("2027-03-28 01:59")
    before = night.on_call()
    night.wait(minutes=30)  # It is 03:29.
    assert night.on_call() == before
    night.wait(minutes=1)
    assert night.on_call() != before


@pytest.mark.long
@pytest.mark.spec("J1")
def test_a_week_with_a_night_shift_an_override_and_a_gap(begin: Begin) -> None:
    night = begin("2026-11-23 08:00")
    made = operate(
        night.app,
        *("schedules", "create", PROJECT, "--name", "Shop", "--time-zone", "europe/berlin"),
        *("--rotation", "weekly alice,bob mon 09:00 only mon-fri 09:00-17:00"),
        *("--rotation", "daily carol 17:00 only mon-thu 22:00-06:00"),
    )
    night.schedule = made["id"]
    assert (made["name"], made["time_zone"]) == ("Shop", "Europe/Berlin")
    turns = [[user["username"] for user in each["users"]] for each in made["rotations"]]
    assert turns == [["alice", "bob"], ["carol"]]
    # Even after a restricted rotation has begun, it is possible that no user is on call.
    assert (night.on_call(), night.next()) == ([], ["bob"])
    night.now = berlin("2026-11-23 12:00")
    assert night.shifts(night.now, berlin("2026-11-25 12:00")) == [
        ("Mon 23 Nov 12:00", "Mon 23 Nov 17:00", ["bob"]),
        ("Mon 23 Nov 17:00", "Mon 23 Nov 22:00", []),
        ("Mon 23 Nov 22:00", "Tue 24 Nov 06:00", ["carol"]),
        ("Tue 24 Nov 06:00", "Tue 24 Nov 09:00", []),
        ("Tue 24 Nov 09:00", "Tue 24 Nov 17:00", ["bob"]),
        ("Tue 24 Nov 17:00", "Tue 24 Nov 22:00", []),
        ("Tue 24 Nov 22:00", "Wed 25 Nov 06:00", ["carol"]),
        ("Wed 25 Nov 06:00", "Wed 25 Nov 09:00", []),
        ("Wed 25 Nov 09:00", "Wed 25 Nov 12:00", ["bob"]),
    ]
    # A developer can fill a gap and give away own shifts, but not the shifts of other users.
    mine = {"user": "alice", "starts_at": wire(berlin("2026-11-23 17:00"))}
    gap = {**mine, "ends_at": wire(berlin("2026-11-23 22:00"))}
    assert night.call("alice", "POST", "/overrides", json=gap, status=201)["id"]
    taken = {**mine, "ends_at": wire(berlin("2026-11-23 23:00"))}
    refusal = night.call("alice", "POST", "/overrides", json=taken, status=403)
    assert "You need the Maintainer role" in refusal["message"]
    given = {
        "user": "alice",
        "starts_at": wire(berlin("2026-11-24 09:00")),
        "ends_at": wire(berlin("2026-11-24 17:00")),
    }
    override = night.call("bob", "POST", "/overrides", json=given, status=201)
    assert night.shifts(berlin("2026-11-24 09:00"), berlin("2026-11-24 17:00")) == [
        ("Tue 24 Nov 09:00", "Tue 24 Nov 17:00", ["alice"])
    ]
    # Bob returns in the middle of it: the past stays the same, and the rest is Bob's.
    night.now = berlin("2026-11-24 12:00")
    assert night.on_call() == ["alice"]
    night.call("bob", "DELETE", f"/overrides/{override['id']}", status=204)
    assert night.shifts(berlin("2026-11-24 09:00"), berlin("2026-11-24 17:00")) == [
        ("Tue 24 Nov 09:00", "Tue 24 Nov 12:00", ["alice"]),
        ("Tue 24 Nov 12:00", "Tue 24 Nov 17:00", ["bob"]),
    ]
    over = night.call("bob", "DELETE", f"/overrides/{override['id']}", status=409)
    assert "Past shifts cannot be changed" in str(over)


@pytest.mark.spec("J1")
def test_a_swap_ends_when_one_of_its_users_leaves(begin: Begin) -> None:
    night = begin("2026-11-23 10:00")
    night.create("weekly alice,bob,carol mon 09:00")
    assert (night.on_call(), night.next()) == (["alice"], ["bob"])
    weeks = [berlin(f"2026-{day} 09:00") for day in ("11-23", "11-30", "12-07", "12-14")]
    swap = {
        "user": "alice",
        "starts_at": wire(weeks[0]),
        "ends_at": wire(weeks[1]),
        "other_user": "carol",
        "other_starts_at": wire(weeks[2]),
        "other_ends_at": wire(weeks[3]),
    }
    assert "Maintainer" in str(night.call("bob", "POST", "/swaps", json=swap, status=403))
    wrong = {**swap, "other_user": "bob"}
    assert "bob has no shift" in str(night.call("olga", "POST", "/swaps", json=wrong, status=400))
    made = night.call("olga", "POST", "/swaps", json=swap, status=201)
    # The week has already begun, so only the rest of it is swapped.
    assert made["starts_at"] == wire(night.now)
    assert (night.on_call(), night.next()) == (["carol"], ["bob"])
    assert [users for _, _, users in night.shifts(night.now, weeks[3])] == [
        *(["carol"], ["bob"], ["alice"]),
    ]
    # Carol leaves the project: the swap has no effect, and no user has Carol's own week.
    operate(night.app, "members", "remove", PROJECT, "carol")
    assert night.on_call() == ["alice"]
    assert [users for _, _, users in night.shifts(night.now, weeks[3])] == [
        *(["alice"], ["bob"], ["alice"]),
    ]
    operate(night.app, "members", "add", PROJECT, "carol", "Developer")
    assert night.on_call() == ["carol"]
    # The swap is deleted in the middle: the past stays, the rest is as before.
    night.wait(days=1)
    night.call("carol", "DELETE", f"/swaps/{made['id']}", status=204)
    assert night.shifts(weeks[0], weeks[3]) == [
        ("Mon 23 Nov 09:00", "Mon 23 Nov 10:00", []),  # Before it was created.
        ("Mon 23 Nov 10:00", "Tue 24 Nov 10:00", ["carol"]),
        ("Tue 24 Nov 10:00", "Mon 30 Nov 09:00", ["alice"]),
        ("Mon 30 Nov 09:00", "Mon 07 Dec 09:00", ["bob"]),
        ("Mon 07 Dec 09:00", "Mon 14 Dec 09:00", ["carol"]),
    ]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_locked_former_and_deleted_members_are_not_on_call(begin: Begin) -> None:
    night = begin("2026-11-23 10:00")
    night.create("weekly bob mon 09:00", "weekly alice,carol mon 09:00")
    assert night.on_call() == ["alice"]
    operate(night.app, "users", "lock", "alice")
    assert night.on_call() == ["bob"]  # The layer below is on call.
    operate(night.app, "users", "unlock", "alice")
    operate(night.app, "members", "change", PROJECT, "alice", "Reporter")
    assert night.on_call() == ["bob"]
    operate(night.app, "members", "change", PROJECT, "alice", "Developer")
    assert night.on_call() == ["alice"]
    operate(night.app, "users", "delete", "alice")
    assert night.on_call() == ["bob"]
    shown = night.call("olga", "GET", "/current")
    assert [each["username"] for each in shown["next"]["users"]] == ["carol"]
    # The schedule can be changed without naming its users again.
    before = night.call("olga", "GET")
    body = {"name": "Renamed", "rotations": before["rotations"]}
    after = night.call("olga", "PUT", json=body)
    assert [each["id"] for each in after["rotations"]] == [
        each["id"] for each in before["rotations"]
    ]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_a_change_during_a_shift_keeps_the_past_and_the_current_user(
    begin: Begin,
) -> None:
    night = begin("2026-11-25 12:00")
    night.create("weekly alice,bob mon 09:00 from 2026-11-02")
    assert night.on_call() == ["bob"]
    week, next_week = berlin("2026-11-23 09:00"), berlin("2026-11-30 09:00")
    night.wait(hours=1)
    (rotation,) = night.call("olga", "GET")["rotations"]
    more = {**rotation, "users": ["carol", "alice", "bob"]}
    night.call("olga", "PUT", json={"rotations": [more]})
    assert (night.on_call(), night.next()) == (["bob"], ["carol"])
    # In another time zone, the handoff has the same local time from now on.
    night.wait(hours=1)
    night.call("olga", "PUT", json={"time_zone": "America/New_York"})
    assert (night.on_call(), night.next()) == (["bob"], ["carol"])
    told = night.call("alice", "GET", "/current")["now"]
    assert told["until"] == "2026-11-30T14:00:00.000Z"
    # Other users take over immediately; the past stays the same.
    night.wait(hours=1)
    night.call("olga", "PUT", json={"rotations": [{"type": "daily", "users": ["alice"]}]})
    assert night.on_call() == ["alice"]
    assert night.shifts(berlin("2026-11-25 12:00"), next_week) == [
        ("Wed 25 Nov 12:00", "Wed 25 Nov 13:00", ["bob"]),
        ("Wed 25 Nov 13:00", "Wed 25 Nov 14:00", ["bob"]),
        ("Wed 25 Nov 14:00", "Wed 25 Nov 15:00", ["bob"]),
        ("Wed 25 Nov 15:00", "Mon 30 Nov 09:00", ["alice"]),
    ]
    # Before it was created, no user was on call.
    assert night.shifts(week, berlin("2026-11-25 12:00"))[0][2] == []


@pytest.mark.long
def test_past_shifts_are_available_for_four_hundred_days(begin: Begin) -> None:
    night = begin("2026-11-23 10:00")
    night.create("weekly alice mon 09:00")
    start, end = night.now + timedelta(hours=1), night.now + timedelta(hours=2)
    body = {"user": "bob", "starts_at": wire(start), "ends_at": wire(end)}
    night.call("olga", "POST", "/overrides", json=body, status=201)
    night.wait(hours=3)
    night.call("olga", "PUT", json={"rotations": [{"users": ["carol"]}]})

    def told() -> list[list[str]]:
        return [users for _, _, users in night.shifts(start, end + timedelta(hours=2))]

    def forget() -> None:
        kept = Retention(keep_deliveries=10, keep_for=timedelta(days=1))
        with night.app.app_context():
            session = db.session()
            prune_expired_rows(kept, session=session, now=night.now, commit_batch=session.commit)
            session.commit()
        night.give_token("alice")

    night.wait(days=399)
    forget()
    assert told() == [["bob"], ["alice"], ["carol"]]
    night.wait(days=2)
    forget()
    assert told() == [[], ["carol"]]


@pytest.mark.long
def test_a_calendar_url_stays_valid_after_a_change_of_the_secret_key(begin: Begin) -> None:
    night = begin("2026-11-23 10:00")
    schedule = night.create("weekly alice mon 09:00")
    alice = next(number for number, name in night.names.items() if name == "alice")
    with night.app.app_context():
        session = db.session()
        project_id = session.get_one(OnCallSchedule, schedule).project_id
        assert project_id is not None
        project = project_in(session, project_id)

        def holding(*keys: str) -> UnitOfWork:
            policies: Any = {Keyring: Keyring(*keys)}
            actor = user_actor(alice, "alice")
            return replace(
                work_in(session, actor=actor, now=night.now), policy=policies.__getitem__
            )

        token = renew_feed(holding("old"), project, schedule)
        with pytest.raises(NotFoundError):
            find_feed_by_token(holding("new"), token)
        assert find_feed_by_token(holding("new", "old"), token).user_id == alice
        session.expire_all()
        opened = find_feed_by_token(holding("new"), token)
        assert [found.id for _, found in opened.schedules] == [schedule]
        session.rollback()


@pytest.mark.long
def test_other_users_of_a_swap_get_an_email(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    app = make_app(replace(settings, mail_url="smtp://127.0.0.1:1"))
    night = Nights(app, berlin("2026-11-23 10:00"))
    night.create("weekly alice,bob mon 09:00")
    swap = {
        "user": "alice",
        "starts_at": wire(berlin("2026-12-07 09:00")),
        "ends_at": wire(berlin("2026-12-08 09:00")),
        "other_user": "bob",
        "other_starts_at": wire(berlin("2026-11-30 09:00")),
        "other_ends_at": wire(berlin("2026-12-01 09:00")),
    }
    asked = night.call("alice", "POST", "/swap_requests", json=swap, status=201)
    (told,) = mails(night)
    assert (told.recipient, told.subject) == (
        "bob@people.example",
        "A swap of on-call shifts was requested: Primary of acme/shop",
    )
    assert "alice asks you to swap shifts:" in told.text
    theirs = "from Mon 2026-12-07 09:00 until Tue 2026-12-08 09:00"
    assert f"- You would be on call {theirs}, instead of alice." in told.text
    assert f"http://localhost/acme/shop/-/on_call/schedules/{night.schedule}\n" in told.text
    why = "You receive this message because you are part of a swap request.\n"
    assert why in told.text
    path = f"/swap_requests/{asked['id']}/answer"
    night.call("bob", "POST", path, json={"answer": "accept"}, status=201)
    accepted = mails(night)[1]
    assert accepted.recipient == "alice@people.example"
    assert "bob accepted the swap of shifts. You are on call from Mon 2026-11-30" in accepted.text
    (made,) = night.call("alice", "GET", "/swaps")
    # A maintainer of the project deletes it, and both users get an email.
    night.call("olga", "DELETE", f"/swaps/{made['id']}", status=204)
    assert sorted(each.recipient for each in mails(night)[2:]) == [
        "alice@people.example",
        "bob@people.example",
    ]
    override = {
        "user": "carol",
        "starts_at": swap["starts_at"],
        "ends_at": swap["ends_at"],
    }
    night.call("olga", "POST", "/overrides", json=override, status=201)
    assert mails(night)[4].recipient == "carol@people.example"


@pytest.mark.long
def test_a_user_gets_emails_when_an_override_takes_and_returns_a_shift(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    app = make_app(replace(settings, mail_url="smtp://127.0.0.1:1"))
    night = Nights(app, berlin("2026-11-23 10:00"))
    night.create("weekly alice,bob mon 09:00")
    (on_call,) = night.on_call()
    override = {
        "user": "carol",
        "starts_at": wire(berlin("2026-11-24 09:00")),
        "ends_at": wire(berlin("2026-11-25 09:00")),
    }
    made = night.call("olga", "POST", "/overrides", json=override, status=201)
    put, taken = mails(night)
    assert put.recipient == "carol@people.example"
    assert (taken.recipient, taken.subject) == (
        f"{on_call}@people.example",
        "Your on-call shift was taken over: Primary of acme/shop",
    )
    when = "from Tue 2026-11-24 09:00 until Wed 2026-11-25 09:00"
    assert f"olga put carol on call {when}, instead of everybody else." in taken.text
    assert "You are no longer on call in this period." in " ".join(taken.text.split())
    # The override has begun: the rest of the shift returns to its user.
    night.now = berlin("2026-11-24 12:00")
    night.call("olga", "DELETE", f"/overrides/{made['id']}", status=204)
    _, back = mails(night)[2:]
    assert (back.recipient, back.subject) == (
        f"{on_call}@people.example",
        "You are on call again: Primary of acme/shop",
    )
    # Users who give away their own shift get no email.
    override |= {"starts_at": wire(berlin("2026-11-26 09:00"))}
    override |= {"ends_at": wire(berlin("2026-11-26 12:00"))}
    night.call(on_call, "POST", "/overrides", json=override, status=201)
    assert [each.recipient for each in mails(night)[4:]] == ["carol@people.example"]


def mails(night: Nights) -> list[Mail]:
    with night.app.app_context():
        about = Mail.subject.contains(f" of {PROJECT}")
        found = list(db.session.scalars(select(Mail).where(about).order_by(Mail.id)))
        db.session.expunge_all()
        db.session.rollback()
        return decrypt_mails(found, get_settings().secret_key)
