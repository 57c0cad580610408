"""Tests of `/api/v4/projects/:id/on_call/schedules`: schedules, shifts, overrides and swaps."""

import json
from datetime import timedelta
from typing import Any

import pytest

from domain.access.roles import Role
from domain.audit.events import EventKind
from domain.audit.log import EventFilter, fetch_event_page
from domain.core.database.pagination import KeysetRange
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, database_of, make_project, make_user, now
from tests.support.accounts.team import give_role, person_for
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.both_databases, pytest.mark.spec("J1")]

AT = "/on_call/schedules"


class Team:
    """A project with an owner and a developer, and their API clients."""

    def __init__(self, gatebell: LiveGatebell) -> None:
        self.owner, self.developer = make_user(gatebell), make_user(gatebell, name="bob")
        self.project = make_project(gatebell, self.owner)
        give_role(gatebell, self.project, self.developer, Role.DEVELOPER)
        self.script, self.other = (self.caller(gatebell, each) for each in self.people)

    @property
    def people(self) -> tuple[Person, Person]:
        return self.owner, self.developer

    @property
    def names(self) -> list[str]:
        return [each.username for each in self.people]

    def caller(self, gatebell: LiveGatebell, person: Person) -> ApiCaller:
        return api_caller(gatebell, person, f"/projects/{self.project.replace('/', '%2F')}")

    def create(self, **changes: Any) -> Any:
        rotation = {"type": "daily", "users": self.names, "handover_time": "09:00"}
        body = {"name": "Primary", "time_zone": "UTC", "rotations": [rotation], **changes}
        return self.script.done("POST", AT, json=body, status=201)


@pytest.fixture
def team(gatebell: LiveGatebell) -> Team:
    return Team(gatebell)


@pytest.mark.long
def test_a_schedule_is_created_shown_changed_and_deleted(
    gatebell: LiveGatebell, team: Team
) -> None:
    made = team.create(description="The shop", time_zone="europe/berlin")
    (rotation,) = made["rotations"]
    assert made["web_url"] == f"{gatebell.url}/{team.project}/-/on_call/schedules/{made['id']}"
    assert made["time_zone"] == "Europe/Berlin"
    assert [each["username"] for each in rotation["users"]] == team.names
    assert {name: rotation[name] for name in ("name", "type", "every", "unit", "layer")} == {
        "name": "Rotation 1",
        "type": "daily",
        "every": 1,
        "unit": "days",
        "layer": 1,
    }
    assert (rotation["handover_time"], rotation["weekdays"]) == ("09:00", [])
    at = f"{AT}/{made['id']}"
    assert team.other.done("GET", at) == made
    assert team.other.done("GET", AT) == [made]
    # A schedule that was read can be written back without changes.
    assert team.script.done("PUT", at, json=made) == made
    weekly = {
        "name": "Nights",
        "users": ",".join(team.names),
        "weekdays": "mon thu",
        "handover_time": "17:30",
        "starts_on": "2026-11-02",
        "restrictions": [{"start_time": "22:00", "end_time": "06:00", "weekdays": ["fri", "sat"]}],
    }
    both = [*made["rotations"], weekly]
    changed = team.script.done("PUT", at, json={"name": "Shop", "rotations": both})
    assert [each["layer"] for each in changed["rotations"]] == [1, 2]
    assert changed["rotations"][0] == rotation
    nights = changed["rotations"][1]
    assert (nights["type"], nights["weekdays"]) == ("weekly", ["mon", "thu"])
    assert nights["restrictions"] == weekly["restrictions"]
    assert nights["starts_on"] == "2026-11-02"
    team.script.done("DELETE", at, status=204)
    team.script.refused("GET", at, status=404)
    wanted = EventFilter(target=team.project, kind=EventKind.ON_CALL_SCHEDULE_CHANGED.value)
    with database_of(gatebell) as session:
        events = fetch_event_page(wanted, KeysetRange(size=10), session=session).items
    assert [each.details["change"] for each in events] == ["deleted", "changed", "created"]
    assert {each.actor_name for each in events} == {team.owner.username}


@pytest.mark.long
def test_current_shows_the_current_and_the_next_on_call_user_with_times(team: Team) -> None:
    made = team.create()
    current = team.other.done("GET", f"{AT}/{made['id']}/current")
    assert [each["username"] for each in current["now"]["users"]] == team.names[:1]
    assert [each["username"] for each in current["next"]["users"]] == team.names[1:]
    assert current["now"]["until"] == current["next"]["starts_at"]
    assert current["now"]["until"].endswith("T09:00:00.000Z")
    assert current["now"]["on_call"][0]["source"] == "rotation"
    team.create(name="Empty", rotations=[])
    everywhere = team.other.done("GET", f"{AT}/current")
    assert [each["name"] for each in everywhere] == ["Empty", "Primary"]
    assert everywhere[0]["now"] == {"users": [], "on_call": [], "until": None}
    assert everywhere[0]["next"] is None
    window = {"from": "2027-01-01T00:00:00Z", "until": "2027-01-04T00:00:00Z"}
    shifts = team.other.done("GET", f"{AT}/{made['id']}/shifts", params=window)
    assert [each["starts_at"] for each in shifts] == [
        "2027-01-01T00:00:00.000Z",
        *(f"2027-01-0{day}T09:00:00.000Z" for day in (1, 2, 3)),
    ]
    assert shifts[-1]["ends_at"] == "2027-01-04T00:00:00.000Z"
    assert not any(each["is_gap"] for each in shifts)


@pytest.mark.long
def test_overrides_and_swaps_are_listed_and_deleted(team: Team) -> None:
    made = team.create()
    at = f"{AT}/{made['id']}"
    begin = now() + timedelta(days=3)
    body = {
        "user": team.names[1],
        "starts_at": begin.isoformat(),
        "ends_at": (begin + timedelta(hours=2)).isoformat(),
    }
    override = team.script.done("POST", f"{at}/overrides", json=body, status=201)
    assert override["user"]["username"] == team.names[1]
    assert override["created_by"]["username"] == team.names[0]
    assert team.other.done("GET", f"{at}/overrides/{override['id']}") == override
    assert team.other.done("GET", f"{at}/overrides") == [override]
    team.other.done("DELETE", f"{at}/overrides/{override['id']}", status=204)
    assert team.other.done("GET", f"{at}/overrides") == []
    shifts = team.other.done("GET", f"{at}/shifts")
    first, second = shifts[1], shifts[2]
    swap = {
        "user": first["users"][0]["username"],
        "starts_at": first["starts_at"],
        "ends_at": first["ends_at"],
        "other_user": second["users"][0]["username"],
        "other_starts_at": second["starts_at"],
        "other_ends_at": second["ends_at"],
    }
    done = team.script.done("POST", f"{at}/swaps", json=swap, status=201)
    assert team.script.done("GET", f"{at}/swaps") == [done]
    assert team.script.done("GET", f"{at}/swaps/{done['id']}") == done
    after = team.other.done("GET", f"{at}/shifts")
    assert after[1]["users"] == shifts[0]["users"] or after[1]["users"] == second["users"]
    team.other.done("DELETE", f"{at}/swaps/{done['id']}", status=204)
    assert team.other.done("GET", f"{at}/swaps") == []


WRONG_SCHEDULES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": ""}, "name"),
    ({"name": "x" * 101}, "name"),
    ({"name": "\x07"}, "visible"),
    ({"time_zone": "Europe/Atlantis"}, "Europe/Berlin"),
    ({"time_zone": "../../etc/passwd"}, "Europe/Berlin"),
    ({"time_zone": ""}, "time_zone"),
    ({"rotations": "weekly"}, "rotations"),
    ({"rotations": [7]}, "rotations.0"),
    ({"rotations": [{"users": []}]}, "users"),
    ({"rotations": [{"users": ["nobody at all"]}]}, "No member has this username"),
    ({"rotations": [{"users": ["a"], "handover_time": "25:00"}]}, "time of day"),
    ({"rotations": [{"users": ["a"], "handover_time": 9}]}, "handover_time"),
    ({"rotations": [{"users": ["a"], "weekdays": ["someday"]}]}, "mon, tue"),
    ({"rotations": [{"users": ["a"], "weekdays": []}]}, "weekdays"),
    ({"rotations": [{"users": ["a"], "type": "custom"}]}, "unit"),
    ({"rotations": [{"users": ["a"], "type": "custom", "unit": "days", "every": 0}]}, "every"),
    ({"rotations": [{"users": ["{me}"], "starts_on": "1066-10-14"}]}, "2000-01-01"),
    ({"rotations": [{"users": ["{me}"], "starts_on": "9999-12-31"}]}, "2099-12-31"),
    ({"rotations": [{"users": ["{me}"], "layer": 101}]}, "layer"),
    ({"rotations": [{"users": ["a"], "restrictions": [{"start_time": "09:00"}]}]}, "end_time"),
    ({"rotations": [{"users": ["{me}"], "name": "A"}] * 2}, "two rotations named A"),
    ({"rotations": [{"users": ["{me}"]}] * 21}, "rotations"),
    ({"rotations": [{"users": ["{me}"] * 101}]}, "users"),
    (
        {"rotations": [{"users": ["{me}"], "type": "custom", "unit": "days", "every": 400}]},
        "366",
    ),
)


@pytest.mark.long
def test_an_invalid_request_is_rejected_with_the_reason(team: Team) -> None:
    for change, said in WRONG_SCHEDULES:
        text = json.dumps({"name": "Primary", "time_zone": "UTC", **change})
        body = json.loads(text.replace("{me}", team.names[0]))
        assert said in team.script.refused("POST", AT, json=body), change
    made = team.create()
    taken = {"name": "PRIMARY", "time_zone": "UTC"}
    assert "already" in team.script.refused("POST", AT, json=taken, status=409)
    at = f"{AT}/{made['id']}"
    for query, said in (
        ({"from": "2026-01-01T00:00:00Z", "until": "2025-01-01T00:00:00Z"}, "after the start"),
        ({"from": "2026-01-01T00:00:00Z", "until": "2026-12-01T00:00:00Z"}, "92 days"),
        ({"from": "0001-01-01T00:00:00Z"}, "2000"),
        ({"until": "9999-12-31T00:00:00Z"}, "2100"),
        ({"from": "yesterday"}, "from"),
        ({"since": "2026-01-01"}, "since"),
    ):
        assert said in team.script.refused("GET", f"{at}/shifts", params=query), query
    tomorrow = now() + timedelta(days=1)
    times = {"starts_at": tomorrow.isoformat(), "ends_at": tomorrow.isoformat()}
    past = {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2026-01-02T00:00:00Z"}
    long = {"starts_at": tomorrow.isoformat(), "ends_at": "2099-01-02T00:00:00Z"}
    me = team.names[0]
    for body, said in (
        ({"user": me, **times}, "after the start"),
        ({"user": me, **past}, "in the past"),
        ({"user": me, **long}, "366 days"),
        ({"user": "nobody at all", **long}, "No member has this username"),
        ({"user": me}, "starts_at"),
    ):
        assert said in team.script.refused("POST", f"{at}/overrides", json=body), body
    for path in ("", "/current", "/shifts", "/overrides", "/swaps"):
        team.script.refused("GET", f"{AT}/{2**62}{path}", status=404)


def test_reporters_cannot_be_on_call_and_schedules_of_other_projects_are_not_found(
    gatebell: LiveGatebell, team: Team
) -> None:
    at = f"{AT}/{team.create()['id']}"
    reporter = person_for(gatebell, Role.REPORTER)
    give_role(gatebell, team.project, reporter, Role.REPORTER)
    body = {"rotations": [{"users": [reporter.username]}]}
    assert "Developer" in team.script.refused("PUT", at, json=body)
    Team(gatebell).script.refused("GET", at, status=404)
