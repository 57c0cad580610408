"""Tests that a group's first policy applies to projects that are added concurrently."""

from functools import partial

import pytest
from sqlalchemy import select

from models import AlertFollower, Project
from tests.http.api.projects.test_projects_api import made, script_of
from tests.support.accounts.people import database_of, make_project, make_user
from tests.support.accounts.resource_tokens import get_namespace
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
ROUNDS = 4


def test_all_projects_of_the_group_are_followed(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    script = script_of(gatebell, owner)
    policy = {"name": "Night", "steps": [f"0s user:{owner.username}"], "default": True}
    for number in range(ROUNDS):
        group = get_namespace(gatebell, "groups", make_project(gatebell, owner)).id
        elsewhere = get_namespace(gatebell, "groups", make_project(gatebell, owner)).id
        other = made(
            script.send_request("POST", "/projects", json={"name": "q", "namespace_id": elsewhere})
        )
        new = {"name": f"p{number}-{group}", "namespace_id": group}
        answers = run_simultaneously(
            [
                partial(
                    script.send_request, "POST", f"/groups/{group}/escalation_policies", json=policy
                ),
                partial(script.send_request, "POST", "/projects", json=new),
                partial(
                    script.send_request,
                    "PUT",
                    f"/projects/{other['id']}/transfer",
                    json={"namespace": str(group)},
                ),
            ]
        )
        statuses = [each.status_code for each in answers]
        assert statuses == [201, 201, 200], [each.text for each in answers]
        with database_of(gatebell) as session:
            inside = set(session.scalars(select(Project.id).where(Project.group_id == group)))
            followed = set(session.scalars(select(AlertFollower.project_id)))
        assert len(inside) == 3
        assert inside <= followed
