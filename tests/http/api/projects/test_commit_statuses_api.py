"""Tests of `/api/v4/projects/:id/statuses/:sha`, the statuses of commits from external CI."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from domain.access.roles import Role
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases

SHA = "0123456789abcdef0123456789abcdef01234567"
REPORT = f"/statuses/{SHA}"
STATUSES = f"/repository/commits/{SHA}/statuses"


@pytest.fixture
def project(gatebell: LiveGatebell) -> ApiCaller:
    """A client of a new project with the access of a developer."""
    endpoint = connect(gatebell)
    developer = person_for(gatebell, Role.DEVELOPER)
    give_role(gatebell, endpoint.project, developer, Role.DEVELOPER)
    return api_caller(gatebell, developer, f"/projects/{endpoint.project}")


def test_a_job_reports_its_status_until_it_ends(project: ApiCaller) -> None:
    report = {"name": "build", "ref": "main", "target_url": "https://ci.example/1"}
    first = project.done("POST", REPORT, json={"state": "running", **report}, status=201)
    assert (first["status"], first["finished_at"]) == ("running", None)
    ended = project.done(
        "POST", REPORT, json={"state": "success", "coverage": 87.5, **report}, status=201
    )
    assert ended["id"] == first["id"]
    assert (ended["status"], ended["coverage"]) == ("success", 87.5)
    assert ended["target_url"] == "https://ci.example/1"
    assert ended["finished_at"] is not None
    assert "already" in project.refused("POST", REPORT, json={"state": "success", **report})
    again = project.done("POST", REPORT, json={"state": "pending", **report}, status=201)
    assert (again["id"], again["started_at"], again["finished_at"]) == (first["id"], None, None)
    project.done("POST", REPORT, json={"state": "failed", "context": "lint"}, status=201)
    assert [each["name"] for each in project.done("GET", STATUSES)] == ["build", "lint"]
    assert [each["name"] for each in project.done("GET", f"{STATUSES}?ref=main")] == ["build"]
    assert project.done("GET", STATUSES.replace(SHA, SHA[::-1])) == []


@pytest.mark.spec("L3")
@pytest.mark.one_database("postgres")
def test_texts_have_at_most_255_characters_since_16_0(project: ApiCaller) -> None:
    text, report = "https://ci.example/".ljust(255, "x"), {"state": "running", "name": "build"}
    before = {"Platform-Release": "15.11"}
    for field in ("stage", "ref", "description", "target_url"):
        project.done("POST", REPORT, json={**report, field: text}, status=201)
        longer = {**report, field: f"{text}x"}
        answer = project("POST", REPORT, json=longer)
        assert answer.status_code == 400
        (error,) = answer.json()["errors"]
        assert error["field"] == field
        assert "Send at most 255 characters." in error["message"]
        earlier = project.done("POST", REPORT, json=longer, headers=before, status=201)
        assert earlier[field] == f"{text}x"


WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({}, "state"),
    ({"state": "done"}, "state"),
    ({"state": "success", "target_url": "javascript:alert(1)"}, "target_url"),
    ({"state": "success", "coverage": 101}, "coverage"),
    ({"state": "success", "name": "x" * 256}, "name"),
    ({"state": "success", "description": "a\x00b"}, "description"),
)


@pytest.mark.one_database("sqlite")
def test_an_invalid_report_is_rejected_with_the_field(project: ApiCaller) -> None:
    for body, field in WRONG:
        answer = project("POST", REPORT, json=body)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field)


@pytest.mark.one_database("sqlite")
def test_a_commit_needs_its_full_sha(project: ApiCaller) -> None:
    for sha in ("main", "0123abc", SHA.upper(), f"{SHA}0"):
        project.refused("POST", f"/statuses/{sha}", json={"state": "running"}, status=404)


def test_parallel_reports_of_a_job_create_one_status(project: ApiCaller) -> None:
    states = ["pending", "running"] * 6
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda state: project("POST", REPORT, json={"state": state}), states)
        )
    assert {each.status_code for each in answers} == {201}
    assert len(project.done("GET", STATUSES)) == 1
