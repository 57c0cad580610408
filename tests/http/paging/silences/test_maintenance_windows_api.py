"""The API /api/v4/projects/:id/maintenance_windows and /flap_settings."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from domain.access.roles import Role
from domain.audit.events import EventKind
from tests.http.paging.silences.conftest import Project
from tests.support.accounts.api_caller import ApiCaller
from tests.support.accounts.people import now
from tests.support.accounts.team import person_for
from tests.support.database.audit_log import list_events_with_subject

pytestmark = [pytest.mark.spec("J1"), pytest.mark.both_databases]

SUNDAYS = {
    "name": "Sunday night",
    "starts_at": "2030-01-01T02:00",
    "time_zone": "Europe/Berlin",
    "duration": "90m",
    "rule": "FREQ=WEEKLY;BYDAY=SU",
}


@pytest.fixture
def maintainer(project: Project) -> ApiCaller:
    return project.caller(Role.MAINTAINER)


def create(call: ApiCaller, **changes: Any) -> Any:
    return call.done("POST", "/maintenance_windows", json={**SUNDAYS, **changes}, status=201)


@pytest.mark.one_database("postgres")
def test_a_window_shows_its_next_occurrences_in_local_time(maintainer: ApiCaller) -> None:
    made = create(maintainer, severities=["high"], labels={"team": "db"})
    assert (made["rule"], made["duration"], made["is_active"]) == (SUNDAYS["rule"], "1h30m", False)
    assert (made["severities"], made["environments"], made["labels"]) == (
        ["high"],
        [],
        ['team="db"'],
    )
    begins = [datetime.fromisoformat(each["starts_at"]) for each in made["occurrences"]]
    assert len(begins) == 5
    local = [begin.astimezone(ZoneInfo("Europe/Berlin")) for begin in begins]
    assert [(each.weekday(), each.hour) for each in local] == [(6, 2)] * 5
    assert begins[0] == datetime(2030, 1, 6, 1, tzinfo=UTC)


@pytest.mark.long
def test_an_active_window_mutes_matching_alerts(project: Project, maintainer: ApiCaller) -> None:
    web = project.endpoint.accepted(title="a", service="web")["iid"]
    db = project.endpoint.accepted(title="b", service="db")["iid"]
    begin = (now() - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M")
    made = create(
        maintainer, starts_at=begin, time_zone="UTC", rule="", duration="1h", services=["w*"]
    )
    assert made["is_active"] is True
    assert made["created_by"] == person_for(project.gatebell, Role.MAINTAINER).username
    mute = maintainer.done("GET", f"/alerts/{web}/mute")
    assert (mute["kind"], mute["id"], mute["name"]) == ("maintenance", made["id"], "Sunday night")
    assert mute["until"] == made["occurrences"][0]["ends_at"]
    assert maintainer.done("GET", f"/alerts/{db}/mute")["muted"] is False
    maintainer.done("DELETE", f"/maintenance_windows/{made['id']}", status=204)
    assert maintainer.done("GET", f"/alerts/{web}/mute")["muted"] is False
    maintainer.refused("GET", f"/maintenance_windows/{made['id']}", status=404)
    kinds = [
        event.kind
        for event in list_events_with_subject(project.gatebell, "Sunday night")
        if event.details["project"] == project.path
    ]
    assert kinds == [EventKind.MAINTENANCE_WINDOW_DELETED, EventKind.MAINTENANCE_WINDOW_CREATED]


def test_an_update_keeps_omitted_fields(maintainer: ApiCaller) -> None:
    made = create(maintainer, environments=["prod*"])
    at = f"/maintenance_windows/{made['id']}"
    changed = maintainer.done("PUT", at, json={"rule": "", "severities": ["low"]})
    assert changed["rule"] == ""
    assert (changed["severities"], changed["environments"]) == (["low"], ["prod*"])
    assert (changed["name"], changed["starts_at"]) == (made["name"], made["starts_at"])
    assert len(changed["occurrences"]) == 1
    assert [each["id"] for each in maintainer.done("GET", "/maintenance_windows")] == [made["id"]]


@pytest.mark.one_database("postgres")
def test_a_start_with_an_offset_is_converted_into_the_zone_of_the_window(
    maintainer: ApiCaller,
) -> None:
    # The start is a Sunday in winter; in summer the window begins at the same local time.
    made = create(maintainer, starts_at="2030-01-05T20:00-05:00", rule="FREQ=MONTHLY;INTERVAL=6")
    assert made["starts_at"] == "2030-01-06T02:00"
    begins = [each["starts_at"] for each in made["occurrences"][:2]]
    assert begins == ["2030-01-06T01:00:00.000Z", "2030-07-06T00:00:00.000Z"]
    at = f"/maintenance_windows/{made['id']}"
    moved = {"starts_at": "2030-07-01T00:00:00Z", "time_zone": "Asia/Tokyo"}
    assert maintainer.done("PUT", at, json=moved)["starts_at"] == "2030-07-01T09:00"


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": " "}, "name"),
    ({"name": "x" * 256}, "name"),
    ({"starts_at": "tonight"}, "`starts_at` must be a local time"),
    ({"starts_at": "0001-01-01T00:00+14:00"}, "`starts_at` must be a local time"),
    ({"starts_at": "2030-01-01T02:00Z", "time_zone": "Mars/Olympus"}, "time zone"),
    # The second 02:30; the local time without its offset would mean the first.
    ({"starts_at": "2030-10-27T02:30+01:00"}, "02:30 occurs twice in Europe/Berlin"),
    ({"starts_at": "2020-01-01T02:00", "rule": ""}, "already ended"),
    ({"starts_at": "0001-01-01T00:00"}, "between the years"),
    ({"starts_at": "9999-12-31T23:59"}, "between the years"),
    ({"time_zone": "Mars/Olympus"}, "time zone"),
    ({"time_zone": "../../etc/passwd"}, "time zone"),
    ({"duration": "8d"}, "seven days"),
    ({"duration": "0s"}, "one minute"),
    ({"duration": "25h", "rule": "FREQ=DAILY"}, "until it recurs"),
    ({"rule": "FREQ=SECONDLY"}, "rule"),
    ({"rule": "FREQ=DAILY;UNTIL=20291231"}, "already ended"),
    (
        {"rule": "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=31", "starts_at": "2030-02-01T00:00"},
        "already ended",
    ),
    ({"severities": ["urgent"]}, "not a severity"),
    ({"labels": 'a="'}, "Character"),
    ({"environments": [""]}, "environments"),
)


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_invalid_windows_are_rejected_with_a_reason(maintainer: ApiCaller) -> None:
    for changes, words in REFUSED:
        answer = maintainer("POST", "/maintenance_windows", json={**SUNDAYS, **changes})
        assert answer.status_code == 400, (changes, answer.text)
        assert words in answer.text
    assert maintainer.done("GET", "/maintenance_windows") == []


@pytest.mark.long
def test_flap_settings_have_defaults_and_change_separately(
    project: Project, maintainer: ApiCaller
) -> None:
    usual = {
        "enabled": True,
        "openings": 5,
        "within_minutes": 30,
        "hold_minutes": 10,
        "holds_critical": False,
        "reopen_minutes": 0,
    }
    assert maintainer.done("GET", "/flap_settings") == usual
    changed = {**usual, "openings": 3, "reopen_minutes": 5}
    sent = {"openings": 3, "reopen_minutes": 5}
    assert maintainer.done("PUT", "/flap_settings", json=sent) == changed
    changed["enabled"] = False
    assert maintainer.done("PUT", "/flap_settings", json={"enabled": False}) == changed
    for name in usual:
        for value in (-1, 10**6, "often", None):
            if name != "enabled" or value == "often":
                answer = maintainer("PUT", "/flap_settings", json={name: value})
                assert answer.status_code == (200 if value is None else 400), (name, value)
    assert len(list_events_with_subject(project.gatebell, project.path)) >= 2
