"""Tests of archived and deleted projects, and of deleted groups with their contents."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import func, select

from models import Alert, Delivery, Environment, Group, Integration, Member, Project
from tests.http.api.projects.test_projects_api import made, new_group, path_of, script_of
from tests.support.accounts.people import alice, database_of, make_project, make_user, signed_in
from tests.support.accounts.personal_tokens import Api
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token
from tests.support.alerts.senders import connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("postgres")


def owner_of(gatebell: LiveGatebell) -> Api:
    """Return an API client of alice, who owns the projects of endpoints."""
    return script_of(gatebell, alice(gatebell))


def rows(gatebell: LiveGatebell, project_id: int) -> dict[str, int]:
    tables: tuple[Any, ...] = (Alert, Delivery, Environment, Integration, Member)
    with database_of(gatebell) as session:
        return {
            table.__tablename__: session.scalar(
                select(func.count()).select_from(table).where(table.project_id == project_id)
            )
            or 0
            for table in tables
        }


@pytest.mark.long
@pytest.mark.both_databases
def test_an_archived_project_rejects_changes_and_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="before")
    script = owner_of(gatebell)
    url = path_of(endpoint.project)
    project = get_namespace(gatebell, "projects", endpoint.project)
    bot = make_bot_token(script, project)
    for _ in range(2):
        assert made(script.send_request("POST", f"{url}/archive"))["archived"] is True
    # Tokens of an archived project can still be revoked.
    assert script.send_request("DELETE", f"{project.by_id}/{bot.id}").status_code == 204
    refused = endpoint.post(json.dumps({"title": "while archived"}).encode())
    assert refused.status_code == 403
    assert "archived" in refused.json()["message"]
    for method, path, body in (
        ("PUT", url, {"name": "x"}),
        ("POST", f"{url}/environments", {"name": "prod"}),
        ("POST", f"{url}/access_tokens", {"name": "x", "scopes": ["api"]}),
        ("PUT", f"{url}/alert_management_alerts/1", {"status": "resolved"}),
    ):
        answer = script.send_request(method, path, json=body)
        assert (answer.status_code, "is archived" in answer.text) == (403, True), path
    assert [
        each["iid"] for each in script.send_request("GET", f"{url}/alert_management_alerts").json()
    ]
    assert made(script.send_request("POST", f"{url}/unarchive"))["archived"] is False
    endpoint.accepted(title="after")
    assert made(script.send_request("PUT", url, json={"name": "x"}), 200)["name"] == "x"
    kinds = [each.kind for each in list_events_with_subject(gatebell, endpoint.project)]
    assert kinds.count("project.archived") == kinds.count("project.unarchived") == 1


@pytest.mark.long
def test_the_pages_of_an_archived_project_show_a_notice_and_reject_changes(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    project, browser = make_project(gatebell, owner), signed_in(gatebell, owner)
    settings = f"{gatebell.url}/{project}/-/settings/general"
    page = browser.get(settings)
    assert "is archived" not in page.text
    assert submit(browser, page, form_to(page, "/archive")).status_code == 302
    for path in ("", "/-/settings/general", "/-/alerts"):
        page = browser.get(f"{gatebell.url}/{project}{path}")
        assert "This project is archived" in page.text
        assert "integrations/new" not in page.text
    token = page.text.partition('name="csrf_token"')[2].partition('value="')[2].partition('"')[0]
    answer = browser.post(settings, data={"csrf_token": token, "visibility": "public"})
    assert answer.status_code == 403
    assert "is archived" in answer.text
    page = browser.get(settings)
    assert submit(browser, page, form_to(page, "/unarchive")).status_code == 302
    assert "This project is archived" not in browser.get(settings).text
    kinds = [each.kind for each in list_events_with_subject(gatebell, project)]
    assert kinds == ["project.unarchived", "project.archived"]


@pytest.mark.both_databases
def test_a_project_without_monitoring_rejects_and_hides_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    script, url = owner_of(gatebell), path_of(endpoint.project)
    levels = {"monitor_access_level": "disabled", "environments_access_level": "disabled"}
    made(script.send_request("PUT", url, json=levels), 200)
    refused = endpoint.post(json.dumps({"title": "unseen"}).encode())
    assert (refused.status_code, "turned off" in refused.text) == (403, True)
    for path in ("alert_management_alerts", "alert_management_integrations", "environments"):
        answer = script.send_request("GET", f"{url}/{path}")
        assert (answer.status_code, "turned off" in answer.text) == (403, True), path
    made(script.send_request("PUT", url, json={"monitor_access_level": "private"}), 200)
    endpoint.accepted(title="seen")


@pytest.mark.long
@pytest.mark.both_databases
def test_a_deleted_project_disappears_immediately_and_its_rows_are_pruned(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    for number in range(3):
        endpoint.accepted(title=f"a{number}", platform_environment_name="prod")
    endpoint.accepted(title="a0", platform_environment_name="prod")
    script, url = owner_of(gatebell), path_of(endpoint.project)
    project = get_namespace(gatebell, "projects", endpoint.project)
    bot = Api(gatebell, make_bot_token(script, project).clear)
    answer = script.send_request("DELETE", url)
    assert (answer.status_code, answer.json()) == (202, {"message": "202 Accepted"})
    assert endpoint.post(json.dumps({"title": "late"}).encode()).status_code == 404
    assert bot.send_request("GET", "/user").status_code == 401
    for path in (url, f"/projects/{project.id}", f"{url}/environments"):
        assert script.send_request("GET", path).status_code == 404
    assert script.send_request("DELETE", f"/projects/{project.id}").status_code == 404
    listed = script.send_request(
        "GET", f"/projects?membership=true&id_after={project.id - 1}"
    ).json()
    assert project.id not in {each["id"] for each in listed}
    group = script.send_request("GET", f"/groups/{endpoint.project.partition('/')[0]}").json()
    again = {"path": "shop", "namespace_id": group["id"]}
    new = made(script.send_request("POST", "/projects", json=again))
    assert new["id"] != project.id
    assert rows(gatebell, project.id)["alerts"] == 3
    gatebell.cli("prune")
    assert set(rows(gatebell, project.id).values()) == {0}
    with database_of(gatebell) as session:
        assert session.get(Project, project.id) is None
    assert made(script.send_request("GET", url), 200)["id"] == new["id"]
    (event,) = (
        each
        for each in list_events_with_subject(gatebell, endpoint.project)
        if each.kind == "project.deleted"
    )
    assert event.actor_id


@pytest.mark.long
@pytest.mark.both_databases
def test_a_deleted_group_takes_its_subgroups_and_projects_with_it(gatebell: LiveGatebell) -> None:
    script = script_of(gatebell)
    top = new_group(script)
    below = made(script.send_request("POST", "/groups", json={"path": "b", "parent_id": top["id"]}))
    shop = {"path": "shop", "namespace_id": below["id"], "visibility": "public"}
    project = made(script.send_request("POST", "/projects", json=shop))
    answer = script.send_request("DELETE", f"/groups/{top['id']}")
    assert (answer.status_code, answer.json()) == (202, {"message": "202 Accepted"})
    paths = (top["full_path"], below["full_path"])
    for path in (*paths, *(str(each["id"]) for each in (top, below))):
        assert script.send_request("GET", f"/groups/{quote(path, safe='')}").status_code == 404
    assert script.send_request("GET", f"/projects/{project['id']}").status_code == 404
    body = {"path": "late", "parent_id": below["id"]}
    assert script.send_request("POST", "/groups", json=body).status_code == 404
    again = made(script.send_request("POST", "/groups", json={"path": top["path"]}))
    # The newest project and its group are kept, so that the id is not reused.
    made(script.send_request("POST", "/projects", json={"path": "x", "namespace_id": again["id"]}))
    gatebell.cli("prune")
    with database_of(gatebell) as session:
        left = session.scalars(select(Group.id).where(Group.id.in_([top["id"], below["id"]])))
        assert left.all() == []
    assert made(script.send_request("GET", f"/groups/{top['path']}"), 200)["id"] == again["id"]


@pytest.mark.long
def test_the_newest_row_is_kept_so_that_its_id_is_not_reused(live_sqlite: LiveGatebell) -> None:
    script = script_of(live_sqlite)
    group = new_group(script)
    body = {"path": "shop", "namespace_id": group["id"]}
    first = made(script.send_request("POST", "/projects", json=body))["id"]
    assert script.send_request("DELETE", f"/projects/{first}").status_code == 202
    live_sqlite.cli("prune")
    assert made(script.send_request("POST", "/projects", json=body))["id"] > first
