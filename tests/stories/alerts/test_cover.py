"""Covers of a colleague: only the colleague's shifts, in every schedule, with an email."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask import Flask

from tests.stories.alerts.test_on_call import mails
from tests.support.on_call.nights import BERLIN, PROJECT, Nights, berlin, wire
from tests.support.service.commands import operate
from web.settings.environment import Settings

pytestmark = pytest.mark.spec("J1")


def own(night: Nights, name: str, method: str, path: str = "", **sent: Any) -> tuple[int, Any]:
    """Call the API of a user's own shifts."""
    answer = night.app.test_client().open(
        f"/api/v4/user/on_call{path}",
        method=method,
        headers={"PRIVATE-TOKEN": night.tokens[name]},
        **sent,
    )
    return answer.status_code, answer.get_json()


def between(start: str, end: str) -> dict[str, str]:
    return {"starts_at": wire(berlin(start)), "ends_at": wire(berlin(end))}


def clock(moment: datetime) -> str:
    """Return a time in the time zone of Berlin, in the format of `Nights.shifts`."""
    return f"{moment.astimezone(BERLIN):%a %d %b %H:%M}"


def balance(
    night: Nights, start: datetime | None = None, end: datetime | None = None
) -> tuple[dict[str, int], int]:
    """Return the hours of each user, and the hours in which no user was on call."""
    asked = {"from": wire(start), "until": wire(end)} if start and end else {}
    found = night.call("alice", "GET", "/balance", query_string=asked)
    # Gaps belong to no user's share.
    assert not found["users"] or round(sum(each["share"] for each in found["users"]), 3) == 1
    hours = {each["user"]["username"]: each["seconds"] // 3600 for each in found["users"]}
    return hours, found["gap_seconds"] // 3600


@pytest.mark.long
@pytest.mark.both_databases
def test_a_cover_moves_only_the_shifts_of_one_user_in_all_schedules(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    night = Nights(
        make_app(replace(settings, mail_url="smtp://127.0.0.1:1")), berlin("2026-11-23 10:00")
    )
    # Alice has the week, and during the day Bob is on call in addition.
    second = night.create("weekly alice,carol mon 09:00 from 2026-11-23", name="Second")
    first = night.create(
        "weekly alice,carol mon 09:00 from 2026-11-23 layer 1",
        "daily bob 09:00 layer 1 only mon-fri 09:00-17:00",
    )
    week = between("2026-11-24 12:00", "2026-11-25 12:00")
    status, seen = own(night, "alice", "GET", "/cover", query_string={**week, "user": "carol"})
    assert (status, [each["schedule_id"] for each in seen["schedules"]]) == (200, [first, second])
    assert [each["turns"][0]["shifts"] for each in seen["schedules"]] == [[week], [week]]
    assert night.call("alice", "GET", "/overrides") == []
    status, made = own(night, "alice", "POST", "/cover", json={**week, "user": "carol"})
    assert (status, made) == (201, seen)
    assert night.shifts(berlin("2026-11-24 09:00"), berlin("2026-11-25 18:00")) == [
        ("Tue 24 Nov 09:00", "Tue 24 Nov 12:00", ["alice", "bob"]),
        ("Tue 24 Nov 12:00", "Tue 24 Nov 17:00", ["bob", "carol"]),
        ("Tue 24 Nov 17:00", "Wed 25 Nov 09:00", ["carol"]),
        ("Wed 25 Nov 09:00", "Wed 25 Nov 12:00", ["bob", "carol"]),
        ("Wed 25 Nov 12:00", "Wed 25 Nov 17:00", ["alice", "bob"]),
        ("Wed 25 Nov 17:00", "Wed 25 Nov 18:00", ["alice"]),
    ]
    # Carol gets an email for each schedule with the shifts; Alice did it, and Bob's shifts are the
    # same.
    told = mails(night)
    assert [each.recipient for each in told] == ["carol@people.example"] * 2
    assert "from Tue 2026-11-24 12:00 until Wed 2026-11-25 12:00" in told[0].text
    assert "for the shifts of alice" in " ".join(told[0].text.split())
    # A cover can be covered too; the later cover counts.
    operate(
        night.app,
        *("on-call", "cover", "carol", "--user", "bob", "--schedule", str(first)),
        *("--from", wire(berlin("2026-11-24 17:00")), "--until", wire(berlin("2026-11-25 09:00"))),
    )
    night.now = berlin("2026-11-24 23:00")
    assert night.on_call() == ["bob"]
    assert len(night.call("alice", "GET", "/overrides")) == 2
    assert sorted(each.recipient for each in mails(night)[2:]) == [
        "bob@people.example",
        "carol@people.example",
    ]


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_cover_requires_shifts_and_a_user_who_can_be_on_call(app: Flask) -> None:
    night = Nights(app, berlin("2026-11-23 10:00"))
    night.create("weekly alice,carol mon 09:00 from 2026-11-23")
    operate(app, "users", "create", "guest", "--email", "guest@people.example")
    week = between("2026-11-24 09:00", "2026-11-25 09:00")
    for name, body, word in (
        ("bob", {**week, "user": "alice"}, "You have no shifts in this period."),
        ("alice", {**week, "user": "alice"}, "Users cannot cover their own shifts"),
        ("alice", {**week, "user": "guest"}, "Primary of acme/shop: guest cannot be on call"),
        ("alice", {**week, "user": "bob", "schedules": [999]}, "You have no shifts"),
        ("alice", {**week, "user": "bob", "ends_at": week["starts_at"]}, "after the start"),
    ):
        status, said = own(night, name, "POST", "/cover", json=body)
        assert (status, word in str(said)) == (400, True), said
    # Only maintainers can arrange covers of other users.
    theirs = {**week, "user": "bob", "instead_of": "alice"}
    refusal = night.call("carol", "POST", "/overrides", json=theirs, status=403)
    assert "You need the Maintainer role" in refusal["message"]
    made = night.call("olga", "POST", "/overrides", json=theirs, status=201)
    assert (made["user"]["username"], made["instead_of"]["username"]) == ("bob", "alice")
    nobody = night.call(
        "olga", "POST", "/overrides", json={**theirs, "instead_of": "carol"}, status=400
    )
    assert "carol is not on call in this period." in str(nobody)
    # Users who left the project keep their place in the rotation, but cannot see it.
    assert len(own(night, "carol", "GET")[1]["schedules"]) == 1
    operate(app, "members", "remove", PROJECT, "carol")
    assert own(night, "carol", "GET")[1]["schedules"] == []


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_user_can_be_on_call_in_addition_and_each_users_time_counts(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    app = make_app(replace(settings, mail_url="smtp://127.0.0.1:1"))
    night = Nights(app, berlin("2026-11-23 10:00"))
    night.create("daily alice 09:00 from 2026-11-23")
    help_out = {**between("2026-11-24 09:00", "2026-11-24 15:00"), "in_addition": True}
    # A developer may add users only while on call, also in addition to others.
    theirs = {**help_out, "user": "carol"}
    refusal = night.call("bob", "POST", "/overrides", json=theirs, status=403)
    assert "You need the Maintainer role" in refusal["message"]
    both = {**help_out, "user": "bob", "instead_of": "alice"}
    refusal = night.call("bob", "POST", "/overrides", json=both, status=400)
    assert "An override can replace a user or" in str(refusal)
    made = night.call("bob", "POST", "/overrides", json={**help_out, "user": "bob"}, status=201)
    assert (made["in_addition"], made["instead_of"]) == (True, None)
    longer = {**theirs, "ends_at": wire(berlin("2026-11-24 18:00"))}
    refusal = night.call("bob", "POST", "/overrides", json=longer, status=403)
    assert "You need the Maintainer role" in refusal["message"]
    alone = {**theirs, "in_addition": False}
    refusal = night.call("alice", "POST", "/overrides", json=alone, status=403)
    assert "You need the Maintainer role" in refusal["message"]
    night.call("alice", "POST", "/overrides", json=theirs, status=201)
    day = berlin("2026-11-24 00:00"), berlin("2026-11-25 00:00")
    assert night.shifts(*day) == [
        ("Tue 24 Nov 00:00", "Tue 24 Nov 09:00", ["alice"]),
        ("Tue 24 Nov 09:00", "Tue 24 Nov 15:00", ["alice", "bob", "carol"]),
        ("Tue 24 Nov 15:00", "Wed 25 Nov 00:00", ["alice"]),
    ]
    # Only Carol gets an email, since no user lost a shift.
    (told,) = mails(night)
    assert told.recipient == "carol@people.example"
    assert "in addition to other users" in " ".join(told.text.split())
    assert balance(night, *day) == ({"alice": 24, "bob": 6, "carol": 6}, 0)
    asked = {"from": wire(day[0]), "until": wire(day[1])}
    users = night.call("bob", "GET", "/balance", query_string=asked)["users"]
    assert [each["share"] for each in users] == [0.6667, 0.1667, 0.1667]
    # Before the schedule was created, no user could be on call.
    last = operate(app, "schedules", "balance", PROJECT, str(night.schedule))
    assert (last["users"], last["gap_seconds"]) == ([], 0)


@pytest.mark.both_databases
def test_additional_time_is_real_time_when_clocks_change(app: Flask) -> None:
    night = Nights(app, berlin("2026-10-20 10:00"))
    night.create("daily alice 09:00 from 2026-10-20")
    for day, (hours, whole) in {"2026-10-25": (5, 25), "2027-03-28": (3, 23)}.items():
        start = berlin(f"{day} 00:00")
        end = start + timedelta(hours=whole)
        help_out = between(f"{day} 01:00", f"{day} 05:00")
        made = night.call(
            "bob",
            "POST",
            "/overrides",
            json={**help_out, "user": "bob", "in_addition": True},
            status=201,
        )
        assert {each: made[each] for each in help_out} == help_out
        assert night.shifts(start, end) == [
            (clock(start), clock(berlin(f"{day} 01:00")), ["alice"]),
            (clock(berlin(f"{day} 01:00")), clock(berlin(f"{day} 05:00")), ["alice", "bob"]),
            (clock(berlin(f"{day} 05:00")), clock(end), ["alice"]),
        ]
        assert balance(night, start, end) == ({"alice": whole, "bob": hours}, 0)
    # Both users are on call in both hours that have the same local time; before, only Alice is.
    for moment, names in (
        (berlin("2026-10-25 00:59"), ["alice"]),
        (berlin("2026-10-25 02:30"), ["alice", "bob"]),
        (berlin("2026-10-25 02:30", fold=1), ["alice", "bob"]),
        (berlin("2026-10-25 05:00"), ["alice"]),
    ):
        night.now = moment
        assert night.on_call() == names


@pytest.mark.long
@pytest.mark.both_databases
def test_time_in_a_rotation_that_was_deleted_counts_until_then(app: Flask) -> None:
    night = Nights(app, berlin("2026-11-23 09:00"))
    night.create(
        "daily alice 09:00 from 2026-11-23 layer 1", "daily bob 09:00 from 2026-11-23 layer 1"
    )
    begin = night.now
    night.wait(days=2)
    kept = ["daily alice 09:00 from 2026-11-23 layer 1"]
    night.call("olga", "PUT", json={"rotations": kept})
    night.wait(days=1)
    assert balance(night, begin, night.now) == ({"alice": 72, "bob": 48}, 0)
    night.call("olga", "PUT", json={"rotations": []})
    night.wait(days=1)
    assert balance(night, begin, night.now) == ({"alice": 72, "bob": 48}, 24)
    # The default period is the last four weeks; the time before the schedule is no gap.
    assert balance(night) == ({"alice": 72, "bob": 48}, 24)


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_turn_of_several_nights_is_swapped_as_a_whole(app: Flask) -> None:
    night = Nights(app, berlin("2026-11-23 10:00"))
    night.create(
        "weekly alice,carol mon 09:00 from 2026-11-23",
        "daily bob 09:00 layer 2 only mon-fri 09:00-17:00",
    )
    _, shown = own(night, "alice", "GET", query_string={"weeks": 3})
    (schedule,) = shown["schedules"]
    assert (schedule["project_path"], shown["alerts"]) == ("acme/shop", [])
    turns = schedule["turns"]
    assert [(each["starts_at"], each["ends_at"], len(each["shifts"])) for each in turns] == [
        (wire(berlin("2026-11-23 17:00")), wire(berlin("2026-11-30 09:00")), 5),
        (wire(berlin("2026-12-07 17:00")), wire(berlin("2026-12-14 09:00")), 5),
    ]
    _, hers = own(night, "carol", "GET", query_string={"weeks": 2})
    (theirs,) = hers["schedules"][0]["turns"]
    swap = {
        "user": "alice",
        "starts_at": turns[0]["starts_at"],
        "ends_at": turns[0]["ends_at"],
        "other_user": "carol",
        "other_starts_at": theirs["starts_at"],
        "other_ends_at": theirs["ends_at"],
    }
    night.call("olga", "POST", "/swaps", json=swap, status=201)
    night.now = berlin("2026-11-25 12:00")
    assert night.on_call() == ["bob"]
    night.now = berlin("2026-11-25 22:00")
    assert night.on_call() == ["carol"]
    night.now = berlin("2026-12-02 22:00")
    assert night.on_call() == ["alice"]
    # A turn that begins within the period is shown to its end.
    _, shown = own(night, "alice", "GET", query_string={"weeks": 1})
    assert shown["schedules"][0]["turns"][-1]["ends_at"] == wire(berlin("2026-12-14 09:00"))
