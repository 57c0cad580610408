"""Tests of alert integrations in the API: creation, changes, test alerts and keys."""

from datetime import timedelta

import pytest
import requests

from domain.access.roles import Role
from domain.audit.events import EventKind
from tests.support.accounts.people import alice, make_project, now, unique
from tests.support.accounts.team import person_for
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import captured, connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.database.stored import (
    list_stored_alerts,
    list_stored_deliveries,
    list_stored_integrations,
)
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")


def script(
    gatebell: LiveGatebell, project: str = "", *, role: Role | None = None, scopes: str = "api"
) -> Script:
    """Return a client for integrations, by default of a new project owned by Alice."""
    path = project or make_project(gatebell, alice(gatebell))
    return script_of(gatebell, path, "alert_management_integrations", role=role, scopes=scopes)


def post_alert(url: str, key: str, body: bytes = b"{}") -> requests.Response:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with requests.Session() as session:
        session.trust_env = False
        return session.post(url, data=body, headers=headers, timeout=60)


@pytest.mark.both_databases
@pytest.mark.spec("H1", "H2", "H5")
def test_a_created_integration_accepts_alerts_immediately(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    worker = script(gatebell, project)

    made = worker.post(type="prometheus", name="Alertmanager")

    assert made.status_code == 201
    assert made.headers["Cache-Control"] == "no-store"
    found = made.json()
    sent = post_alert(
        found["url"], found["key"], captured("04_grouped_3_firing_common_labels.json")
    )
    assert sent.status_code == 200, sent.text
    assert len(list_stored_alerts(gatebell, project)) == 3
    shown = worker.get(f"/{found['id']}")
    assert shown["last_outcome"] == "accepted"
    assert shown["api_url"].startswith("http")
    assert {**found, **shown, "key": found["key"]} == {**shown, "key": found["key"]}
    (listed,) = worker.get()
    assert listed.items() <= shown.items()
    assert "key" not in {*listed, *shown}
    (row,) = list_stored_integrations(gatebell, project)
    assert (row.type, row.name, row.active) == ("prometheus", "Alertmanager", True)


@pytest.mark.spec("H2", "H3", "H10", "H11")
def test_an_invalid_integration_is_rejected_with_the_reason(gatebell: LiveGatebell) -> None:
    worker = script(gatebell)
    assert worker.post(type="http").json()["name"] == "HTTP Endpoint"
    for given, field, words in (
        ({}, "type", "is missing"),
        ({"type": "pager"}, "type", "must be one of http, prometheus, external"),
        ({"type": "http"}, "name", "Enter a name"),
        ({"type": "http", "name": "x\ny"}, "name", "one line"),
        ({"type": "http", "name": "x" * 101}, "name", "at most 100"),
        ({"type": "http", "name": "x", "api_url": "javascript:alert(1)"}, "api_url", "https://"),
        ({"type": "prometheus", "api_url": "x"}, "api_url", "https://"),
        ({"type": "external"}, "api_url", "https://"),
        ({"type": "external", "api_url": f"https://a/{'x' * 2000}"}, "api_url", "2000 characters"),
        ({"type": "external", "api_url": "https://a.example"}, "active", "Turn off"),
        ({"type": "http", "name": "x", "active": "perhaps"}, "active", "true or false"),
    ):
        refused = worker.post(**given)
        assert refused.status_code == 400, given
        assert words in refused.json()["error"]
        assert refused.json()["errors"][0]["field"] == field
    several = worker.post(name=3, active="perhaps")
    assert [each["field"] for each in several.json()["errors"]] == ["type", "name", "active"]
    assert len(worker.get()) == 1


@pytest.mark.both_databases
@pytest.mark.spec("H4", "H11")
def test_a_change_keeps_fields_that_are_not_sent(gatebell: LiveGatebell) -> None:
    worker = script(gatebell)
    name = unique("hook")
    made = worker.post(type="http", name=name).json()
    at = f"/{made['id']}"

    off = worker.put(at, active=False)
    assert (off.status_code, off.json()["name"], off.json()["active"]) == (200, name, False)
    assert worker.put(at).json() == off.json()
    assert post_alert(made["url"], made["key"]).status_code == 403
    changes = [event.details["change"] for event in list_events_with_subject(gatebell, name)]
    assert changes == ["changed", "created"]
    named = worker.put(at, name="Bell", api_url="https://a.example").json()
    assert (named["name"], named["active"]) == ("Bell", False)
    assert named["url"] == made["url"].replace(f"/{name}/", "/bell/")
    assert worker.put(at, api_url="").json()["api_url"] is None

    # In the meantime, a link to an on-call tool is active.
    link = worker.post(type="external", name="Pager", api_url="https://pager.example").json()
    assert (link["url"], link["key"], link["endpoint_identifier"]) == (None, None, None)
    refused = worker.put(at, active=True)
    assert refused.status_code == 400
    assert "on-call tool is active" in refused.json()["error"]
    for method, path in (("GET", "credentials"), ("GET", "keys"), ("POST", "test")):
        assert worker.send(method, f"/{link['id']}/{path}").status_code == 404
    worker.put(f"/{link['id']}", active=False)
    assert worker.put(at, active=True).status_code == 200
    assert post_alert(made["url"], made["key"]).status_code == 200


@pytest.mark.both_databases
def test_a_deleted_integration_keeps_its_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="kept", extra=1)
    worker = script(gatebell, endpoint.project)

    gone = worker.send("DELETE", f"/{endpoint.id}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert "Content-Type" not in gone.headers

    assert worker.send("DELETE", f"/{endpoint.id}").status_code == 404
    assert worker.get() == []
    alerts = script_of(gatebell, endpoint.project, "alert_management_alerts")
    shown = alerts.get("/1")
    assert (shown["integration"], shown["integration_id"]) == (None, None)
    assert shown["details"]["extra"] == "1"
    assert alerts.get("/1/occurrences")[0]["integration_id"] is None
    assert endpoint.send().status_code == 404


@pytest.mark.both_databases
@pytest.mark.spec("H5", "K1")
def test_a_request_for_the_key_is_recorded(gatebell: LiveGatebell) -> None:
    worker = script(gatebell)
    name = unique("shown")
    made = worker.post(type="http", name=name).json()
    post_alert(made["url"], made["key"])

    answer = worker.send("GET", f"/{made['id']}/credentials")

    assert answer.headers["Cache-Control"] == "no-store"
    shown = answer.json()
    assert (shown["url"], shown["key"]) == (made["url"], made["key"])
    (key,) = shown["keys"]
    assert (key["state"], key["expires_at"]) == ("current", None)
    assert key["last_used_at"].endswith("Z")
    event = list_events_with_subject(gatebell, name)[0]
    assert event.kind == EventKind.INTEGRATION_KEY_READ
    assert event.actor_name == alice(gatebell).username
    assert made["key"] not in str(event.details)
    # A scope for reading is not enough, since the credentials allow writing.
    project = worker.at.split("/")[2].replace("%2F", "/")
    reading = script(gatebell, project, scopes="read_api")
    refused = reading.send("GET", f"/{made['id']}/credentials")
    assert (refused.status_code, refused.json()["error"]) == (403, "insufficient_scope")


@pytest.mark.both_databases
@pytest.mark.spec("H5")
def test_two_keys_are_valid_until_a_given_time_and_the_older_key_can_be_revoked(
    gatebell: LiveGatebell,
) -> None:
    worker = script(gatebell)
    made = worker.post(type="http", name="Hook").json()
    keys, url = f"/{made['id']}/keys", made["url"]
    until = now() + timedelta(hours=5)
    for moment, words in (
        ((now() - timedelta(minutes=1)).isoformat(), "at most 30 days"),
        ((now() + timedelta(days=31)).isoformat(), "at most 30 days"),
        ("9999-12-31T23:59:59Z", "at most 30 days"),
        ("tomorrow", "must be a time"),
    ):
        refused = worker.post(keys, previous_key_expires_at=moment)
        assert refused.status_code == 400
        assert words in refused.json()["error"]
    assert worker.get(f"/{made['id']}/credentials")["key"] == made["key"]

    rotated = worker.post(keys, previous_key_expires_at=until.isoformat())

    assert rotated.status_code == 201
    new = rotated.json()
    assert new["key"] != made["key"]
    assert [each["state"] for each in new["keys"]] == ["current", "previous"]
    assert (
        new["keys"][1]["expires_at"] == f"{until:%Y-%m-%dT%H:%M:%S}.{until.microsecond // 1000:03}Z"
    )
    codes = [post_alert(url, key).status_code for key in (made["key"], new["key"])]
    assert codes == [200, 200]
    listed = worker.get(keys)
    assert [each["id"] for each in listed] == [each["id"] for each in new["keys"]]
    assert all(each["last_used_at"] for each in listed)

    current, previous = (each["id"] for each in listed)
    stale = worker.post(keys, key_id=previous)  # The id belongs to a replaced key.
    assert stale.status_code == 409
    assert worker.send("DELETE", f"{keys}/{current}").status_code == 409
    assert worker.send("DELETE", f"{keys}/{previous}").status_code == 204
    assert worker.send("DELETE", f"{keys}/{previous}").status_code == 404
    assert post_alert(url, made["key"]).status_code == 401
    last = worker.post(keys, key_id=current).json()
    assert [each["state"] for each in last["keys"]] == ["current"]
    assert post_alert(url, new["key"]).status_code == 401
    assert post_alert(url, last["key"]).status_code == 200


@pytest.mark.both_databases
@pytest.mark.spec("H6")
@pytest.mark.parametrize("kind", ["http", "prometheus"])
def test_a_test_alert_is_sent_and_explained(gatebell: LiveGatebell, kind: str) -> None:
    endpoint = connect(gatebell, kind=kind)
    worker = script(gatebell, endpoint.project, role=Role.DEVELOPER)

    rehearsed = worker.post(f"/{endpoint.id}/test", dry_run=True).json()
    assert rehearsed["delivery_id"] is None
    assert list_stored_alerts(gatebell, endpoint.project) == []
    sent = worker.post(f"/{endpoint.id}/test")

    assert sent.status_code == 200
    (alert,) = sent.json()["alerts"]
    assert (alert["iid"], alert["action"]) == (1, "opened")
    assert alert["read"]["title"] == alert["title"] == rehearsed["alerts"][0]["title"]
    assert alert["read"]["fingerprint"]
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert delivery.id == sent.json()["delivery_id"]
    assert (delivery.is_test, delivery.sender) == (
        True,
        person_for(gatebell, Role.DEVELOPER).username,
    )


@pytest.mark.spec("H6")
def test_the_payload_of_a_test_alert_is_an_object_or_its_text(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script(gatebell, endpoint.project)
    as_object = worker.post(f"/{endpoint.id}/test", payload={"title": "a", "n": {"x": 1}})
    assert as_object.json()["alerts"][0]["title"] == "a"
    exact = '{"title": "b", "id": 123456789012345678901234567890}'
    assert worker.post(f"/{endpoint.id}/test", payload=exact).json()["alerts"][0]["title"] == "b"
    assert list_stored_deliveries(gatebell, endpoint.project)[-1].body == exact.encode()
    several = worker.post(f"/{endpoint.id}/test", payload=[{"title": "c"}, {"title": "d"}])
    assert [each["title"] for each in several.json()["alerts"]] == ["c", "d"]


@pytest.mark.spec("H6")
def test_an_invalid_test_alert_is_rejected_with_the_reason(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    worker = script(gatebell, endpoint.project)
    deep: object = 1
    for _ in range(300):
        deep = {"a": deep}
    for payload, status, words in (
        ("", 400, "The body is empty"),
        ("{", 400, "not JSON"),
        ("NaN", 400, "NaN"),
        (3, 400, "must be a string"),
        ({"title": "x"}, 400, "Missing or malformed attributes"),
        (deep, 400, "nested too deep"),
        ("x" * (1024 * 1024 + 1), 413, ""),
    ):
        refused = worker.post(f"/{endpoint.id}/test", payload=payload)
        assert refused.status_code == status, payload
        assert words in refused.text
    worker.put(f"/{endpoint.id}", active=False)
    off = worker.post(f"/{endpoint.id}/test")
    assert off.status_code == 403
    assert "Turn it on first." in off.json()["message"]
    assert worker.post(f"/{endpoint.id}/test", dry_run=True).status_code == 200
    assert list_stored_alerts(gatebell, endpoint.project) == []


@pytest.mark.spec("H7")
def test_developers_cannot_see_the_url(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    (listed,) = script(gatebell, endpoint.project, role=Role.DEVELOPER).get()
    assert (listed["id"], listed["type"], listed["url"]) == (endpoint.id, "http", None)
    maintainer = script(gatebell, endpoint.project, role=Role.MAINTAINER)
    assert maintainer.get()[0]["url"] == maintainer.get(f"/{endpoint.id}")["url"] == endpoint.url


@pytest.mark.long
def test_integrations_of_other_projects_are_not_found(gatebell: LiveGatebell) -> None:
    endpoint, other = connect(gatebell), connect(gatebell)
    other.accepted()
    worker, number = script(gatebell, endpoint.project), other.id
    delivery = list_stored_deliveries(gatebell, other.project)[0].id
    for method, path in (
        *(("GET", each) for each in ("", "/credentials", "/keys", "/mapping", "/deliveries")),
        ("PUT", ""),
        ("DELETE", ""),
        ("POST", "/test"),
        ("POST", "/keys"),
        ("DELETE", "/mapping"),
        ("POST", f"/deliveries/{delivery}/resend"),
    ):
        answer = worker.send(method, f"/{number}{path}")
        assert answer.status_code == 404, (method, path)
    own = f"/{endpoint.id}/deliveries/{delivery}"
    for path in (own, f"{own}/body"):
        assert worker.send("GET", path).status_code == 404
    assert worker.send("GET", f"/{2**63}").status_code == 404
    assert other.send().status_code == 200


@pytest.mark.long
@pytest.mark.spec("H9")
def test_a_smaller_tier_keeps_existing_integrations_and_allows_no_more(
    gatebell: LiveGatebell,
) -> None:
    worker = script(gatebell)
    first, second = (worker.post(type="http", name=name).json() for name in ("a", "b"))
    at = f"/{second['id']}/mapping"
    body = {"sample": {"x": "y"}, "mapping": {"title": [["x"]]}}
    assert worker.put(at, **body).status_code == 200
    with changed_settings(gatebell, tier="free"):
        refused = worker.post(type="http", name="c")
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["field"] == "type"
        assert worker.post(type="prometheus").status_code == 201
        assert worker.put(f"/{second['id']}", name="d").status_code == 200
        assert [post_alert(each["url"], each["key"]).status_code for each in (first, second)] == [
            200,
            200,
        ]
        for answer in (worker.put(at, **body), worker.post(f"{at}/preview", **body)):
            assert answer.status_code == 403
            assert "tier" in answer.json()["message"]
        assert worker.send("DELETE", at).status_code == 204
    assert worker.get(at)["mapping"] == {}


@pytest.mark.both_databases
def test_the_list_of_integrations_supports_offset_and_keyset_pagination(
    gatebell: LiveGatebell,
) -> None:
    worker = script(gatebell)
    made = [worker.post(type="http", name=f"n{number}").json()["id"] for number in range(3)]
    first = worker.send("GET", params={"per_page": 2})
    assert [each["id"] for each in first.json()] == made[:2]
    assert first.headers["X-Total"] == "3"
    by_key = worker.send("GET", params={"per_page": 2, "pagination": "keyset"})
    assert "X-Total" not in by_key.headers
    assert by_key.links["next"]
    newest = worker.get(params={"sort": "desc"})
    assert [each["id"] for each in newest] == made[::-1]
    assert worker.send("GET", params={"type": "http"}).status_code == 400
