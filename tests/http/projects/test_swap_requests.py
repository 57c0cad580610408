"""Swap requests: asking, answering, and what happens if the schedule changes in between."""

import re
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from domain.access.roles import Role
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, make_project, make_user, now, signed_in
from tests.support.accounts.team import give_role, take_role
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from tests.support.wire.page_text import words

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("J1")]


class Team(NamedTuple):
    """A schedule in which Alice and Bob take daily turns, and Carol is a member."""

    at: str
    people: dict[str, Person]
    calls: dict[str, ApiCaller]
    swap: dict[str, Any]

    def ask(self, **changes: Any) -> Any:
        """Let Alice ask Bob for a swap."""
        return self.calls["alice"].done(
            "POST", "/swap_requests", json={**self.swap, **changes}, status=201
        )

    def shifts(self) -> list[tuple[str, str]]:
        """Return the starts of the next shifts with their users."""
        found = self.calls["olga"].done("GET", "/shifts")
        return [(each["starts_at"], each["users"][0]["username"]) for each in found]


@pytest.fixture
def team(gatebell: LiveGatebell) -> Team:
    people = {name: make_user(gatebell) for name in ("olga", "alice", "bob", "carol")}
    project = make_project(gatebell, people["olga"])
    for name in ("alice", "bob", "carol"):
        give_role(gatebell, project, people[name], Role.DEVELOPER)
    names = f"{people['alice'].username},{people['bob'].username}"
    made = gatebell.cli(
        *("schedules", "create", project, "--name", "Primary", "--time-zone", "UTC"),
        *("--rotation", f"daily {names} 09:00"),
    )
    root = f"/projects/{project.replace('/', '%2F')}/on_call/schedules/{made['id']}"
    calls = {name: api_caller(gatebell, each, root) for name, each in people.items()}
    shifts = calls["olga"].done("GET", "/shifts")[1:-1]
    mine, theirs = (
        next(each for each in shifts if each["users"][0]["username"] == people[name].username)
        for name in ("alice", "bob")
    )
    swap = {
        "user": people["alice"].username,
        "starts_at": mine["starts_at"],
        "ends_at": mine["ends_at"],
        "other_user": people["bob"].username,
        "other_starts_at": theirs["starts_at"],
        "other_ends_at": theirs["ends_at"],
    }
    at = f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}"
    return Team(at, people, calls, swap)


def answer(team: Team, name: str, request: Any, word: str, status: int) -> Any:
    """Let a user answer a request."""
    act = team.calls[name].done if status == 201 else team.calls[name].refused
    path = f"/swap_requests/{request['id']}/answer"
    return act("POST", path, json={"answer": word}, status=status)


def test_a_request_changes_the_schedule_only_when_the_other_user_accepts(team: Team) -> None:
    before = team.shifts()
    made = team.ask()
    assert made["state"] == "requested"
    assert made["expires_at"] == min(team.swap["starts_at"], team.swap["other_starts_at"])
    assert team.shifts()[1:] == before[1:]
    # The same request cannot be sent twice, and only the other user can accept.
    team.calls["alice"].refused("POST", "/swap_requests", json=team.swap, status=409)
    for name in ("alice", "carol", "olga"):
        answer(team, name, made, "accept", 403)
    assert answer(team, "bob", made, "accept", 201)["state"] == "accepted"
    (swap,) = team.calls["carol"].done("GET", "/swaps")
    assert swap["created_by"]["username"] == team.people["alice"].username
    after = dict(team.shifts())
    bob = team.people["bob"].username
    assert after.get(team.swap["starts_at"], bob) == bob
    for word in ("accept", "decline"):
        answer(team, "bob", made, word, 409)
    (listed,) = team.calls["carol"].done("GET", "/swap_requests")
    assert listed == team.calls["carol"].done("GET", f"/swap_requests/{made['id']}")
    assert listed["state"] == "accepted"


def test_declined_and_withdrawn_requests_change_nothing(team: Team) -> None:
    declined = team.ask()
    assert answer(team, "bob", declined, "decline", 201)["state"] == "declined"
    for name in ("alice", "olga"):
        made = team.ask()
        answer(team, "bob", made, "withdraw", 403)
        assert answer(team, name, made, "withdraw", 201)["state"] == "withdrawn"
        answer(team, "bob", made, "accept", 409)
    assert team.calls["olga"].done("GET", "/swaps") == []


def test_an_accepted_request_must_still_match_the_schedule(team: Team) -> None:
    made = team.ask()
    (rotation,) = team.calls["olga"].done("GET", "")["rotations"]
    changed = {**rotation, "users": [team.people["carol"].username, team.people["bob"].username]}
    changed = {key: changed[key] for key in ("name", "type", "users", "handover_time")}
    team.calls["olga"].done("PUT", "", json={"rotations": [changed]})
    refused = answer(team, "bob", made, "accept", 409)
    assert "The shifts have changed since the swap was requested." in str(refused)
    assert team.calls["olga"].done("GET", "/swaps") == []
    assert answer(team, "bob", made, "decline", 201)["state"] == "declined"


def test_a_request_is_about_future_shifts_of_the_own_user(team: Team) -> None:
    (current, *_) = team.calls["olga"].done("GET", "/shifts")
    name = current["users"][0]["username"]
    who, other = ("alice", "") if name == team.people["alice"].username else ("bob", "other_")
    started = {f"{other}starts_at": current["starts_at"], f"{other}ends_at": current["ends_at"]}
    call = team.calls["alice"]
    refused = call.refused("POST", "/swap_requests", json={**team.swap, **started}, status=400)
    assert "has started" in str(refused), who
    team.calls["carol"].refused("POST", "/swap_requests", json=team.swap, status=403)
    # Only Maintainers can swap immediately.
    refused = call.refused("POST", "/swaps", json=team.swap, status=403)
    assert "You need the Maintainer role in" in str(refused)
    team.calls["olga"].done("POST", "/swaps", json=team.swap, status=201)


def test_both_users_see_a_request_on_pages_and_the_other_user_accepts_it(
    gatebell: LiveGatebell, team: Team
) -> None:
    alice, bob = (signed_in(gatebell, team.people[name]) for name in ("alice", "bob"))
    page = alice.get(f"{team.at}/swaps/new")
    form = form_to(page, "/swaps/new")
    shift, other = (
        f"{team.people[name].username}@{re.sub('[-:]|[.].*|Z', '', team.swap[start])}"
        for name, start in (("alice", "starts_at"), ("bob", "other_starts_at"))
    )
    assert "Swap immediately" not in page.text
    sent = submit(alice, page, form, shift=shift, other_shift=other)
    assert sent.status_code == 302
    for address in (team.at, f"{gatebell.url}/-/on_call"):
        assert "asks you to swap shifts." in words(bob.get(address))
        assert "Withdraw request" in words(alice.get(address))
    assert "Answer" in words(bob.get(gatebell.url))
    inbox = bob.get(f"{gatebell.url}/-/on_call")
    done = submit(bob, inbox, form_to(inbox, "/answer"), answer="accept")
    assert done.status_code == 302
    shown = words(bob.get(team.at))
    assert "Shifts swapped." in shown
    assert "asks you to swap shifts." not in shown
    assert "swapped shifts: you are on call from" in shown
    assert f"{team.people['alice'].username} asked for the swap, and you accepted it." in shown
    overview = team.at.partition("/schedules")[0]
    named = f"You asked for the swap, and {team.people['bob'].username} accepted it."
    assert named in words(alice.get(overview))


def test_only_users_who_can_answer_a_request_see_it_with_buttons(
    gatebell: LiveGatebell, team: Team
) -> None:
    team.ask()
    project = team.at.removeprefix(f"{gatebell.url}/").partition("/-/")[0]
    bob = signed_in(gatebell, team.people["bob"])
    inbox = f"{gatebell.url}/-/on_call"
    assert "asks you to swap shifts." in words(bob.get(inbox))
    give_role(gatebell, project, team.people["bob"], Role.REPORTER)
    assert "asks you to swap shifts" not in words(bob.get(inbox)) + words(bob.get(gatebell.url))
    take_role(gatebell, project, team.people["bob"])
    assert "asks you to swap shifts" not in words(bob.get(inbox)) + words(bob.get(gatebell.url))
    give_role(gatebell, project, team.people["bob"], Role.DEVELOPER)
    assert "asks you to swap shifts in" in words(bob.get(gatebell.url))

    # The schedule of an archived project is shown, but cannot be changed.
    olga = signed_in(gatebell, team.people["olga"])
    settings = olga.get(f"{gatebell.url}/{project}/-/settings/general")
    assert submit(olga, settings, form_to(settings, "/archive")).status_code == 302
    assert "asks you to swap shifts" not in words(bob.get(inbox)) + words(bob.get(gatebell.url))
    page = bob.get(team.at)
    assert "asks you to swap shifts." in words(page)
    for button in ("Accept swap", "Decline", "Swap shifts", "Add override"):
        assert button not in page.text, button


def test_the_home_page_notices_requests_and_their_answers(
    gatebell: LiveGatebell, team: Team
) -> None:
    bob = signed_in(gatebell, team.people["bob"])

    def mark() -> str:
        return str(bob.get(gatebell.url, params={"_part": "mark"}).json()["mark"])

    marks = [mark()]
    for word, name in (("decline", "bob"), ("withdraw", "alice"), ("accept", "bob")):
        made = team.ask()
        marks.append(mark())
        answer(team, name, made, word, 201)
        marks.append(mark())
    assert all(old != new for old, new in pairwise(marks))


def test_only_shifts_that_can_be_swapped_are_offered(gatebell: LiveGatebell, team: Team) -> None:
    for name, other in (("alice", "bob"), ("bob", "alice")):
        browser = signed_in(gatebell, team.people[name])
        page = browser.get(f"{team.at}/swaps/new").text
        lists = re.findall(r'<select[^>]* name="((?:other_)?shift)".*?</select>', page, re.DOTALL)
        assert lists == ["shift", "other_shift"]
        own, others = (
            re.findall(r'value="([^"@]+)@(\d+T\d+)"', each)
            for each in re.findall(r"<select.*?</select>", page, re.DOTALL)[-2:]
        )
        assert {each for each, _ in own} == {team.people[name].username}
        assert {each for each, _ in others} == {team.people[other].username}
        assert min(start for _, start in own + others) > f"{now():%Y%m%dT%H%M%S}"
        # The page "On call" has a link for each of these turns.
        shown = browser.get(f"{gatebell.url}/-/on_call").text
        starts = re.findall(r'/swaps/new\?shift=[^"]*?(\d{8}T\d{6})"', shown)
        assert starts
        assert all(
            datetime.strptime(each, "%Y%m%dT%H%M%S%z") > now()
            for each in (f"{start}+0000" for start in starts)
        )
    # Olga has no shifts, so that she cannot request a swap.
    page = signed_in(gatebell, team.people["olga"]).get(f"{team.at}/swaps/new").text
    assert "Swap immediately" in page
    assert "Request swap" not in page
    # Nobody can swap the current turn, which the picture links.
    (current, *_) = team.calls["olga"].done("GET", "/shifts")
    user, start = current["users"][0]["username"], re.sub("[-:]|[.].*|Z", "", current["starts_at"])
    for name, is_offered in (("alice", False), ("bob", False), ("olga", True)):
        browser = signed_in(gatebell, team.people[name])
        chosen = browser.get(team.at, params={"turn": f"{user}@{start}"}).text
        assert 'id="selected"' in chosen
        assert bool(re.search("Swap (this|with this) turn", chosen)) == is_offered
