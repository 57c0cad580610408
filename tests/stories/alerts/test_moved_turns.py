"""Swaps and overrides follow their turns when a rotation changes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask

from tests.stories.alerts.test_on_call import mails
from tests.support.on_call.nights import Nights, berlin, wire
from web.settings.environment import Settings

pytestmark = pytest.mark.both_databases


@pytest.fixture
def night(settings: Settings, make_app: Callable[[Settings], Flask]) -> Nights:
    """A Monday noon in a daily rotation of Alice, Bob and Carol, with a handoff at nine."""
    app = make_app(replace(settings, mail_url="smtp://127.0.0.1:1"))
    made = Nights(app, berlin("2026-11-23 12:00"))
    made.create("daily alice,bob,carol 09:00 from 2026-11-23")
    return made


def turn(day: int) -> tuple[str, str]:
    return wire(berlin(f"2026-11-{day} 09:00")), wire(berlin(f"2026-11-{day + 1} 09:00"))


def swap(night: Nights) -> Any:
    """Swap the Tuesday of Bob and the Wednesday of Carol."""
    (starts_at, ends_at), (other_starts_at, other_ends_at) = turn(24), turn(25)
    given = {
        "user": "bob",
        "starts_at": starts_at,
        "ends_at": ends_at,
        "other_user": "carol",
        "other_starts_at": other_starts_at,
        "other_ends_at": other_ends_at,
    }
    return night.call("olga", "POST", "/swaps", json=given, status=201)


def change(night: Nights, *rotations: str, zone: str = "Europe/Berlin") -> None:
    given = {"rotations": list(rotations), "time_zone": zone}
    night.call("olga", "PUT", json=given)


def shifts(night: Nights) -> list[tuple[str, str, list[str]]]:
    return night.shifts(berlin("2026-11-24 08:00"), berlin("2026-11-26 12:00"))


def subjects(night: Nights) -> list[tuple[str, str]]:
    return sorted((each.recipient.partition("@")[0], each.subject) for each in mails(night))


def test_a_swap_follows_its_turns_when_the_handoff_moves(night: Nights) -> None:
    made = swap(night)
    change(night, "daily alice,bob,carol 10:00 from 2026-11-23")
    assert shifts(night) == [
        ("Tue 24 Nov 08:00", "Tue 24 Nov 10:00", ["alice"]),
        ("Tue 24 Nov 10:00", "Wed 25 Nov 10:00", ["carol"]),
        ("Wed 25 Nov 10:00", "Thu 26 Nov 10:00", ["bob"]),
        ("Thu 26 Nov 10:00", "Thu 26 Nov 12:00", ["alice"]),
    ]
    moved = night.call("bob", "GET", f"/swaps/{made['id']}")
    assert moved["starts_at"] == wire(berlin("2026-11-24 10:00"))
    told = subjects(night)
    assert [name for name, subject in told if "was moved" in subject] == ["bob", "carol"]


def test_a_swap_follows_another_time_zone(night: Nights) -> None:
    made = swap(night)
    change(night, "daily alice,bob,carol 09:00 from 2026-11-23", zone="UTC")
    moved = night.call("bob", "GET", f"/swaps/{made['id']}")
    assert (moved["starts_at"], moved["other_ends_at"]) == (
        wire(berlin("2026-11-24 10:00")),
        wire(berlin("2026-11-26 10:00")),
    )


@pytest.mark.parametrize("rotations", [("daily alice,carol,bob 09:00 from 2026-11-23",), ()])
def test_a_swap_ends_when_its_turns_are_gone(night: Nights, rotations: tuple[str, ...]) -> None:
    made = swap(night)
    change(night, *rotations)
    night.call("bob", "GET", f"/swaps/{made['id']}", status=404)
    ended = [name for name, subject in subjects(night) if "has ended" in subject]
    assert ended == ["bob", "carol"]
    (text, _) = [each.text for each in mails(night) if "has ended" in each.subject]
    assert "no longer exist, so the swap has ended" in " ".join(text.split())


def test_a_change_of_another_rotation_does_not_affect_swaps(night: Nights) -> None:
    made = swap(night)
    before, sent = shifts(night), subjects(night)
    change(
        night,
        "daily alice,bob,carol 09:00 from 2026-11-23 layer 1",
        "weekly olga mon 09:00 layer 0",
    )
    assert night.call("bob", "GET", f"/swaps/{made['id']}") == made
    assert (shifts(night), subjects(night)) == (before, sent)


def test_the_past_part_of_a_swap_stays(night: Nights) -> None:
    made = swap(night)
    night.now = berlin("2026-11-24 15:00")
    change(night, "daily alice,bob,carol 10:00 from 2026-11-23")
    moved = night.call("bob", "GET", f"/swaps/{made['id']}")
    assert moved["starts_at"] == made["starts_at"]
    assert moved["ends_at"] == wire(berlin("2026-11-25 10:00"))
    assert shifts(night)[1] == ("Tue 24 Nov 09:00", "Wed 25 Nov 10:00", ["carol"])


@pytest.mark.parametrize("covered", ["bob", None])
def test_only_overrides_of_whole_turns_follow_the_turn(night: Nights, covered: str | None) -> None:
    (starts_at, ends_at), more = turn(24), {"instead_of": covered} if covered else {}
    given = {"user": "alice", "starts_at": starts_at, "ends_at": ends_at, **more}
    whole = night.call("olga", "POST", "/overrides", json=given, status=201)
    evening = wire(berlin("2026-11-25 18:00")), wire(berlin("2026-11-25 22:00"))
    given = {"user": "alice", "starts_at": evening[0], "ends_at": evening[1]}
    part = night.call("olga", "POST", "/overrides", json=given, status=201)
    change(night, "daily alice,bob,carol 10:00 from 2026-11-23")
    moved = night.call("bob", "GET", f"/overrides/{whole['id']}")
    assert moved["starts_at"] == wire(berlin("2026-11-24 10:00"))
    assert moved["ends_at"] == wire(berlin("2026-11-25 10:00"))
    assert night.call("bob", "GET", f"/overrides/{part['id']}") == part


def test_local_times_of_overrides_and_swaps_are_in_the_zone_of_the_schedule(night: Nights) -> None:
    given = {"user": "alice", "starts_at": "2026-11-25T18:00", "ends_at": "2026-11-25T22:00"}
    override = night.call("olga", "POST", "/overrides", json=given, status=201)
    assert override["starts_at"] == wire(berlin("2026-11-25 18:00"))
    assert override["ends_at"] == wire(berlin("2026-11-25 22:00"))
    given = {
        "user": "bob",
        "starts_at": "2026-11-24T09:00",
        "ends_at": "2026-11-25T09:00:00+01:00",
        "other_user": "carol",
        "other_starts_at": "2026-11-25T09:00",
        "other_ends_at": "2026-11-26T08:00:00Z",
    }
    made = night.call("olga", "POST", "/swaps", json=given, status=201)
    assert (made["starts_at"], made["ends_at"]) == turn(24)
    assert (made["other_starts_at"], made["other_ends_at"]) == turn(25)
