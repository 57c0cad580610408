"""Incidents after removed members, deleted users, archived projects and deleted payloads."""

import pytest
from sqlalchemy import delete, select

from domain.housekeeping.deletion import remove_deleted_namespaces
from domain.projects.deletion import delete_project
from models import AlertFollower, Delivery, Incident, IncidentAlert, IncidentNote
from tests.support.accounts.namespaces import get_namespace
from tests.support.alerts.incidents import PROJECT, IncidentProject
from tests.support.service.commands import operate
from web.extensions import db


def test_a_former_member_stays_assigned_until_removed(project: IncidentProject) -> None:
    operate(project.app, "users", "create", "bob", "--email", "bob@people.example")
    operate(project.app, "members", "add", PROJECT, "bob", "Developer")
    project.api("POST", "/incidents", code=201, title="x", assignees="alice,bob")
    operate(project.app, "members", "remove", PROJECT, "bob")
    project.api("PUT", "/incidents/1", assignees=["bob"])
    project.api("PUT", "/incidents/1", assignees=[])
    project.api("PUT", "/incidents/1", code=400, assignees=["bob"])
    assert project.timeline(1) == [
        *("opened", "assigned @alice", "assigned @bob"),
        *("unassigned @alice", "unassigned @bob"),
    ]


@pytest.mark.long
def test_a_deleted_user_is_anonymized_in_incidents(project: IncidentProject) -> None:
    operate(project.app, "users", "create", "bob", "--email", "bob@people.example")
    operate(project.app, "members", "add", PROJECT, "bob", "Developer")
    bob = project.token_of("bob")
    project.api("POST", "/incidents", code=201, token=bob, title="x", assignees="bob")
    project.api("POST", "/incidents/1/notes", code=201, token=bob, body="Looking")
    operate(project.app, "users", "delete", "bob")
    incident = project.api("GET", "/incidents/1")
    assert incident["assignees"] == []
    notes = project.api("GET", "/incidents/1/notes")
    assert "bob" not in str([incident, notes])
    assert notes[0]["body"] == "Looking"
    assert notes[0]["author"]["username"].startswith("deleted user")


@pytest.mark.long
def test_incidents_of_an_archived_project_are_read_only(
    project: IncidentProject,
) -> None:
    project.api("POST", "/incidents", code=201, title="x")
    project.api("POST", "/archive", code=201)
    assert len(project.incidents()) == 1
    project.api("PUT", "/incidents/1", code=403, status="resolved")
    project.api("POST", "/incidents/1/notes", code=403, body="x")
    project.api("POST", "/incident_rules", code=403, name="x")
    done = project.app.test_cli_runner().invoke(
        args=("incidents", "update", PROJECT, "1", "--status", "resolved")
    )
    assert done.exit_code == 1
    project.api("POST", "/unarchive", code=201)
    project.api("PUT", "/incidents/1", status="resolved")
    # Incidents are hidden while monitoring is turned off.
    project.api("PUT", "", monitor_access_level="disabled")
    project.api("GET", "/incidents", code=403)


@pytest.mark.long
def test_an_alert_without_a_stored_payload_opens_an_incident(
    project: IncidentProject,
) -> None:
    project.fire("a")
    with project.app.app_context():
        db.session.execute(delete(Delivery))
        db.session.commit()
    made = project.api("POST", "/incidents", code=201, alerts=[1])
    assert made["title"] == "a"
    project.rule(labels={"team": "db"})
    project.api("PUT", "/incidents/1", status="resolved")
    project.api("PUT", "/alert_management_alerts/1", status="triggered")
    project.run()
    assert len(project.incidents()) == 1  # Without its payload the alert has no labels.


@pytest.mark.long
def test_alerts_are_followed_only_while_rules_or_open_incidents_exist(
    project: IncidentProject,
) -> None:
    def follows() -> bool:
        with project.app.app_context():
            return db.session.scalar(select(AlertFollower.follower)) == "incidents"

    assert not follows()
    rule = project.rule()
    project.fire("a")
    project.api("DELETE", f"/incident_rules/{rule['id']}", code=204)
    assert follows()
    project.api("PUT", "/incidents/1", status="resolved")
    assert not follows()
    project.api("PUT", "/incidents/1", status="triggered")
    assert follows()
    project.api("DELETE", "/incidents/1", code=204)
    assert not follows()


@pytest.mark.long
def test_a_thousand_alerts_are_opened_and_closed_in_bulk(project: IncidentProject) -> None:
    project.rule(close_when_resolved=True)
    names = [f"a{number}" for number in range(1_000)]
    project.fire(*names)
    assert sum(each["alerts_count"] for each in project.incidents("&per_page=100")) == 1_000
    project.recover(*names)
    assert {each["status"] for each in project.incidents("&per_page=100")} == {"resolved"}


@pytest.mark.long
def test_incidents_of_a_deleted_project_are_removed(project: IncidentProject) -> None:
    project.rule()
    project.fire("a", "b")
    project.api("POST", "/incidents/1/notes", code=201, body="x")
    operate(project.app, "projects", "create", "acme/newer")
    with project.app.app_context():
        session = db.session()
        delete_project(get_namespace(PROJECT, session=session), session=session, now=project.now)
        session.commit()
        removed = remove_deleted_namespaces(
            remove_files=lambda *_: None,
            session=session,
            commit_batch=session.commit,
            now=project.now,
        )
        assert removed["projects"] == 1
        for table in (Incident, IncidentAlert, IncidentNote):
            assert session.execute(select(table)).all() == []
