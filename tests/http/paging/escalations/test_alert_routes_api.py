"""The API /api/v4/projects/:id/alert_routes: an ordered list, and its dry run."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from models import Alert
from tests.http.paging.escalations.test_escalation_policies_api import project_of
from tests.support.accounts.api_caller import ApiCaller
from tests.support.accounts.people import alice, database_of, unique
from tests.support.alerts.senders import connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

NOBODY = {"escalation_policy_id": None}


def names(call: ApiCaller) -> list[tuple[int, str]]:
    return [(each["position"], each["name"]) for each in call.done("GET", "/alert_routes")]


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J1")
def test_routes_are_ordered(gatebell: LiveGatebell) -> None:
    _, call, _ = project_of(gatebell)
    made = {
        name: call.done("POST", "/alert_routes", status=201, json={"name": name, **NOBODY, **more})
        for name, more in {"a": {}, "b": {}, "c": {"position": 1}, "d": {"position": 99}}.items()
    }
    assert names(call) == [(1, "c"), (2, "a"), (3, "b"), (4, "d")]
    call.done("PUT", f"/alert_routes/{made['d']['id']}", json={"position": 2})
    assert names(call) == [(1, "c"), (2, "d"), (3, "a"), (4, "b")]
    call.done("DELETE", f"/alert_routes/{made['d']['id']}", status=204)
    assert names(call) == [(1, "c"), (2, "a"), (3, "b")]


@pytest.mark.long
def test_an_update_keeps_omitted_conditions(gatebell: LiveGatebell) -> None:
    _, call, bob = project_of(gatebell)
    policy = call.done(
        "POST",
        "/escalation_policies",
        status=201,
        json={"name": "Night", "steps": [f"0s user:{bob.username}"]},
    )
    sent = {
        "name": "Db",
        "severities": ["critical", "high"],
        "environments": ["prod*"],
        "services": ["db"],
        "labels": {"team": "db"},
        "escalation_policy_id": policy["id"],
    }
    made = call.done("POST", "/alert_routes", status=201, json=sent)
    assert {name: made[name] for name in sent} == {**sent, "labels": ['team="db"']}
    at = f"/alert_routes/{made['id']}"
    changed = call.done("PUT", at, json={"services": [], "labels": 'host=~"web.*"'})
    assert changed["services"] == []
    assert changed["labels"] == ['host=~"web.*"']
    assert (changed["environments"], changed["escalation_policy_id"]) == (["prod*"], policy["id"])
    assert call.done("PUT", at, json={"escalation_policy_id": None})["escalation_policy_id"] is None


@pytest.mark.long
def test_only_actual_changes_of_a_route_are_in_the_audit_log(
    gatebell: LiveGatebell,
) -> None:
    _, call, bob = project_of(gatebell)
    steps = {"name": "Night", "steps": [f"0s user:{bob.username}"]}
    policy = call.done("POST", "/escalation_policies", status=201, json=steps)
    first, second = unique("db"), unique("db")
    sent = {"name": first, "escalation_policy_id": policy["id"]}
    made = call.done("POST", "/alert_routes", status=201, json=sent)
    for body in ({**sent, "name": second}, {**sent, "name": second}, {"services": ["db"]}):
        call.done("PUT", f"/alert_routes/{made['id']}", json=body)
    assert [each.kind for each in list_events_with_subject(gatebell, first)] == [
        "alert_route.created"
    ]
    kinds = [each.kind for each in list_events_with_subject(gatebell, second)]
    assert kinds == ["alert_route.changed"] * 2


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "`name` is missing"),
    ({"name": "r"}, "`escalation_policy_id` is missing"),
    ({"name": "r", "severities": ["urgent"]}, '"urgent" is not a severity'),
    ({"name": "r", "labels": "team"}, "Character"),
    ({"name": "r", "labels": 'team=~"("'}, "Character"),
    ({"name": "r", "labels": 7}, "labels"),
    ({"name": "r", "environments": 7}, "`environments` must be a list"),
    ({"name": "r", "environments": [""]}, "environments"),
    (
        {"name": "r", "escalation_policy_id": 2**31},
        'Escalation policy "2147483648" not found here',
    ),
    ({"name": "r", "position": 0}, "`position` must be at least 1"),
)


@pytest.mark.long
def test_invalid_routes_are_rejected_with_a_reason(gatebell: LiveGatebell) -> None:
    _, call, _ = project_of(gatebell)
    for body, problem in WRONG:
        whole = body if body in ({}, {"name": "r"}) else {**NOBODY, **body}
        assert problem in call.refused("POST", "/alert_routes", json=whole), body


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J1")
def test_a_dry_run_shows_the_pages_of_past_alerts(gatebell: LiveGatebell) -> None:
    path, call, bob = project_of(gatebell)
    me = alice(gatebell).username
    endpoint = connect(gatebell, path)
    for title, severity in (("Disk", "critical"), ("Load", "low")):
        endpoint.accepted(title=title, severity=severity)
    opened = datetime.now(UTC) - timedelta(hours=2)
    with database_of(gatebell) as session:
        iids = (Alert.iid <= 2) & (Alert.title.in_(("Disk", "Load")))
        session.execute(
            update(Alert)
            .where(iids, Alert.project_id == call.done("GET")["id"])
            .values(created_at=opened, started_at=opened, last_event_at=opened)
        )
        session.execute(
            update(Alert)
            .where(Alert.project_id == call.done("GET")["id"], Alert.title == "Disk")
            .values(
                status="resolved",
                ended_at=opened + timedelta(minutes=7),
                last_event_at=opened + timedelta(minutes=7),
            )
        )
    steps = [f"0s user:{me}", f"5m user:{bob.username}", f"9m user:{me}"]
    body = {"name": "Night", "steps": steps}
    policy = call.done("POST", "/escalation_policies", status=201, json=body)
    route = {"name": "R", "severities": ["critical"], "escalation_policy_id": policy["id"]}
    call.done("POST", "/alert_routes", status=201, json=route)
    found = call.done("POST", "/alert_routes/dry_run")
    assert found["truncated"] is False
    load, disk = sorted(found["alerts"], key=lambda each: -each["iid"])
    assert (load["route"], load["escalation_policy"], load["pages"]) == (None, None, [])
    assert (disk["route"], disk["escalation_policy"]) == ("R", "Night")
    assert [(page["user"], page["step"]) for page in disk["pages"]] == [(me, 1), (bob.username, 2)]
    late = datetime.fromisoformat(disk["pages"][1]["at"]) - opened
    assert abs(late - timedelta(minutes=5)) < timedelta(seconds=1)
    assert gatebell.cli("alert-routes", "dry-run", path)["alerts"] == found["alerts"]
    nothing = call.done("POST", "/alert_routes/dry_run", json={"until": "2026-01-01T00:00:00Z"})
    assert nothing["alerts"] == []


def test_a_dry_run_rejects_invalid_periods(gatebell: LiveGatebell) -> None:
    _, call, _ = project_of(gatebell)
    for body, problem in (
        ({"since": "soon"}, "`since` must be a time"),
        ({"since": "2999-01-01T00:00:00Z"}, "The start must be before the end"),
        ({"since": "2026-01-01T00:00:00Z", "until": "2026-06-01T00:00:00Z"}, "at most 92 days"),
        ({"until": "0001-01-01T00:00:00Z"}, "too far in the past"),
    ):
        assert problem in call.refused("POST", "/alert_routes/dry_run", json=body), body
