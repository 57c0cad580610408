"""The API /api/v4/projects/:id/silences."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.access.roles import Role
from domain.audit.events import EventKind
from tests.http.paging.silences.conftest import Project
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import make_user, now
from tests.support.accounts.team import give_role, person_for, take_role
from tests.support.alerts.senders import connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live_settings import changed_settings

pytestmark = [pytest.mark.spec("J1"), pytest.mark.both_databases]

WEB = 'service="web"'


@pytest.fixture
def developer(project: Project) -> ApiCaller:
    return project.caller(Role.DEVELOPER)


def silence(call: ApiCaller, **changes: Any) -> Any:
    body = {"matchers": WEB, "duration": "2h", **changes}
    return call.done("POST", "/silences", json=body, status=201)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.long
def test_a_silence_is_created_shown_changed_and_ended(
    project: Project, developer: ApiCaller
) -> None:
    iid = project.endpoint.accepted(title="Down", service="web")["iid"]
    assert developer.done("GET", f"/alerts/{iid}/mute") == {
        **dict.fromkeys(("kind", "group", "id", "name", "by", "until")),
        "muted": False,
    }
    made = silence(developer, comment="New disk")
    me = person_for(project.gatebell, Role.DEVELOPER).username
    assert (made["matchers"], made["comment"], made["state"]) == ([WEB], "New disk", "active")
    assert (made["created_by"], made["ended_by"]) == (me, None)
    assert moment(made["ends_at"]) - moment(made["starts_at"]) == timedelta(hours=2)
    assert made["web_url"] == f"{project.url}/silences/{made['id']}"
    at = f"/silences/{made['id']}"
    assert developer.done("GET", at) == made
    mute = developer.done("GET", f"/alerts/{iid}/mute")
    assert (mute["muted"], mute["kind"], mute["id"]) == (True, "silence", made["id"])
    assert (mute["until"], mute["by"], mute["name"]) == (made["ends_at"], me, "New disk")
    longer = developer.done("PUT", at, json={"duration": "5h", "comment": "Two disks"})
    assert moment(longer["ends_at"]) > moment(made["ends_at"])
    assert longer["comment"] == "Two disks"
    assert longer["starts_at"] == made["starts_at"]
    developer.done("DELETE", at, status=204)
    ended = developer.done("GET", at)
    assert (ended["state"], ended["ended_by"]) == ("expired", me)
    assert developer.done("GET", f"/alerts/{iid}/mute")["muted"] is False
    for refused in (
        developer.refused("DELETE", at, status=409),
        developer.refused("PUT", at, json={"duration": "1h"}, status=409),
    ):
        assert "has ended" in refused
    kinds = [
        event.kind
        for event in list_events_with_subject(project.gatebell, WEB)
        if event.details.get("project") == project.path
    ]
    assert kinds == [
        EventKind.SILENCE_EXPIRED,
        EventKind.SILENCE_CHANGED,
        EventKind.SILENCE_CREATED,
    ]


@pytest.mark.long
def test_silences_are_listed_by_state(developer: ApiCaller) -> None:
    later = (now() + timedelta(days=1)).isoformat()
    active, pending, expired = (
        silence(developer)["id"],
        silence(developer, starts_at=later)["id"],
        silence(developer)["id"],
    )
    developer.done("DELETE", f"/silences/{expired}", status=204)

    def ids(query: str) -> list[int]:
        return [each["id"] for each in developer.done("GET", f"/silences{query}")]

    assert ids("") == [expired, pending, active]
    assert ids("?sort=asc&per_page=1") == [active]
    assert ids("?pagination=keyset&per_page=2") == [expired, pending]
    assert ids("?order_by=starts_at&sort=desc") == [pending, expired, active]
    for state, number in (("active", active), ("pending", pending), ("expired", expired)):
        assert ids(f"?state={state}") == [number]
    assert "state" in developer.refused("GET", "/silences?state=over")
    assert "where" in developer.refused("GET", "/silences?where=here")


@pytest.mark.one_database("sqlite")
def test_matchers_can_be_a_text_a_list_an_object_or_form_fields(developer: ApiCaller) -> None:
    for matchers in (
        'service="web", host=~"db-.*"',
        '{service="web",host=~"db-.*"}',
        ['service="web"', 'host=~"db-.*"'],
    ):
        assert silence(developer, matchers=matchers)["matchers"] == [WEB, 'host=~"db-.*"']
    found = silence(developer, matchers={"service": "web", "team name": "a"})
    assert found["matchers"] == [WEB, '"team name"="a"']
    form = {"matchers[]": [WEB, "a=b"], "duration": "1h"}
    made = developer.done("POST", "/silences", data=form, status=201)
    assert made["matchers"] == [WEB, 'a="b"']


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "`matchers` is missing"),
    ({"matchers": WEB}, "The silence has no end."),
    ({"matchers": WEB, "duration": "2 hours"}, "not a duration"),
    ({"matchers": WEB, "duration": "999999999w"}, "too"),
    ({"matchers": WEB, "duration": "0s"}, "at least one minute"),
    ({"matchers": WEB, "duration": "91d"}, "at most"),
    ({"matchers": WEB, "duration": "1h", "ends_at": "2030-01-01T00:00:00Z"}, "cannot be combined"),
    ({"matchers": WEB, "ends_at": "2020-01-01T00:00:00Z"}, "in the future"),
    ({"matchers": WEB, "duration": "1h", "starts_at": "soon"}, "a time like"),
    (
        {"matchers": WEB, "duration": "1h", "starts_at": "2020-01-01T00:00:00Z"},
        "between now and one year",
    ),
    ({"matchers": "", "duration": "1h"}, "matcher"),
    ({"matchers": [], "duration": "1h"}, "at least one matcher"),
    ({"matchers": 'a!="b"', "duration": "1h"}, "match every alert without"),
    ({"matchers": 'a="b', "duration": "1h"}, "Character 3: this double quote"),
    ({"matchers": 'a=~"["', "duration": "1h"}, "regular expression"),
    ({"matchers": "a=" + "b" * 4000, "duration": "1h"}, "at most 4,000"),
    ({"matchers": [5], "duration": "1h"}, "matchers"),
    ({"matchers": 5, "duration": "1h"}, "matchers"),
    ({"matchers": "a=\x00", "duration": "1h"}, "NUL"),
    ({"matchers": WEB, "duration": "1h", "comment": "x" * 1001}, "at most 1000"),
    ({"matchers": WEB, "duration": "1h", "comment": "\x00"}, "NUL"),
)


@pytest.mark.one_database("postgres")
def test_invalid_silences_are_rejected_with_a_reason(developer: ApiCaller) -> None:
    for body, words in REFUSED:
        answer = developer("POST", "/silences", json=body)
        assert answer.status_code == 400, body
        assert words in answer.text
    assert developer.done("GET", "/silences") == []


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_the_maximum_duration_of_a_silence_is_configurable(
    project: Project, developer: ApiCaller
) -> None:
    with changed_settings(project.gatebell, longest_silence_days="1"):
        assert "at most 1d" in developer.refused(
            "POST", "/silences", json={"matchers": WEB, "duration": "25h"}
        )
        made = silence(developer, duration="23h")
        at = f"/silences/{made['id']}"
        assert "at most 1d" in developer.refused("PUT", at, json={"duration": "25h"})


def test_a_preview_lists_matching_alerts(project: Project, developer: ApiCaller) -> None:
    for title, service in (("a", "web"), ("b", "db"), ("c", "web")):
        project.endpoint.accepted(title=title, service=service)
    found = developer.done("GET", "/silences/preview", params={"matchers": WEB})
    assert (found["matchers"], found["open_alerts"], found["recent_alerts"]) == ([WEB], 2, 2)
    assert (found["looked_at"], found["is_complete"]) == (3, True)
    assert [alert["title"] for alert in found["alerts"]] == ["c", "a"]
    assert found["alerts"][0]["web_url"] == f"{project.url}/alerts/3"
    refused = developer.refused("GET", "/silences/preview", params={"matchers": "a"})
    assert "Character 2" in refused
    developer.refused("GET", "/silences/preview")


@pytest.mark.one_database("sqlite")
def test_a_silence_outlives_the_role_of_its_author(project: Project) -> None:
    author = project.caller(Role.DEVELOPER)
    made = silence(author)
    take_role(project.gatebell, project.path, person_for(project.gatebell, Role.DEVELOPER))
    assert author("DELETE", f"/silences/{made['id']}").status_code == 404
    maintainer = project.caller(Role.MAINTAINER)
    assert maintainer.done("GET", f"/silences/{made['id']}")["state"] == "active"


@pytest.mark.long
def test_a_silence_is_exported_and_keeps_a_pseudonym_of_its_author(project: Project) -> None:
    author = make_user(project.gatebell)
    give_role(project.gatebell, project.path, author, Role.DEVELOPER)
    call = api_caller(project.gatebell, author, f"/projects/{project.path}")
    made = silence(call, comment="Mine")
    exported = project.gatebell.cli("users", "export", author.username)
    assert [each["comment"] for each in exported["silences"]] == ["Mine"]
    project.gatebell.cli("users", "delete", author.username, "--delete-applications")
    kept = project.caller(Role.DEVELOPER).done("GET", f"/silences/{made['id']}")
    assert kept["created_by"].startswith("deleted user")
    assert (kept["comment"], kept["state"]) == ("Mine", "active")


@pytest.mark.one_database("postgres")
def test_a_silence_of_another_project_is_not_found(project: Project, developer: ApiCaller) -> None:
    made = silence(developer)
    other = Project(project.gatebell, connect(project.gatebell)).caller(Role.DEVELOPER)
    for number in (made["id"], 2**62):
        other.refused("GET", f"/silences/{number}", status=404)
        other.refused("PUT", f"/silences/{number}", json={"duration": "1h"}, status=404)
        other.refused("DELETE", f"/silences/{number}", status=404)
    assert developer.done("GET", f"/silences/{made['id']}")["state"] == "active"


def test_a_silence_in_the_json_of_amtool_is_accepted(developer: ApiCaller) -> None:
    ends = now() + timedelta(hours=3)
    printed = {
        "id": "9b6d8f0c-0d8b-4c86-8a7e-1f1f6d6d9d3e",
        "status": {"state": "active"},
        "updatedAt": "2026-11-28T10:00:00.000Z",
        "comment": "New disk",
        "createdBy": "alice",
        "startsAt": now().isoformat(),
        "endsAt": ends.isoformat(),
        "matchers": [
            {"name": "service", "value": "web", "isRegex": False, "isEqual": True},
            {"name": "host", "value": "web-.*", "isRegex": True, "isEqual": True},
            {"name": "team", "value": "db", "isRegex": False, "isEqual": False},
            {"name": "zone", "value": "eu-.", "isRegex": True, "isEqual": False},
        ],
    }
    made = developer.done("POST", "/silences", json=printed, status=201)
    wanted = [WEB, 'host=~"web-.*"', 'team!="db"', 'zone!~"eu-."']
    assert (made["matchers"], made["comment"]) == (wanted, "New disk")
    assert abs(moment(made["ends_at"]) - ends) < timedelta(seconds=1)
    wrong = {**printed, "matchers": [{"name": "service", "isRegex": "no"}]}
    assert "matchers" in developer.refused("POST", "/silences", json=wrong)
