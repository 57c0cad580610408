"""Integrations with equal fingerprints: separate unless a user joins them as the same monitor."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from sqlalchemy import delete, select, update

from domain.alerts.integrations.monitors import list_joined_ids
from models import Alert, Host, IncidentFingerprint, Integration
from tests.support.accounts.people import alice, database_of, now, settings_of, signed_in
from tests.support.alerts.integration_pages import address
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, connect, item, resolved, webhook
from tests.support.database.audit_log import list_events_with_subject
from tests.support.database.stored import change, list_stored_alerts, list_stored_integrations
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from web.jobs.retention import assign_alerts_to_monitors

pytestmark = pytest.mark.both_databases

OVER = "2999-11-21T09:00:00Z"
Pair = tuple[Endpoint, Endpoint]


def two(gatebell: LiveGatebell, kind: str = "http") -> Pair:
    one = connect(gatebell, kind=kind, name="Staging")
    return one, connect(gatebell, one.project, kind=kind, name="Production")


def integrations(gatebell: LiveGatebell, endpoint: Endpoint) -> Script:
    return script_of(gatebell, endpoint.project, "alert_management_integrations")


def alerts(gatebell: LiveGatebell, endpoint: Endpoint) -> Script:
    return script_of(gatebell, endpoint.project, "alert_management_alerts")


def join(gatebell: LiveGatebell, one: Endpoint, *others: Endpoint) -> requests.Response:
    ids = [each.id for each in others]
    return integrations(gatebell, one).put(f"/{one.id}", joined_with=ids)


def states(gatebell: LiveGatebell, endpoint: Endpoint) -> list[tuple[int, str, int]]:
    found = list_stored_alerts(gatebell, endpoint.project)
    return [(each.iid, each.status, each.events) for each in found]


def test_an_alert_opens_although_another_alertmanager_has_an_equal_one(
    gatebell: LiveGatebell,
) -> None:
    staging, production = two(gatebell, "prometheus")
    staging.post(webhook(item("DiskFull")))
    alerts(gatebell, staging).put("/1", status="acknowledged")

    opened = production.post(webhook(item("DiskFull"))).json()

    assert opened == [{"iid": 2, "title": "DiskFull"}]
    staging.post(webhook(resolved("DiskFull")))
    assert states(gatebell, staging) == [(1, "resolved", 1), (2, "triggered", 1)]


def test_equal_numbers_of_two_tools_are_two_alerts(gatebell: LiveGatebell) -> None:
    zabbix, pingdom = two(gatebell)
    assert zabbix.accepted(fingerprint=1801)["iid"] == 1
    assert pingdom.accepted(fingerprint=1801)["iid"] == 2
    assert pingdom.accepted(fingerprint=1801, end_time=OVER)["iid"] == 2
    assert zabbix.accepted(fingerprint=1801)["iid"] == 1
    assert states(gatebell, zabbix) == [(1, "triggered", 2), (2, "resolved", 1)]


def test_a_batch_groups_within_its_integration(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell, "prometheus")
    body = webhook(item("a"), item("b"))
    assert [each["iid"] for each in one.post(body).json()] == [1, 2]
    assert [each["iid"] for each in other.post(body).json()] == [3, 4]
    assert [each["iid"] for each in other.post(body).json()] == [3, 4]


def test_joined_integrations_share_alerts_and_alerts_name_both(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    joined = join(gatebell, other, one)
    assert joined.json()["joined_with"] == [one.id]
    assert integrations(gatebell, one).get(f"/{one.id}")["joined_with"] == [other.id]

    one.accepted(fingerprint="x", title="Disk")
    assert other.accepted(fingerprint="x", title="Disk")["iid"] == 1
    shown = alerts(gatebell, one).get("/1")
    both = [{"id": one.id, "name": "Staging"}, {"id": other.id, "name": "Production"}]
    assert shown["integrations"] == both
    assert shown["integration_id"] == one.id
    assert shown["grouping"]["fields"] == {"fingerprint": "x"}
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{one.project}/-/alerts/1")
    assert "through <bdi>Production</bdi>" in page.text
    assert "<dt>Integrations</dt>" in page.text
    reports = script_of(gatebell, one.project, "alerts").get("/1/timeline")
    names = [report["integration_name"] for line in reports for report in line["reports"]]
    assert names == ["Production", "Staging"]
    assert other.accepted(fingerprint="x", end_time=OVER)["iid"] == 1
    assert states(gatebell, one) == [(1, "resolved", 2)]


def test_a_batch_through_a_joined_integration_names_both(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell, "prometheus")
    join(gatebell, other, one)
    one.post(webhook(item("a"), item("b")))
    other.post(webhook(item("a"), resolved("b")))
    for iid in ("/1", "/2"):
        found = alerts(gatebell, one).get(iid)["integrations"]
        assert [each["name"] for each in found] == ["Staging", "Production"]


def test_joining_keeps_the_older_of_two_equal_open_alerts(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    other.accepted(fingerprint="x")
    one.accepted(fingerprint="x")
    one.accepted(fingerprint="y")
    assert join(gatebell, one, other).status_code == 200
    assert [each[1] for each in states(gatebell, one)] == ["triggered", "resolved", "triggered"]
    (entry,) = alerts(gatebell, one).get("/2/activity")
    assert (entry["text"], entry["author"]) == ("resolved", None)
    assert entry["via"] == "by itself: alert #1 of a joined integration is the same"
    assert one.accepted(fingerprint="x", end_time=OVER)["iid"] == 1
    assert other.accepted(fingerprint="y")["iid"] == 3


def test_an_ignored_alert_never_replaces_one_that_is_not(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    one.accepted(fingerprint="x")
    alerts(gatebell, one).put("/1", status="ignored")
    other.accepted(fingerprint="x")
    join(gatebell, one, other)
    assert [each[1] for each in states(gatebell, one)] == ["resolved", "triggered"]


def test_separated_integrations_take_their_own_alerts_along(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    join(gatebell, one, other)
    one.accepted(fingerprint="x")
    other.accepted(fingerprint="y")
    assert join(gatebell, one).json()["joined_with"] == []
    assert one.accepted(fingerprint="x")["iid"] == 1
    assert other.accepted(fingerprint="y")["iid"] == 2
    assert other.accepted(fingerprint="x")["iid"] == 3
    integrations(gatebell, one).put(f"/{one.id}", name=f"Staging of {one.project}")
    join(gatebell, one, other)
    newest = list_events_with_subject(gatebell, f"Staging of {one.project}")[0]
    assert newest.details["change"] == "joined with Production"


def test_a_group_is_joined_as_a_whole(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    third = connect(gatebell, one.project, name="Third")
    join(gatebell, one, other)
    refused = join(gatebell, third, one)
    assert refused.status_code == 400
    assert "is joined with" in refused.text
    assert join(gatebell, third, one, other).json()["joined_with"] == [one.id, other.id]
    # An integration that joins no others leaves the group.
    assert join(gatebell, third).json()["joined_with"] == []
    assert integrations(gatebell, one).get(f"/{one.id}")["joined_with"] == [other.id]


def test_an_integration_of_another_project_cannot_be_joined(gatebell: LiveGatebell) -> None:
    one, foreign = connect(gatebell), connect(gatebell)
    refused = join(gatebell, one, foreign)
    assert refused.status_code == 400
    assert "joined_with" in refused.text


def test_the_alerts_of_a_deleted_integration_stay_with_joined_ones_only(
    gatebell: LiveGatebell,
) -> None:
    one, other = two(gatebell)
    third = connect(gatebell, one.project, name="Third")
    join(gatebell, one, other)
    one.accepted(fingerprint="x")
    integrations(gatebell, one).send("DELETE", f"/{one.id}")
    fourth = connect(gatebell, one.project, name="Fourth")
    assert third.accepted(fingerprint="x")["iid"] == 2
    assert fourth.accepted(fingerprint="x")["iid"] == 3
    assert other.accepted(fingerprint="x", end_time=OVER)["iid"] == 1
    assert [each[1] for each in states(gatebell, other)] == ["resolved", "triggered", "triggered"]


def test_an_alert_reopens_although_another_monitor_has_an_equal_one(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    one.accepted(fingerprint="x")
    alerts(gatebell, one).put("/1", status="resolved")
    other.accepted(fingerprint="x")
    assert alerts(gatebell, one).put("/1", status="triggered").status_code == 200
    alerts(gatebell, one).put("/1", status="resolved")
    join(gatebell, one, other)
    assign_alerts_to_monitors(settings_of(gatebell))
    assert alerts(gatebell, one).put("/1", status="triggered").status_code == 409


def test_resolved_alerts_follow_their_integration(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    one.accepted(fingerprint="x")
    one.accepted(fingerprint="x", end_time=OVER)
    join(gatebell, one, other)
    assign_alerts_to_monitors(settings_of(gatebell))
    # A recovery that the other integration repeats finds the resolved alert.
    assert other.accepted(fingerprint="x", end_time=OVER)["iid"] == 1
    assert len(states(gatebell, one)) == 1


def test_an_incident_only_takes_the_next_alert_of_the_same_monitor(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    one.accepted(fingerprint="x")
    incidents = script_of(gatebell, one.project, "incidents")
    assert incidents.post(title="Disk", alerts=[1]).status_code == 201
    join(gatebell, one, other)
    with database_of(gatebell) as session:
        stored = session.scalar(select(Alert.fingerprint).where(Alert.integration_id == one.id))
        held = session.scalars(
            select(IncidentFingerprint.fingerprint).where(IncidentFingerprint.fingerprint == stored)
        ).all()
    assert len(held) == 1


def test_integrations_are_joined_on_their_page(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    url = address(gatebell, one.project, f"{one.id}/configure")
    page = browser.get(url)
    assert "Same monitor" in page.text
    saved = submit(browser, page, form_to(page, "/configure"), joined_with=str(other.id))
    assert saved.status_code == 302, saved.text
    (row, partner) = list_stored_integrations(gatebell, one.project)
    assert list_joined_ids(row, [partner]) == (other.id,)
    assert "checked" in browser.get(url).text.split("Same monitor")[1].split("</fieldset>")[0]


def remove_monitors(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    """Store integrations as releases without monitors did."""
    project_id = list_stored_integrations(gatebell, endpoint.project)[0].project_id
    change(
        gatebell,
        update(Integration).where(Integration.project_id == project_id).values(monitor_id=None),
    )


def test_an_upgrade_gives_open_alerts_to_the_integration_of_the_last_report(
    gatebell: LiveGatebell,
) -> None:
    one, other = two(gatebell)
    remove_monitors(gatebell, one)
    for fingerprint in ("first", "last", "back"):
        one.accepted(fingerprint=fingerprint)
    for fingerprint in ("last", "back", "own"):
        other.accepted(fingerprint=fingerprint)
    one.accepted(fingerprint="back")
    one.accepted(fingerprint="gone")
    other.accepted(fingerprint="gone", end_time=OVER)
    assert [each[2] for each in states(gatebell, one)] == [1, 2, 3, 1, 1]

    assign_alerts_to_monitors(settings_of(gatebell))

    assert one.accepted(fingerprint="first")["iid"] == 1
    assert other.accepted(fingerprint="last")["iid"] == 2
    assert one.accepted(fingerprint="back")["iid"] == 3
    assert other.accepted(fingerprint="own")["iid"] == 4
    assert len(states(gatebell, one)) == 5
    # A report of the other integration opens a separate alert.
    assert one.accepted(fingerprint="last")["iid"] == 6
    assert other.accepted(fingerprint="back")["iid"] == 7
    shown = alerts(gatebell, one).get("/2")
    assert shown["integration_id"] == other.id
    assert [each["name"] for each in shown["integrations"]] == ["Production", "Staging"]


def test_an_upgrade_changes_nothing_where_a_project_has_one_integration(
    gatebell: LiveGatebell,
) -> None:
    one = connect(gatebell)
    remove_monitors(gatebell, one)
    one.accepted(fingerprint="x")
    before = list_stored_alerts(gatebell, one.project)[0].fingerprint
    assign_alerts_to_monitors(settings_of(gatebell))
    assert list_stored_alerts(gatebell, one.project)[0].fingerprint == before
    assert one.accepted(fingerprint="x")["iid"] == 1
    other = connect(gatebell, one.project, name="New")
    assert other.accepted(fingerprint="x")["iid"] == 2


def test_integrations_share_alerts_while_a_host_runs_an_earlier_release(
    gatebell: LiveGatebell,
) -> None:
    one, other = two(gatebell)
    remove_monitors(gatebell, one)
    with database_of(gatebell) as session:
        session.add(
            Host(
                name="elsewhere:1 web",
                key_fingerprints="x",
                revision="0103",
                clock_lead_ms=None,
                seen_at=now(),
            )
        )
        session.commit()
    try:
        assign_alerts_to_monitors(settings_of(gatebell))
        one.accepted(fingerprint="x")
        assert other.accepted(fingerprint="x")["iid"] == 1
    finally:
        with database_of(gatebell) as session:
            session.execute(delete(Host).where(Host.name == "elsewhere:1 web"))
            session.commit()
    assign_alerts_to_monitors(settings_of(gatebell))
    assert one.accepted(fingerprint="x")["iid"] == 2
    assert other.accepted(fingerprint="x")["iid"] == 1


def store_alert_of_monitor(
    gatebell: LiveGatebell, endpoint: Endpoint, monitor_id: int | None, name: str
) -> None:
    """Store an alert with another monitor, as a host with an outdated monitor does."""
    found = {
        each.id: each.monitor_id for each in list_stored_integrations(gatebell, endpoint.project)
    }
    own = Integration.id == endpoint.id
    change(gatebell, update(Integration).where(own).values(monitor_id=monitor_id))
    endpoint.accepted(fingerprint=name)
    change(gatebell, update(Integration).where(own).values(monitor_id=found[endpoint.id]))


@pytest.mark.parametrize("other", ["made by an earlier release", "new"])
def test_a_new_integration_keeps_alerts_from_hosts_of_an_earlier_release(
    gatebell: LiveGatebell, other: str
) -> None:
    new, one = two(gatebell)
    if other != "new":
        earlier = Integration.id == one.id
        change(gatebell, update(Integration).where(earlier).values(monitor_id=None))
    store_alert_of_monitor(gatebell, new, None, "x")
    store_alert_of_monitor(gatebell, new, None, "y")
    assert new.accepted(fingerprint="x")["iid"] == 3

    assign_alerts_to_monitors(settings_of(gatebell))

    assert [each[1] for each in states(gatebell, one)] == ["triggered", "triggered", "resolved"]
    assert new.accepted(fingerprint="x", end_time=OVER)["iid"] == 1
    assert new.accepted(fingerprint="y", end_time=OVER)["iid"] == 2


def test_equal_alerts_of_an_integration_follow_it_together(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    former = list_stored_integrations(gatebell, one.project)[0].monitor_id
    one.accepted(fingerprint="x")
    join(gatebell, one, other)
    store_alert_of_monitor(gatebell, one, former, "x")
    assert join(gatebell, one).status_code == 200
    assert [each[1] for each in states(gatebell, one)] == ["triggered", "resolved"]


def test_joining_keeps_the_worse_severity_of_two_equal_open_alerts(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    one.accepted(fingerprint="x", severity="low")
    alerts(gatebell, one).put("/1", status="acknowledged")
    other.accepted(fingerprint="x", severity="critical")
    join(gatebell, one, other)
    shown = alerts(gatebell, one).get("/1")
    assert (shown["status"], shown["severity"]) == ("acknowledged", "critical")
    assert alerts(gatebell, one).get("/2")["status"] == "resolved"


def test_alerts_of_a_deleted_integration_follow_the_last_joined_one(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    remove_monitors(gatebell, one)
    assign_alerts_to_monitors(settings_of(gatebell))
    third = connect(gatebell, one.project, name="Third")
    join(gatebell, other, one)
    one.accepted(fingerprint="x")
    integrations(gatebell, one).send("DELETE", f"/{one.id}")
    assert join(gatebell, other, third).status_code == 200
    assert other.accepted(fingerprint="x", end_time=OVER)["iid"] == 1
    assert [each[1] for each in states(gatebell, one)] == ["resolved"]


def test_identical_first_alerts_through_joined_integrations_are_one(
    gatebell: LiveGatebell,
) -> None:
    one, other = two(gatebell)
    join(gatebell, one, other)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda each: each.send(fingerprint="x"), [one, other] * 8))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()[0]["iid"] for answer in answers} == {1}
    assert states(gatebell, one) == [(1, "triggered", 16)]
    assert len(alerts(gatebell, one).get("/1")["integrations"]) == 2


def test_an_alert_of_a_concurrent_request_follows_its_integration(gatebell: LiveGatebell) -> None:
    one, other = two(gatebell)
    other.accepted(fingerprint="x")
    row = list_stored_integrations(gatebell, one.project)[1]
    join(gatebell, one, other)
    # A request that had read the former monitor stores its alert after the change.
    own = Integration.id == one.id
    change(gatebell, update(Integration).where(own).values(monitor_id=12345))
    one.accepted(fingerprint="y")
    change(gatebell, update(Integration).where(own).values(monitor_id=row.monitor_id))
    assign_alerts_to_monitors(settings_of(gatebell))
    assert one.accepted(fingerprint="y")["iid"] == 2
