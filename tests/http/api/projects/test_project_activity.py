"""Tests of the time of the last activity in a project, and of the avatars of users."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import update

from domain.access.roles import Role
from models import Project
from tests.http.api.projects.test_projects_api import made, new_group, path_of
from tests.support.accounts.people import alice, database_of, make_user, now
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.git.client import GitClient
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases


def old_project(gatebell: LiveGatebell, script: Api) -> dict[str, Any]:
    """Return a public project that was created ten days ago."""
    group = new_group(script)
    body = {"path": "shop", "namespace_id": group["id"], "visibility": "public"}
    number = made(script.send_request("POST", "/projects", json=body))["id"]
    with database_of(gatebell) as session:
        long_ago = now() - timedelta(days=10)
        session.execute(update(Project).where(Project.id == number).values(created_at=long_ago))
    return made(script.send_request("GET", f"/projects/{number}"), 200)


def script_of(gatebell: LiveGatebell) -> Api:
    return Api(gatebell, make_token(gatebell, make_user(gatebell)).clear)


def activity(script: Api, project: dict[str, Any]) -> datetime:
    found = made(script.send_request("GET", f"/projects/{project['id']}"), 200)
    return datetime.fromisoformat(found["last_activity_at"])


def is_of_now(moment: datetime) -> bool:
    return abs(moment - now()) < timedelta(minutes=5)


@pytest.mark.long
def test_releases_and_deployments_count_as_activity(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    bodies = {
        "release": {"tag_name": "v1", "released_at": "2020-01-01T00:00:00Z"},
        "deployment": {
            "environment": "production",
            "sha": "a" * 40,
            "ref": "main",
            "tag": False,
            "status": "success",
        },
    }
    for what, body in bodies.items():
        project = old_project(gatebell, script)
        # Until then, the last activity of the project is its creation.
        assert project["last_activity_at"] == project["created_at"]
        assert project["ssh_url_to_repo"] == project["http_url_to_repo"]
        assert project["avatar_url"] is None
        made(script.send_request("POST", f"/projects/{project['id']}/{what}s", json=body))
        assert is_of_now(activity(script, project))


@pytest.mark.long
def test_an_alert_counts_as_activity_for_users_who_can_see_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    owner = Api(gatebell, make_token(gatebell, alice(gatebell)).clear)
    project = made(owner.send_request("GET", path_of(endpoint.project)), 200)
    url = f"/projects/{project['id']}"
    made(owner.send_request("PUT", url, json={"visibility": "public"}), 200)
    with database_of(gatebell) as session:
        long_ago = now() - timedelta(days=10)
        whole = update(Project).where(Project.id == project["id"])
        session.execute(whole.values(created_at=long_ago))
    endpoint.accepted(title="Disk full")
    guest, developer = make_user(gatebell), make_user(gatebell)
    give_role(gatebell, endpoint.project, guest, Role.GUEST)
    give_role(gatebell, endpoint.project, developer, Role.DEVELOPER)
    scripts = [Api(gatebell, make_token(gatebell, each).clear) for each in (guest, developer)]
    seen = [is_of_now(activity(each, project)) for each in (owner, *scripts)]
    assert seen == [True, False, True]
    anyone = machine(gatebell).get(f"{gatebell.url}/api/v4{url}").json()
    assert not is_of_now(datetime.fromisoformat(anyone["last_activity_at"]))


def test_a_push_counts_as_activity(gatebell: LiveGatebell, tmp_path: Path) -> None:
    script = script_of(gatebell)
    project = old_project(gatebell, script)
    git = GitClient(gatebell=gatebell, home=tmp_path, token=script.token)
    work = git.new_work({"README.md": b"# Shop\n"})
    git.do("-C", str(work), "push", git.url(project["path_with_namespace"]), "main")
    assert is_of_now(activity(script, project))


@pytest.mark.long
def test_lists_can_be_filtered_and_sorted_by_activity(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    quiet, busy = old_project(gatebell, script), old_project(gatebell, script)
    made(script.send_request("POST", f"/projects/{busy['id']}/releases", json={"tag_name": "v1"}))
    since = quote((now() - timedelta(days=1)).isoformat())
    both = [busy["id"], quiet["id"]]

    def ids(query: str) -> list[int]:
        answer = script.send_request("GET", f"/projects?membership=true&{query}")
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()]

    assert ids("order_by=last_activity_at") == both
    assert ids("order_by=updated_at&sort=asc") == both[::-1]
    assert ids(f"last_activity_after={since}") == [busy["id"]]
    assert ids(f"last_activity_before={since}") == [quiet["id"]]
    assert ids(f"updated_after={since}") == [busy["id"]]
    assert ids(f"last_activity_after={since}&last_activity_before={since}") == []


def test_a_user_has_the_same_avatar_in_all_responses(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, person).clear)
    own = made(script.send_request("GET", "/user"), 200)
    group = new_group(script)
    (listed,) = script.send_request("GET", f"/users?username={person.username}").json()
    (member,) = script.send_request("GET", f"/groups/{group['id']}/members").json()
    (member_of_all,) = script.send_request("GET", f"/groups/{group['id']}/members/all").json()
    body = {"path": "shop", "namespace_id": group["id"]}
    project = made(script.send_request("POST", "/projects", json=body))
    release = made(
        script.send_request("POST", f"/projects/{project['id']}/releases", json={"tag_name": "v1"})
    )
    found = (own, listed, member, member_of_all, release["author"])
    assert len({each["avatar_url"] for each in found}) == 1
    assert machine(gatebell).get(own["avatar_url"]).headers["Content-Type"].startswith("image/svg")
