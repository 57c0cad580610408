"""Tests of concurrent changes to keys, integrations and alerts."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from domain.alerts.integrations.actions import change_integration, rotate_key, show_credentials
from domain.alerts.integrations.types import IntegrationChange, KeyRotation
from domain.core.errors import ConflictError, InvalidError
from domain.core.grace_period import GracePeriod
from models import Integration
from tests.support.accounts.people import alice, database_of, make_project, now
from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_integrations
from tests.support.database.work import project_in, work_in
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell

CROWD = 8


@pytest.mark.long
@pytest.mark.spec("H5")
def test_only_one_concurrent_reset_of_a_key_succeeds(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    with database_of(gatebell) as session:
        work, project = (
            work_in(session, service=gatebell),
            project_in(session, session.get_one(Integration, endpoint.id).project_id),
        )
        seen = show_credentials(work, project, endpoint.id).current_key.id

    def reset() -> str:
        try:
            with database_of(gatebell) as session:
                work = work_in(session, service=gatebell)
                until = GracePeriod.DAY.compute_end(work.now)
                rotation = KeyRotation(key_id=seen, previous_key_expires_at=until)
                return rotate_key(work, project, endpoint.id, rotation).key
        except ConflictError:
            return ""

    (winner,) = filter(None, run_simultaneously([reset] * CROWD))
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert row.previous_key_expires_at is not None
    assert row.previous_key_expires_at > now() + timedelta(hours=23)
    renewed = replace(endpoint, key=winner)
    assert [each.send().status_code for each in (endpoint, renewed)] == [200, 200]


@pytest.mark.long
@pytest.mark.spec("H11")
def test_a_link_and_an_endpoint_cannot_both_be_enabled(gatebell: LiveGatebell) -> None:
    change = IntegrationChange(name="On", active=True, api_url="https://pager.example")

    def turn_on(integration_id: int) -> str:
        try:
            with database_of(gatebell) as session:
                project_id = session.get_one(Integration, integration_id).project_id
                project = project_in(session, project_id)
                change_integration(work_in(session), project, integration_id, change)
        except InvalidError:
            return ""
        return "on"

    for _ in range(4):
        endpoint = connect(gatebell, active=False)
        link = connect(gatebell, endpoint.project, kind="external", name="Pager", active=False)
        told = run_simultaneously([partial(turn_on, each.id) for each in (endpoint, link)])
        assert sorted(told) == ["", "on"]
        active = [row.active for row in list_stored_integrations(gatebell, endpoint.project)]
        assert sorted(active) == [False, True]


@pytest.mark.spec("H3", "H9")
def test_only_one_script_creates_the_first_integration(
    gatebell: LiveGatebell,
) -> None:
    project = make_project(gatebell, alice(gatebell))
    script = script_of(gatebell, project, "alert_management_integrations")
    answers = run_simultaneously([partial(script.post, type="http")] * CROWD)
    assert sorted(each.status_code for each in answers) == [201, *[400] * (CROWD - 1)]
    assert len(list_stored_integrations(gatebell, project)) == 1


@pytest.mark.spec("H5")
def test_only_one_script_can_replace_a_key(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    at = f"alert_management_integrations/{endpoint.id}/keys"
    script = script_of(gatebell, endpoint.project, at)
    (key,) = script.get()
    answers = run_simultaneously([partial(script.post, key_id=key["id"])] * CROWD)
    assert sorted(each.status_code for each in answers) == [201, *[409] * (CROWD - 1)]
    (winner,) = (each.json() for each in answers if each.status_code == 201)
    assert [each["id"] for each in winner["keys"]] == [each["id"] for each in script.get()]
    assert replace(endpoint, key=winner["key"]).send().status_code == 200


@pytest.mark.long
def test_all_concurrent_changes_of_an_alert_are_applied(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    script = script_of(gatebell, endpoint.project, "alert_management_alerts")
    changes = [
        partial(script.put, "/1", status="acknowledged"),
        partial(script.put, "/1", assignee=alice(gatebell).username),
        partial(script.put, "/status", status="acknowledged", filter={}),
        partial(script.post, "/1/notes", body="a note"),
    ]
    codes = {each.status_code for each in run_simultaneously(changes * (CROWD // len(changes)))}
    assert codes == {200, 201}
    kinds = [each["kind"] for each in script.get("/1/activity", params={"per_page": 100})]
    assert kinds.count("status") == kinds.count("assignee") == 1
    assert kinds.count("note") == CROWD // len(changes)
