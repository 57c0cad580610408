"""A python-gitlab script sets up a project for alerts and works on the alerts.

The library has groups, projects and members. Resources that GitLab's REST API lacks are requested
with its `http_…` methods, which handle pages and errors in the same way.
"""

from collections.abc import Callable
from typing import Any

import gitlab
import pytest
import requests
from gitlab.exceptions import GitlabHttpError

from domain.access.roles import Role
from tests.stories.conftest import OpenGitlab
from tests.support.accounts.people import Person, make_project, make_user, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role, take_role
from tests.support.alerts.senders import captured
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases
Open = Callable[[Person], gitlab.Gitlab]


@pytest.fixture
def connect(gatebell: LiveGatebell, open_gitlab: OpenGitlab) -> Open:
    """Opens the library with a user's token."""
    return lambda person: open_gitlab(make_token(gatebell, person, scopes="api").clear)


def post_alert(integration: dict[str, Any], body: bytes) -> list[dict[str, Any]]:
    """Send alerts as a monitoring system does, to the URL and with the key of an integration."""
    with requests.Session() as session:
        session.trust_env = False
        answer = session.post(
            integration["url"],
            data=body,
            headers={
                "Authorization": f"Bearer {integration['key']}",
                "Content-Type": "application/json",
            },
            timeout=60,
        )
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


@pytest.mark.spec("G1", "G5", "H2", "I1", "J5")
def test_a_script_sets_up_a_project_and_acknowledges_an_alert(
    gatebell: LiveGatebell, connect: Open
) -> None:
    alice, bob = make_user(gatebell, name="alice"), make_user(gatebell, name="bob")
    library = connect(alice)

    group = library.groups.create({"name": "Acme", "path": unique("acme")})
    project = library.projects.create({"name": "Shop", "namespace_id": group.id})
    give_role(gatebell, project.path_with_namespace, bob, Role.DEVELOPER)
    at = f"/projects/{project.id}"
    integration = library.http_post(
        f"{at}/alert_management_integrations",
        post_data={"type": "prometheus", "name": "Alertmanager"},
    )
    assert isinstance(integration, dict)
    sent = post_alert(integration, captured("17_prometheus_instance_down_2.json"))

    alerts = f"{at}/alert_management_alerts"
    on_call = connect(bob)
    listed = list(on_call.http_list(alerts, iterator=True, sort="oldest"))
    assert [{"iid": each["iid"], "title": each["title"]} for each in listed] == sent
    alert = listed[0]
    one = f"{alerts}/{alert['iid']}"
    taken = on_call.http_put(one, post_data={"status": "acknowledged", "assignee": bob.username})
    assert isinstance(taken, dict)
    assert (taken["status"], taken["assignee"]) == ("acknowledged", bob.username)
    on_call.http_post(f"{one}/notes", post_data={"body": "Looking at it."})
    mine = on_call.http_list("/alert_management_alerts", status="acknowledged")
    assert [each["id"] for each in mine] == [alert["id"]]

    assert post_alert(integration, captured("18_prometheus_resolved_2.json")) == sent
    shown = library.http_get(one)
    assert isinstance(shown, dict)
    assert shown["status"] == "resolved"
    activity = library.http_list(f"{one}/activity", get_all=True)
    assert [(each["kind"], each["text"]) for each in activity] == [
        ("note", "Looking at it."),
        ("assignee", bob.username),
        ("status", "acknowledged"),
    ]
    deliveries = library.http_list(
        f"{at}/alert_management_integrations/{integration['id']}/deliveries", iterator=True
    )
    assert [each["outcome"] for each in deliveries] == ["accepted"] * 2


@pytest.mark.long
@pytest.mark.spec("H5", "H7")
def test_a_script_rotates_keys_and_manages_alerts(gatebell: LiveGatebell, connect: Open) -> None:
    alice, bob = make_user(gatebell, name="alice"), make_user(gatebell, name="bob")
    library = connect(alice)
    group = library.groups.create({"name": "Acme", "path": unique("acme")})
    project = library.projects.create({"name": "Shop", "namespace_id": group.id})
    give_role(gatebell, project.path_with_namespace, bob, Role.MAINTAINER)
    integrations = f"/projects/{project.id}/alert_management_integrations"
    on_call = connect(bob)
    made = on_call.http_post(integrations, post_data={"type": "http"})
    assert isinstance(made, dict)
    for number in range(25):
        post_alert(made, b'{"title": "alert %d"}' % number)
    alerts = f"/projects/{project.id}/alert_management_alerts"
    titles = [each["title"] for each in on_call.http_list(alerts, iterator=True, per_page=10)]
    assert titles == [f"alert {number}" for number in reversed(range(25))]

    # The key leaked, so a new one replaces it immediately.
    renewed = library.http_post(f"{integrations}/{made['id']}/keys")
    assert isinstance(renewed, dict)
    with pytest.raises(AssertionError, match="401"):
        post_alert(made, b"{}")
    post_alert(renewed, b"{}")

    # Bob leaves the project, so his script has no access; his changes stay.
    take_role(gatebell, project.path_with_namespace, bob)
    for method in (on_call.http_get, on_call.http_delete):
        with pytest.raises(GitlabHttpError) as refused:
            method(f"{integrations}/{made['id']}")
        assert refused.value.response_code == 404
    report = library.http_put(
        f"{alerts}/status", post_data={"status": "resolved", "filter": {"status": "open"}}
    )
    assert isinstance(report, dict)
    assert len(report["changed"]) == 26

    library.http_delete(f"{integrations}/{made['id']}")
    assert library.http_list(integrations) == []
    with pytest.raises(AssertionError, match="404"):
        post_alert(renewed, b"{}")


@pytest.mark.one_database("sqlite")
@pytest.mark.spec("G1", "J2")
def test_an_incident_is_opened_commented_and_closed(gatebell: LiveGatebell, connect: Open) -> None:
    person = make_user(gatebell)
    script = connect(person)
    project = script.projects.get(make_project(gatebell, person))
    at = f"/projects/{project.id}/incidents"
    for title in ("Search is slow", "Checkout is down"):
        script.http_post(at, post_data={"title": title, "severity": "high"})
    found = script.http_list(at, iterator=True, per_page=1, sort="oldest")
    assert [each["title"] for each in found] == ["Search is slow", "Checkout is down"]
    note = script.http_post(f"{at}/2/notes", post_data={"body": "Rolling back", "internal": True})
    assert isinstance(note, dict)
    with pytest.raises(GitlabHttpError) as refused:
        script.http_put(f"{at}/2/notes/{note['id']}", post_data={"internal": False})
    assert refused.value.response_code == 400
    assert "Confidentiality of notes" in str(refused.value)
    closed = script.http_put(f"{at}/2", post_data={"status": "resolved"})
    assert isinstance(closed, dict)
    assert closed["status"] == "resolved"
    said = script.http_list(f"{at}/2/notes", iterator=True, per_page=2, sort="asc")
    assert [each["body"] for each in said] == ["opened", "Rolling back", "closed it"]
