"""Objects that contain several alerts in an array that the mapping reads by its first item."""

from typing import Any

import pytest
from sqlalchemy import update

from models import Integration
from tests.support.accounts.people import alice, signed_in
from tests.support.alerts.integration_pages import words
from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import (
    change,
    get_newest_delivery,
    list_stored_alerts,
    list_stored_occurrences,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

MAPPING: dict[str, Any] = {
    "title": [["Events", 0, "Message"]],
    "fingerprint": [["Events", 0, "MessageId"]],
    "rules": {
        "joins": {"fingerprint": {"paths": [["Context"]]}},
        "resolved_when": [{"path": ["Events", 0, "Severity"], "operator": "is", "words": ["OK"]}],
        "dropped_when": [
            {"path": ["Events", 0, "EventType"], "operator": "is", "words": ["MetricReport"]}
        ],
    },
}
FAN = {"Message": "Fan 2 failed", "MessageId": "Fan.2", "Severity": "Critical"}
POWER = {"Message": "Power supply 1 failed", "MessageId": "Power.1", "Severity": "Critical"}


def connect_mapped(gatebell: LiveGatebell, mapping: object = MAPPING) -> Endpoint:
    endpoint = connect(gatebell)
    statement = update(Integration).where(Integration.id == endpoint.id)
    change(gatebell, statement.values(mapping=mapping))
    return endpoint


def redfish(*events: object) -> dict[str, object]:
    return {"@odata.type": "#Event.v1_7_0.Event", "Context": "rack-1", "Events": [*events]}


@pytest.mark.both_databases
def test_each_event_is_an_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect_mapped(gatebell)
    assert endpoint.post_json(redfish(FAN, POWER)) == [
        {"iid": 1, "title": "Fan 2 failed"},
        {"iid": 2, "title": "Power supply 1 failed"},
    ]
    # One event has recovered, and the other one is repeated.
    endpoint.post_json(redfish({**FAN, "Severity": "OK"}, POWER))
    fan, power = list_stored_alerts(gatebell, endpoint.project)
    assert (fan.status, power.status, power.events) == ("resolved", "triggered", 2)
    # A body with only one event has the same fingerprint.
    endpoint.post_json(redfish({**POWER, "Severity": "OK"}))
    assert list_stored_alerts(gatebell, endpoint.project)[1].status == "resolved"


def test_the_page_of_an_alert_shows_only_its_own_event(gatebell: LiveGatebell) -> None:
    endpoint = connect_mapped(gatebell)
    endpoint.post_json(redfish(FAN, POWER))
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/2", timeout=20).text
    assert "Power supply 1 failed" in page
    assert "Fan 2 failed" not in page
    why = page[page.index("Why were these grouped?") : page.index("All fields")]
    assert "the same Events[0].MessageId and Context" in words(why)
    assert "<bdi>Events[0].MessageId</bdi>" in why
    assert "<bdi>Context</bdi>" in why


def test_the_preview_of_a_mapping_reads_every_event(gatebell: LiveGatebell) -> None:
    endpoint = connect_mapped(gatebell, None)
    endpoint.post_json(redfish(FAN, POWER))
    endpoint.post_json(redfish({**FAN, "Severity": "OK"}, POWER))
    script = script_of(
        gatebell, endpoint.project, f"alert_management_integrations/{endpoint.id}/mapping"
    )
    paths = {name: MAPPING[name] for name in ("title", "fingerprint")}
    sample = redfish(FAN, POWER)
    seen = script.post("/preview", sample=sample, mapping=paths, rules=MAPPING["rules"]).json()
    assert seen["alert"]["title"] == "Fan 2 failed"
    assert seen["parse_warnings"] == ["The sample contains 2 alerts. Only the first one is shown."]
    assert (seen["before"]["opened"], seen["after"]["opened"]) == (2, 2)
    assert (seen["before"]["resolved"], seen["after"]["resolved"]) == (0, 1)


def test_events_are_dropped_or_rejected_individually(gatebell: LiveGatebell) -> None:
    endpoint = connect_mapped(gatebell)
    report = {"Message": "CPU at 40 %", "EventType": "MetricReport"}
    endpoint.post_json(redfish(None, report, FAN))
    assert [
        (iid, item) for iid, item, _ in list_stored_occurrences(gatebell, endpoint.project)
    ] == [(1, 2)]
    delivery = get_newest_delivery(gatebell, endpoint.project)
    assert delivery.dropped == 1
    assert delivery.parse_warnings == ["Item 1 was rejected: it is not an object"]


def test_the_events_of_all_objects_in_an_array_are_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect_mapped(gatebell)
    answer = endpoint.post_json([redfish(FAN, POWER), {**redfish(FAN), "Context": "rack-2"}])
    assert [each["iid"] for each in answer] == [1, 2, 3]
    browser = signed_in(gatebell, alice(gatebell))
    for iid, title, other in ((2, POWER, FAN), (3, FAN, POWER)):
        page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/{iid}", timeout=20).text
        assert title["Message"] in page
        assert other["Message"] not in page


def test_an_object_with_too_many_events_is_not_read_completely(gatebell: LiveGatebell) -> None:
    endpoint = connect_mapped(gatebell)
    events = [{**FAN, "MessageId": f"Fan.{number % 3}"} for number in range(1_002)]
    assert len(endpoint.post_json(redfish(*events))) == 3
    first, last = get_newest_delivery(gatebell, endpoint.project).parse_warnings
    reason = "was rejected: an array within an object can contain at most 1,000 alerts"
    assert (first, last) == (f"Item 1001 {reason}", f"Item 1002 {reason}")


@pytest.mark.parametrize(
    ("mapping", "body"),
    [
        # Only the severity is read from the array.
        (
            {"title": [["name"]], "fingerprint": [["id"]], "severity": [["rows", 0, "level"]]},
            {"name": "Slow", "id": 1, "rows": [{"level": "high"}, {"level": "low"}]},
        ),
        # Pairs of a name and a value describe one alert.
        (
            {"title": [["name"]], "fingerprint": [["tags", 0, "value"]]},
            {"name": "Slow", "tags": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]},
        ),
        # The mapping reads two items of the array.
        (
            {"title": [["rows", 0, "text"]], "description": [["rows", 1, "text"]]},
            {"rows": [{"text": "Slow"}, {"text": "Since noon"}]},
        ),
        ({"title": [["rows", 0]]}, {"rows": ["Slow", "Since noon"]}),
    ],
)
def test_other_arrays_belong_to_one_alert(
    gatebell: LiveGatebell, mapping: object, body: object
) -> None:
    assert connect_mapped(gatebell, mapping).post_json(body) == [{"iid": 1, "title": "Slow"}]


@pytest.mark.parametrize(
    "body",
    [
        {"groups": [{"items": [{"text": "a"}, {"text": "b"}]}, {"items": [{"text": "c"}]}]},
        {"groups": [{"items": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}]},
        {"groups": [{"items": [{"text": text}]} for text in "abc"]},
    ],
)
def test_arrays_within_arrays_are_read(gatebell: LiveGatebell, body: object) -> None:
    endpoint = connect_mapped(gatebell, {"title": [["groups", 0, "items", 0, "text"]]})
    assert [each["title"] for each in endpoint.post_json(body)] == ["a", "b", "c"]


def test_rows_with_a_title_and_a_value_are_alerts(gatebell: LiveGatebell) -> None:
    mapping = {"title": [["rows", 0, "title"]], "description": [["rows", 0, "value"]]}
    rows = [{"title": "CPU", "value": 95}, {"title": "Disk", "value": 99}]
    answer = connect_mapped(gatebell, mapping).post_json({"rows": rows})
    assert [each["title"] for each in answer] == ["CPU", "Disk"]
