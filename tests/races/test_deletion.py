"""Tests that concurrent creation, use and deletion of groups and projects leave no orphans."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import requests
from sqlalchemy import func, or_, select
from sqlalchemy.orm import aliased

from models import Alert, Group, Invitation, Member, Project
from tests.http.api.projects.test_projects_api import made, new_group, path_of, script_of
from tests.http.api.projects.test_taken_names import assert_taken
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_project,
    make_user,
    unique,
)
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token
from tests.support.alerts.senders import connect
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell

PARALLEL = 6
ROUNDS = 2
Action = Callable[[], requests.Response]
#: Statuses of requests after a deletion: not found, or not allowed any more.
LATE = {401, 403, 404, 409}


def statuses(answers: list[requests.Response]) -> Counter[int]:
    found = Counter(answer.status_code for answer in answers)
    assert max(found) < 500, [answer.text for answer in answers if answer.status_code >= 500]
    return found


def assert_one_is_made(answers: list[requests.Response]) -> None:
    """Check that one request succeeds, and that the others report a path that is taken."""
    assert statuses(answers) == {201: 1, 400: len(answers) - 1}
    for answer in answers:
        if answer.status_code != 201:
            assert_taken(answer)


def orphans(gatebell: LiveGatebell) -> dict[str, int]:
    """Count the rows that belong to a deleted group or project."""
    above, inside = aliased(Group), aliased(Project)
    gone_group = select(above.id).where(above.deleted_at.is_not(None))
    gone_project = select(inside.id).where(inside.deleted_at.is_not(None))
    conditions: dict[Any, Any] = {
        Group: Group.parent_id.in_(gone_group) & Group.deleted_at.is_(None),
        Project: Project.group_id.in_(gone_group) & Project.deleted_at.is_(None),
        Member: or_(Member.group_id.in_(gone_group), Member.project_id.in_(gone_project)),
        Invitation: or_(
            Invitation.group_id.in_(gone_group), Invitation.project_id.in_(gone_project)
        ),
    }
    with database_of(gatebell) as session:
        counts = {
            table.__tablename__: session.scalar(
                select(func.count()).select_from(table).where(condition)
            )
            for table, condition in conditions.items()
        }
    return {name: count for name, count in counts.items() if count}


@pytest.mark.long
def test_only_one_concurrent_api_request_creates_a_group_or_project(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    group = new_group(script)
    for _ in range(ROUNDS):
        name = unique("same")
        bodies: tuple[tuple[str, dict[str, Any]], ...] = (
            ("/groups", {"name": name, "path": name}),
            ("/groups", {"name": name, "path": name, "parent_id": group["id"]}),
            ("/projects", {"name": name, "path": f"{name}-shop", "namespace_id": group["id"]}),
        )
        for path, body in bodies:
            create = partial(script.send_request, "POST", path, json=body)
            assert_one_is_made(run_simultaneously([create] * PARALLEL))


@pytest.mark.long
def test_a_group_and_a_project_cannot_get_the_same_path(
    gatebell: LiveGatebell,
) -> None:
    script = script_of(gatebell)
    group = new_group(script)
    for _ in range(ROUNDS):
        name = unique("same")
        body = {"name": name, "path": name}
        actions: list[Action] = [
            partial(script.send_request, "POST", "/groups", json=body | {"parent_id": group["id"]}),
            partial(
                script.send_request, "POST", "/projects", json=body | {"namespace_id": group["id"]}
            ),
        ]
        assert_one_is_made(run_simultaneously(actions * 2))


@pytest.mark.long
def test_only_one_concurrent_deletion_succeeds(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    for _ in range(ROUNDS):
        group = new_group(script)
        body = {"name": "shop", "path": "shop", "namespace_id": group["id"]}
        project = made(script.send_request("POST", "/projects", json=body))
        for path in (f"/projects/{project['id']}", f"/groups/{group['id']}"):
            answers = run_simultaneously([partial(script.send_request, "DELETE", path)] * PARALLEL)
            assert statuses(answers) == {202: 1, 404: PARALLEL - 1}


@pytest.mark.long
def test_requests_during_a_group_s_deletion_complete_before_or_fail(
    gatebell: LiveGatebell,
) -> None:
    admin = script_of(gatebell, make_user(gatebell, name="root", admin=True))
    for _ in range(ROUNDS):
        endpoint = connect(gatebell, make_project(gatebell, alice(gatebell)))
        script, url = script_of(gatebell, alice(gatebell)), path_of(endpoint.project)
        group = made(
            script.send_request("GET", f"/groups/{endpoint.project.partition('/')[0]}"), 200
        )
        name, here = unique("late"), f"/groups/{group['id']}"
        bot = make_bot_token(script, get_namespace(gatebell, "projects", endpoint.project))
        alert = json.dumps({"title": name}).encode()
        others: list[Action] = [
            partial(script.send_request, "POST", "/projects", json=new_in(group, name)),
            partial(
                script.send_request,
                "POST",
                "/groups",
                json={"name": name, "path": name, "parent_id": group["id"]},
            ),
            partial(script.send_request, "POST", f"{here}/members", json=member(gatebell)),
            partial(admin.send_request, "POST", f"{here}/members", json=member(gatebell)),
            partial(admin.send_request, "POST", f"{url}/members", json=member(gatebell)),
            partial(
                script.send_request, "POST", f"{url}/environments", json={"name": "production"}
            ),
            partial(script.send_request, "POST", f"{url}/archive"),
            partial(endpoint.post, alert),
            partial(Api(gatebell, bot.clear).send_request, "GET", url),
            partial(script.send_request, "DELETE", url),
        ]
        delete: Action = partial(script.send_request, "DELETE", here)
        deleted, *answers = run_simultaneously([delete, *others])
        assert deleted.status_code == 202, deleted.text
        assert set(statuses(answers)) <= {200, 201, 202} | LATE
        assert script.send_request("GET", here).status_code == 404
        assert endpoint.post(alert).status_code == 404
        assert Api(gatebell, bot.clear).send_request("GET", "/user").status_code == 401
        assert orphans(gatebell) == {}


def new_in(group: dict[str, Any], name: str) -> dict[str, Any]:
    return {"name": name, "path": f"{name}-shop", "namespace_id": group["id"]}


def member(gatebell: LiveGatebell) -> dict[str, Any]:
    person: Person = make_user(gatebell, name="helper")
    return {"username": person.username, "access_level": 30}


def test_an_alert_during_the_archiving_of_a_project_is_stored_or_rejected(
    gatebell: LiveGatebell,
) -> None:
    for _ in range(ROUNDS):
        endpoint = connect(gatebell)
        script, url = script_of(gatebell, alice(gatebell)), path_of(endpoint.project)
        alerts: list[Action] = [
            partial(endpoint.post, json.dumps({"title": f"alert {number}"}).encode())
            for number in range(PARALLEL)
        ]
        archive: Action = partial(script.send_request, "POST", f"{url}/archive")
        archived, *answers = run_simultaneously([archive, *alerts])
        assert archived.status_code == 201
        found = statuses(answers)
        assert set(found) <= {200, 403}
        assert endpoint.post(b'{"title": "after"}').status_code == 403
        with database_of(gatebell) as session:
            stored = session.scalar(
                select(func.count())
                .select_from(Alert)
                .join(Project, Project.id == Alert.project_id)
                .where(Project.path == endpoint.project)
            )
        assert stored == found[200]


@pytest.mark.spec("G1")
def test_a_replayed_creation_after_the_deletion_creates_nothing(
    gatebell: LiveGatebell,
) -> None:
    script = script_of(gatebell)
    group, headers = new_group(script), {"Idempotency-Key": unique("key")}
    send = partial(
        script.send_request, "POST", "/projects", json=new_in(group, "once"), headers=headers
    )
    project = made(send())
    assert script.send_request("DELETE", f"/projects/{project['id']}").status_code == 202
    again = send()
    assert (again.status_code, again.json()["id"]) == (201, project["id"])
    assert again.headers["Idempotency-Replayed"] == "true"
    assert script.send_request("GET", path_of(project["path_with_namespace"])).status_code == 404
