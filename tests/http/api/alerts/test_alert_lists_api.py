"""Tests of alert lists over several projects: of a group, and of all projects of a user."""

from typing import Any

import pytest
from sqlalchemy import update

from domain.access.roles import Role
from domain.projects import namespace_changes
from models import Project
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_project,
    make_user,
    now,
    unique,
)
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
ALERTS = "/alert_management_alerts"


def add_project(gatebell: LiveGatebell, path: str) -> str:
    """Create a project, and its group if it does not exist."""
    with database_of(gatebell) as session:
        made = namespace_changes.create_project(
            path, visibility="private", reserved=frozenset(), session=session, now=now()
        )
        return made.path


def add_subgroup(gatebell: LiveGatebell, path: str) -> None:
    with database_of(gatebell) as session:
        namespace_changes.create_group(path, reserved=frozenset(), session=session, now=now())


def api_of(gatebell: LiveGatebell, person: Person, scopes: str = "read_alerts") -> Api:
    return Api(gatebell, make_token(gatebell, person, scopes=scopes).clear)


def titles(api: Api, path: str, **query: Any) -> list[str]:
    answer = api.send_request("GET", path, params=query)
    assert answer.status_code == 200, answer.text
    return [alert["title"] for alert in answer.json()]


@pytest.mark.long
@pytest.mark.both_databases
def test_the_alerts_of_a_group_include_all_its_projects(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    shop = make_project(gatebell, owner)
    group = shop.partition("/")[0]
    add_subgroup(gatebell, f"{group}/inner")
    deep, other = (
        add_project(gatebell, f"{group}/inner/deep"),
        make_project(gatebell, owner),
    )
    ends = [connect(gatebell, path) for path in (shop, deep, other)]
    for number, endpoint in enumerate((*ends, *ends), start=1):
        endpoint.accepted(
            title=f"a{number}",
            severity="high" if number == 2 else "low",
            start_time=f"2026-11-22T0{number}:00:00Z",
        )
    api = api_of(gatebell, owner)
    at = f"/groups/{group}{ALERTS}"

    assert titles(api, at) == ["a5", "a4", "a2", "a1"]
    assert titles(api, at, sort="oldest") == ["a1", "a2", "a4", "a5"]
    assert titles(api, at, sort="severity") == ["a2", "a5", "a4", "a1"]
    assert titles(api, at, severity="high") == ["a2"]
    assert titles(api, at, status="resolved") == []
    first = api.send_request("GET", at, params={"per_page": 3})
    assert [each["project_path"] for each in first.json()] == [deep, shop, deep]
    assert first.json()[0]["web_url"].endswith(f"/{deep}/-/alerts/2")
    cursor = first.links["next"]["url"].rpartition("cursor=")[2]
    assert titles(api, at, per_page=3, cursor=cursor) == ["a1"]
    assert titles(api, ALERTS) == ["a6", "a5", "a4", "a3", "a2", "a1"]


def test_a_list_of_several_projects_rejects_unknown_parameters(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    api = api_of(gatebell, alice(gatebell))
    assert titles(api, f"/groups/{group}{ALERTS}") == []
    for query in ("sort=events", "integration=1", "cursor=1", "page=2", "status=x"):
        for path in (ALERTS, f"/groups/{group}{ALERTS}"):
            assert api.send_request("GET", f"{path}?{query}").status_code == 400, query


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G5")
def test_users_see_only_alerts_of_their_own_projects(gatebell: LiveGatebell) -> None:
    mine, seen, hidden = (connect(gatebell) for _ in range(3))
    for endpoint, title in ((mine, "mine"), (seen, "seen"), (hidden, "hidden")):
        endpoint.accepted(title=title)
    person = make_user(gatebell, name="charlie")
    give_role(gatebell, mine.project, person, Role.DEVELOPER)
    give_role(gatebell, seen.project, person, Role.REPORTER)
    api = api_of(gatebell, person)

    assert titles(api, ALERTS) == ["mine"]
    group = mine.project.partition("/")[0]
    assert api.send_request("GET", f"/groups/{group}{ALERTS}").status_code in {403, 404}
    give_role(gatebell, seen.project.partition("/")[0], person, Role.DEVELOPER)
    assert titles(api, ALERTS) == ["seen", "mine"]
    give_role(gatebell, mine.project, person, Role.GUEST)
    assert titles(api, ALERTS) == ["seen"]
    # Monitoring is turned off in this project.
    turned_off = update(Project).where(Project.path == seen.project)
    with database_of(gatebell) as session:
        session.execute(turned_off.values(monitor_access_level="disabled"))
    assert titles(api, ALERTS) == []
    # Administrators can see every project, but this one is not a member of any.
    root = make_user(gatebell, name="root", admin=True)
    assert titles(api_of(gatebell, root), ALERTS) == []
    hidden_group = hidden.project.partition("/")[0]
    assert titles(api_of(gatebell, root), f"/groups/{hidden_group}{ALERTS}") == ["hidden"]
    small = api_of(gatebell, root, "read_user").send_request("GET", ALERTS)
    assert small.json()["error"] == "insufficient_scope"


def test_a_custom_role_with_access_to_alerts_counts(gatebell: LiveGatebell) -> None:
    by_project, by_group = connect(gatebell), connect(gatebell)
    for endpoint, title in ((by_project, "of a project"), (by_group, "of a group")):
        endpoint.accepted(title=title)
    person = make_user(gatebell, name="watcher")
    root = api_of(gatebell, make_user(gatebell, name="root", admin=True), "api")
    body = {"name": unique("watcher"), "base_access_level": 10, "read_alerts": True}
    role_id = root.send_request("POST", "/member_roles", json=body).json()["id"]
    for namespace in (by_project.project, by_group.project.partition("/")[0]):
        give_role(gatebell, namespace, person, Role.GUEST)
        gatebell.cli("members", "give-member-role", namespace, person.username, str(role_id))
    found = titles(api_of(gatebell, person), ALERTS, sort="oldest")
    assert found == ["of a project", "of a group"]
