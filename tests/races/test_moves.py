"""Tests of concurrent transfers of groups into each other while alerts arrive."""

import json
from functools import partial

import pytest

from tests.http.api.projects.test_projects_api import made, script_of
from tests.races.test_deletion import statuses
from tests.support.accounts.people import make_project, make_user
from tests.support.accounts.resource_tokens import get_namespace
from tests.support.alerts.senders import connect
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
ROUNDS = 3


def test_no_alert_is_lost_during_transfers_of_groups(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    script = script_of(gatebell, owner)
    projects = [make_project(gatebell, owner) for _ in range(2)]
    first, second = (get_namespace(gatebell, "groups", each).id for each in projects)
    endpoint = connect(gatebell, projects[0])
    for number in range(ROUNDS):
        body = json.dumps({"title": f"alert {number}"}).encode()
        into = [
            partial(
                script.send_request, "POST", f"/groups/{each}/transfer", json={"group_id": other}
            )
            for each, other in ((first, second), (second, first))
        ]
        rename = partial(
            script.send_request, "PUT", f"/groups/{first}", json={"path": f"a{number}-{first}"}
        )
        send = partial(endpoint.post, body)
        create = partial(
            script.send_request,
            "POST",
            "/projects",
            json={"name": f"p{number}", "namespace_id": first},
        )
        answers = run_simultaneously([*into, rename, send, send, create])
        statuses(answers)
        assert [each.status_code for each in answers[3:5]] == [200, 200]
        # One transfer fails: it would make a cycle, or it does not find the former path.
        accepted, refused = sorted(each.status_code for each in answers[:2])
        assert (accepted, refused in {400, 404}) == (201, True)
        moved = first if answers[0].status_code == 201 else second
        made(script.send_request("POST", f"/groups/{moved}/transfer", json={}))
        if answers[5].status_code == 201:
            project = script.send_request("GET", f"/projects/{answers[5].json()['id']}").json()
            group = script.send_request("GET", f"/groups/{first}").json()
            assert project["namespace"]["full_path"] == group["full_path"]
    assert endpoint.post(b'{"title": "at the end"}').status_code == 200
