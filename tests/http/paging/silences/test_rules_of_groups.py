"""Silences and maintenance windows of a group, which apply to all projects below it."""

from typing import Any

import pytest
import requests

from domain.access.roles import Role
from tests.http.paging.silences.conftest import Project
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import alice, make_project
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.spec("J1"), pytest.mark.both_databases]

WEB = 'service="web"'


def group_of(project: Project) -> str:
    return project.path.rpartition("/")[0]


def member_of(project: Project, role: Role, path: str) -> ApiCaller:
    """Return an API caller of a member of the project's group, below a path of the API."""
    person = person_for(project.gatebell, role)
    give_role(project.gatebell, group_of(project), person, role)
    return api_caller(project.gatebell, person, path)


def mute_of(project: Project, iid: int) -> Any:
    call = member_of(project, Role.DEVELOPER, f"/projects/{project.path}")
    return call.done("GET", f"/alerts/{iid}/mute")


@pytest.mark.long
def test_a_silence_of_a_group_applies_only_to_its_projects(
    project: Project, gatebell: LiveGatebell
) -> None:
    elsewhere = Project(gatebell, connect(gatebell, make_project(gatebell, alice(gatebell))))
    alerts = [
        (each, each.endpoint.accepted(title="Down", service="web")["iid"])
        for each in (project, elsewhere)
    ]
    group = group_of(project)
    call = member_of(project, Role.DEVELOPER, f"/groups/{group}")
    made = call.done("POST", "/silences", json={"matchers": WEB, "duration": "2h"}, status=201)
    assert (made["group"], made["web_url"]) == (
        group,
        f"{gatebell.url}/groups/{group}/-/silences/{made['id']}",
    )
    (here, there) = (mute_of(*each) for each in alerts)
    assert (here["muted"], here["group"], here["id"]) == (True, group, made["id"])
    assert there["muted"] is False
    preview = call.done("GET", "/silences/preview", params={"matchers": WEB})
    assert [each["project"] for each in preview["alerts"]] == [project.path]
    of_project = member_of(project, Role.DEVELOPER, f"/projects/{project.path}")
    assert of_project.done("GET", "/silences") == []
    asked = {"include_ancestor_groups": "true"}
    assert of_project.done("GET", "/silences", params=asked) == [made]
    of_project.refused("GET", f"/silences/{made['id']}", status=404)
    call.done("DELETE", f"/silences/{made['id']}", status=204)
    assert mute_of(*alerts[0])["muted"] is False


@pytest.mark.long
def test_a_window_of_a_group_mutes_alerts_of_its_projects(project: Project) -> None:
    iid = project.endpoint.accepted(title="Down", service="web")["iid"]
    group = group_of(project)
    call = member_of(project, Role.MAINTAINER, f"/groups/{group}")
    window = {"name": "Move", "starts_at": "2026-01-01T00:00", "duration": "24h", "repeat": "daily"}
    made = call.done("POST", "/maintenance_windows", json=window, status=201)
    assert made["group"] == group
    mute = mute_of(project, iid)
    assert (mute["kind"], mute["group"], mute["name"]) == ("maintenance", group, "Move")
    of_project = member_of(project, Role.DEVELOPER, f"/projects/{project.path}")
    asked = {"include_ancestor_groups": "true"}
    assert of_project.done("GET", "/maintenance_windows", params=asked) == [made]
    assert of_project.done("GET", "/maintenance_windows") == []
    call.done("DELETE", f"/maintenance_windows/{made['id']}", status=204)
    assert mute_of(project, iid)["muted"] is False


@pytest.mark.long
def test_pages_of_a_project_show_silences_of_its_group(project: Project) -> None:
    project.endpoint.accepted(title="Down", service="web")
    group = group_of(project)
    browser: requests.Session = browser_of(project.gatebell, group, Role.DEVELOPER)
    at = f"{project.gatebell.url}/groups/{group}/-"
    overview = browser.get(f"{project.gatebell.url}/{group}")
    assert f"/groups/{group}/-/on_call" in overview.text
    member_of(project, Role.DEVELOPER, f"/groups/{group}").done(
        "POST", "/silences", json={"matchers": WEB, "duration": "2h"}, status=201
    )
    listed = browser.get(f"{at}/silences")
    assert "service=&#34;web&#34;" in listed.text
    assert browser.get(f"{at}/silences/new").status_code == 200
    assert browser.get(f"{at}/maintenance_windows").status_code == 200
    of_project = browser.get(f"{project.url}/silences")
    assert "From groups above" in of_project.text
    assert f"/groups/{group}/-/silences/" in of_project.text
    # A user who cannot open the group's page gets no link to it.
    outsider = browser_of(project.gatebell, project.path, Role.MAINTAINER)
    of_project = outsider.get(f"{project.url}/silences")
    assert f"from {group}" in of_project.text
    assert f"/groups/{group}/-/silences/" not in of_project.text
    alert = browser.get(f"{project.url}/alerts/1")
    assert f"</a></strong> in group {group} until" in alert.text


def test_a_guest_of_a_group_and_a_personal_namespace_have_no_silences(project: Project) -> None:
    group = group_of(project)
    guest = member_of(project, Role.GUEST, f"/groups/{group}")
    assert "Developer role" in guest.refused("GET", "/silences", status=403)
    me = person_for(project.gatebell, Role.DEVELOPER)
    own = api_caller(project.gatebell, me, f"/groups/{me.username}")
    refused = own("POST", "/silences", json={"matchers": WEB, "duration": "2h"})
    assert refused.status_code in {403, 404}
