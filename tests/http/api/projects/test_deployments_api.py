"""Tests of `/api/v4/projects/:id/deployments`."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from domain.access.roles import Role
from models import Deployment
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import database_of, now
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def project(gatebell: LiveGatebell) -> ApiCaller:
    """A client of a new project with the access of its owner."""
    endpoint = connect(gatebell)
    owner = person_for(gatebell, Role.OWNER)
    give_role(gatebell, endpoint.project, owner, Role.OWNER)
    return api_caller(gatebell, owner, f"/projects/{endpoint.project}")


def deploy(project: ApiCaller, **changes: Any) -> Any:
    body = {"environment": "production", "sha": SHA, "ref": "main", "tag": False, **changes}
    return project.done("POST", "/deployments", json=body, status=201)


def test_a_deployment_is_reported_changed_listed_and_deleted(project: ApiCaller) -> None:
    made = deploy(project, status="running")
    assert (made["iid"], made["status"], made["finished_at"]) == (1, "running", None)
    assert made["environment"]["name"] == "production"
    assert made["user"]["username"]
    assert "running" in project.refused("DELETE", f"/deployments/{made['id']}")
    ended = project.done("PUT", f"/deployments/{made['id']}", json={"status": "success"})
    assert ended["finished_at"] is not None
    assert project.done("GET", f"/deployments/{made['id']}") == ended
    assert "cannot become" in project.refused(
        "PUT", f"/deployments/{made['id']}", json={"status": "running"}
    )
    second = deploy(project, environment="staging")
    assert (second["iid"], second["environment"]["name"]) == (2, "staging")
    assert [each["iid"] for each in project.done("GET", "/deployments")] == [1, 2]
    found = project.done("GET", "/deployments?environment=staging&status=created&sort=desc")
    assert [each["iid"] for each in found] == [2]
    project.done("DELETE", f"/deployments/{made['id']}", status=204)
    project.refused("GET", f"/deployments/{made['id']}", status=404)


def test_the_number_of_a_deleted_deployment_is_not_reused(project: ApiCaller) -> None:
    made = [deploy(project, status="success") for _ in range(2)]
    project.done("DELETE", f"/deployments/{made[1]['id']}", status=204)
    assert deploy(project)["iid"] == 3


@pytest.mark.spec("M4")
def test_the_filter_by_change_needs_its_order_since_16_0(
    gatebell: LiveGatebell, project: ApiCaller
) -> None:
    older, newer = deploy(project), deploy(project)
    with database_of(gatebell) as session:
        session.execute(
            update(Deployment)
            .where(Deployment.id == older["id"])
            .values(updated_at=now() - timedelta(days=2))
        )
        session.commit()
    since = "updated_after=2026-01-01T00:00:00Z"
    together = f"{since}&order_by=updated_at&sort=desc"
    found = project.done("GET", f"/deployments?{together}")
    assert [each["id"] for each in found] == [newer["id"], older["id"]]
    for query in (since, "order_by=updated_at", "updated_before=2027-01-01&order_by=id"):
        error = project.refused("GET", f"/deployments?{query}")
        assert "finished_after" in error
        earlier = {"Platform-Release": "15.11"}
        assert len(project.done("GET", f"/deployments?{query}", headers=earlier)) == 2, query


def test_the_filter_by_end_needs_its_order_and_the_status_success(project: ApiCaller) -> None:
    done = deploy(project, status="success")
    deploy(project, status="failed")
    query = "finished_after=2026-01-01T00:00:00Z&order_by=finished_at"
    found = project.done("GET", f"/deployments?{query}&status=success")
    assert [each["id"] for each in found] == [done["id"]]
    for wrong in (query, f"{query}&status=failed", "finished_before=2027-01-01&status=success"):
        assert "finished_at" in project.refused("GET", f"/deployments?{wrong}")


@pytest.mark.long
def test_parallel_reports_get_distinct_numbers(project: ApiCaller) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: deploy(project), range(16)))
    assert sorted(each["iid"] for each in made) == list(range(1, 17))
    assert len({each["environment"]["id"] for each in made}) == 1


@pytest.mark.one_database("sqlite")
def test_an_invalid_order_is_rejected_with_the_valid_orders(project: ApiCaller) -> None:
    error = project.refused("GET", "/deployments?order_by=name")
    assert error == "`order_by` must be one of id, iid, created_at, updated_at, finished_at, ref."


@pytest.mark.one_database("sqlite")
def test_all_errors_of_a_report_are_returned_together(project: ApiCaller) -> None:
    answer = project(
        "POST", "/deployments", json={"environment": "", "sha": "HEAD", "ref": "x" * 256}
    )
    assert answer.status_code == 400
    named = {each["field"] for each in answer.json()["errors"]}
    assert named == {"environment", "sha", "ref", "tag"}


def test_the_list_of_deployments_supports_keyset_pagination(project: ApiCaller) -> None:
    made = [deploy(project)["id"] for _ in range(3)]
    url = "/deployments?pagination=keyset&order_by=id&sort=asc&per_page=2"
    assert [each["id"] for each in project.done("GET", url)] == made[:2]
    following = project.done("GET", f"{url}&cursor={made[1]}")
    assert [each["id"] for each in following] == made[2:]
