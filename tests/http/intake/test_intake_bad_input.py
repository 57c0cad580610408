"""Malformed and unusual bodies, which are rejected with a message or stored as received."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.domain.alerts.parsing.strategies import field_values, json_values, posted, texts
from tests.support.alerts.senders import connect, exchange_raw_bytes, item, request_head, webhook
from tests.support.alerts.strange_bodies import STRANGE, UNREADABLE
from tests.support.database.databases import ON_POSTGRES, ON_SQLITE
from tests.support.database.stored import (
    count_reports,
    get_newest_delivery,
    list_stored_alerts,
    list_stored_deliveries,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.garbage import bounded


# tests/domain/alerts/parsing/test_strange_bodies.py has more bodies that are not JSON objects.
@pytest.mark.parametrize(
    "kind",
    [pytest.param("http", marks=ON_SQLITE), pytest.param("prometheus", marks=ON_POSTGRES)],
)
def test_a_body_that_is_not_a_json_object_is_rejected_and_stored(
    gatebell: LiveGatebell, kind: str
) -> None:
    endpoint = connect(gatebell, kind=kind)
    names = ("nothing", "half an object", "NaN", "UTF-16", "a bare NUL", "nested arrays")
    answers = {name: endpoint.post(UNREADABLE[name]) for name in names}
    assert {name: each.status_code for name, each in answers.items()} == dict.fromkeys(names, 400)
    assert list_stored_alerts(gatebell, endpoint.project) == []
    log = list_stored_deliveries(gatebell, endpoint.project)
    for name, delivery in zip(names, log, strict=True):
        message = answers[name].json()["message"]
        assert message.startswith("400 Bad Request: The body "), name
        assert (delivery.status_code, delivery.body or b"") == (400, UNREADABLE[name])
        assert delivery.reason in message


@pytest.mark.long
@pytest.mark.spec("I3", "I4")
def test_alerts_with_unusual_values_are_stored(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for iid, (name, (body, title)) in enumerate(STRANGE.items(), 1):
        answer = endpoint.post(body)
        assert answer.status_code == 200, (name, answer.text)
        assert answer.json() == [{"iid": iid, "title": title}], name
        assert get_newest_delivery(gatebell, endpoint.project).body == body, name
    stored = [alert.title for alert in list_stored_alerts(gatebell, endpoint.project)]
    assert stored == [title for _, title in STRANGE.values()]


@pytest.mark.long
@ON_POSTGRES
def test_a_body_with_many_names_is_limited_only_by_its_size(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    body = json.dumps({f"{number:x}": 0 for number in range(100_000)}).encode()
    assert len(body) > 1024 * 1024
    assert endpoint.post(body).status_code == 413
    assert endpoint.post(body.replace(b" ", b"")).status_code == 200


@ON_SQLITE
def test_two_authorization_headers_are_rejected(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    sent = ("Content-Type: application/json", "Content-Length: 2")
    for first in (endpoint.key, "wrong"):
        keys = (f"Authorization: Bearer {key}" for key in (first, endpoint.key))
        head = request_head(endpoint, *keys, *sent)
        assert exchange_raw_bytes(endpoint, head + b"{}").startswith(b"HTTP/1.1 401 ")
    assert list_stored_alerts(gatebell, endpoint.project) == []


@ON_POSTGRES
def test_malformed_receiver_urls_are_not_found(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    head = request_head(endpoint, "Content-Length: 2", "Content-Type: application/json")
    found = {}
    for path in (
        "/{project}/alerts/notify/x/../../notify.json",
        "/{project}/alerts/notify/x/%2e%2e/etc.json",
        "/{project}/alerts/notify/x/.json",
        "/{project}%00/alerts/notify.json",
        "/{project}/alerts/notify/%ff/%fe.json",
        "/" + "a/" * 3_000 + "alerts/notify.json",
        "/alerts/notify.json",
        "//alerts/notify.json",
        "/-/alerts/notify.json",
        "/{project}/alerts/notify/" + "x" * 5_000 + "/" + "0" * 2_000 + ".json",
    ):
        address = path.format(project=endpoint.project)
        sent = head.replace(endpoint.path.encode(), address.encode()) + b"{}"
        found[path] = exchange_raw_bytes(endpoint, sent)[9:12]
    nowhere = {b"404", b"405", b"400"}
    assert {path: status for path, status in found.items() if status not in nowhere} == {}


any_fields = st.dictionaries(
    st.sampled_from(
        ("title", "description", "start_time", "end_time", "service", "monitoring_tool", "hosts",
         "severity", "fingerprint", "platform_environment_name", "runbook", "anything")
    ),
    field_values,
    max_size=6,
)  # fmt: skip

names = st.dictionaries(
    st.sampled_from(("alertname", "severity", "title", "summary", "service", "instance", "x")),
    field_values,
    max_size=4,
)
any_items = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "labels": names | field_values,
            "annotations": names | field_values,
            "startsAt": field_values,
            "endsAt": field_values,
            "status": field_values,
            "fingerprint": field_values,
            "generatorURL": field_values,
        },
    )
    | field_values,
    max_size=4,
)


@pytest.mark.long
@pytest.mark.hypothesis
@pytest.mark.spec("I3", "I7")
def test_a_generic_alert_with_any_fields_is_stored(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)

    @bounded(25)
    @given(any_fields)
    def send(fields: dict[str, Any]) -> None:
        answer = endpoint.post(posted(fields))
        assert answer.status_code == 200, answer.text
        assert all(set(each) == {"iid", "title"} for each in answer.json())
        assert get_newest_delivery(gatebell, endpoint.project).body == posted(fields)

    send()
    assert "Traceback" not in gatebell.log_text()


@pytest.mark.long
@pytest.mark.hypothesis
@pytest.mark.spec("I11", "I12")
def test_a_webhook_with_any_items_is_stored_or_rejected(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")

    @bounded(25)
    @given(any_items, field_values)
    def send(items: list[Any], other: Any) -> None:
        body = webhook(*items, version=other, commonLabels=other, truncatedAlerts=other)
        answer = endpoint.post(body)
        assert answer.status_code in {200, 422}, answer.text
        if answer.status_code == 200:
            # Each item is a report of an alert, or it was rejected with a reason.
            delivery = get_newest_delivery(gatebell, endpoint.project)
            refused = [
                warning for warning in delivery.parse_warnings if " was rejected: " in warning
            ]
            assert count_reports(gatebell, delivery) + len(refused) == len(items)
            assert delivery.body == body

    send()
    assert "Traceback" not in gatebell.log_text()


@pytest.mark.long
@pytest.mark.hypothesis
@pytest.mark.spec("I1")
@pytest.mark.parametrize(
    "kind",
    [pytest.param("http", marks=ON_SQLITE), pytest.param("prometheus", marks=ON_POSTGRES)],
)
def test_json_of_any_shape_is_stored_or_rejected_with_a_message(
    gatebell: LiveGatebell, kind: str
) -> None:
    endpoint = connect(gatebell, kind=kind)

    @bounded(25)
    @given(json_values | st.dictionaries(texts, json_values))
    def send(value: Any) -> None:
        answer = endpoint.post(posted(value))
        # The generic format accepts every object and arrays of objects, but a webhook has required
        # attributes.
        items = value if isinstance(value, list) and kind == "http" else [value]
        objects = [each for each in items if isinstance(each, dict)]
        understood = 200 if kind == "http" and objects else 422
        is_read = items is value or objects
        assert answer.status_code == (understood if is_read else 400), answer.text
        if answer.status_code == 200:
            delivery = get_newest_delivery(gatebell, endpoint.project)
            reports = count_reports(gatebell, delivery)
            assert (delivery.body, reports) == (posted(value), len(objects))
        else:
            assert answer.json()["message"].startswith(f"{answer.status_code} ")

    send()
    assert "Traceback" not in gatebell.log_text()


@pytest.mark.spec("I11")
@ON_POSTGRES
def test_alerts_that_are_not_objects_are_rejected_with_reasons(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    for alerts, count in ((None, 0), ([], 0), ([1, "x"], 2)):
        answer = endpoint.post(webhook(item("x"), alerts=alerts))
        assert answer.status_code == 422
        reasons = answer.json().get("errors", [])
        assert [each["item"] for each in reasons] == list(range(count))
