"""Bodies that should not be: each is refused in a sentence, or accepted and kept as it came."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.domain.alerts.strategies import field_values, json_values, posted, texts
from tests.support.garbage import bounded
from tests.support.live import LiveGatebell
from tests.support.senders import connect, item, request_head, spoken, webhook
from tests.support.stored import alerts_of, deliveries_of, newest_delivery, reports_in

RECEIVERS = ("http", "prometheus")

UNREADABLE: Mapping[str, bytes] = {
    "nothing": b"",
    "white space": b" \r\n\t",
    "half an object": b"{",
    "an array": b"[]",
    "null": b"null",
    "a boolean": b"true",
    "a string": b'"alert"',
    "a number": b"12",
    "a bare word": b"alert",
    "NaN": b'{"title": NaN}',
    "Infinity": b'{"title": Infinity}',
    "minus Infinity": b'{"title": -Infinity}',
    "two objects": b"{}{}",
    "a trailing comma": b'{"title": "x",}',
    "single quotes": b"{'title': 'x'}",
    "a comment": b'{"title": "x"} // really',
    "UTF-16": '{"title": "x"}'.encode("utf-16"),
    "UTF-16 without a mark": '{"title": "x"}'.encode("utf-16-le"),
    "UTF-32": '{"title": "x"}'.encode("utf-32"),
    "Latin-1": '{"title": "é"}'.encode("latin-1"),
    "an overlong form": b'{"title": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"title": "\xed\xa0\x80"}',
    "a bare NUL": b'{"title": "\x00"}',
    "a bare control character": b'{"title": "\x01"}',
    "nested arrays": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "nested and never closed": b"[" * 100_000,
    "a level too deep": b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
    "form fields": b"title=x&severity=high",
    "XML": b"<?xml version='1.0'?><alert/>",
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in UNREADABLE
        for kind in RECEIVERS
        # HTTP endpoints take arrays (tests/http/intake/test_intake_arrays.py).
        if (name, kind) != ("an array", "http")
    ],
)
def test_what_is_no_json_object_is_refused_in_a_sentence(
    gatebell: LiveGatebell, kind: str, name: str
) -> None:
    endpoint = connect(gatebell, kind=kind)
    answer = endpoint.post(UNREADABLE[name])
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("400 Bad Request: The body ")
    assert alerts_of(gatebell, endpoint.project) == []
    (delivery,) = deliveries_of(gatebell, endpoint.project)
    assert (delivery.status_code, delivery.body or b"") == (400, UNREADABLE[name])
    assert delivery.reason in answer.json()["message"]


STRANGE: Mapping[str, tuple[bytes, str]] = {
    "an empty object": (b"{}", "New: Alert"),
    "white space around it": (b'\r\n {"title": "x"} \r\n', "x"),
    "a byte order mark": (b'\xef\xbb\xbf{"title": "x"}', "x"),
    "duplicate names": (b'{"title": "first", "title": "last"}', "last"),
    "an escaped NUL": (b'{"title": "a\\u0000b"}', "a\N{REPLACEMENT CHARACTER}b"),
    "a lone surrogate": (b'{"title": "a\\ud800b"}', "a\N{REPLACEMENT CHARACTER}b"),
    "a pair of surrogates": (b'{"title": "\\ud83d\\ude00"}', "\N{GRINNING FACE}"),
    "a number too large": (b'{"title": "x", "value": 1e400}', "x"),
    "a number of many digits": (b'{"title": "x", "value": ' + b"9" * 10_000 + b"}", "x"),
    "numbers beyond 64 bits": (b'{"title": 18446744073709551616}', "18446744073709551616"),
    "a title of the wrong type": (b'{"title": {"a": [1, null]}}', '{"a":[1,null]}'),
    "a long title": (json.dumps({"title": "x" * 100_000}).encode(), "x" * 199 + "…"),
    "a hundred levels": (b'{"a":' + b"[" * 99 + b"]" * 99 + b"}", "New: Alert"),
    "a hundred thousand names": (
        json.dumps({f"n{number}": 0 for number in range(70_000)}).encode(),
        "New: Alert",
    ),
    "names that are nothing": (b'{"": "", "\\u0000": "\\u0000"}', "New: Alert"),
    "markup": (b'{"title": "<script>alert(1)</script>"}', "<script>alert(1)</script>"),
    "a template": (b'{"title": "{{7*7}} %s %(x)s {0}"}', "{{7*7}} %s %(x)s {0}"),
    "SQL": (b'{"title": "\'; DROP TABLE alerts; --"}', "'; DROP TABLE alerts; --"),
    "text from right to left": (
        '{"title": "\u202eevil\u202c\u200b"}'.encode(),
        "\u202eevil\u202c\u200b",
    ),
}


@pytest.mark.spec("I3", "I4")
@pytest.mark.parametrize("name", STRANGE)
def test_an_alert_is_not_lost_over_what_is_strange_in_it(gatebell: LiveGatebell, name: str) -> None:
    body, title = STRANGE[name]
    endpoint = connect(gatebell)
    answer = endpoint.post(body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == [{"iid": 1, "title": title}]
    (alert,) = alerts_of(gatebell, endpoint.project)
    assert alert.title == title
    (delivery,) = deliveries_of(gatebell, endpoint.project)
    assert delivery.body == body


def test_a_hundred_thousand_names_are_read_or_refused_by_size_alone(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    body = json.dumps({f"{number:x}": 0 for number in range(100_000)}).encode()
    assert len(body) > 1024 * 1024
    assert endpoint.post(body).status_code == 413
    assert endpoint.post(body.replace(b" ", b"")).status_code == 200


@pytest.mark.parametrize(
    "lines",
    [
        ("Authorization: Bearer {key}", "Authorization: Bearer {key}"),
        ("Authorization: Bearer wrong", "Authorization: Bearer {key}"),
    ],
)
def test_two_authorizations_are_none(gatebell: LiveGatebell, lines: tuple[str, ...]) -> None:
    endpoint = connect(gatebell)
    head = request_head(
        endpoint,
        *(line.format(key=endpoint.key) for line in lines),
        "Content-Type: application/json",
        "Content-Length: 2",
    )
    assert spoken(endpoint, head + b"{}").startswith(b"HTTP/1.1 401 ")
    assert alerts_of(gatebell, endpoint.project) == []


@pytest.mark.parametrize(
    "path",
    [
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
    ],
)
def test_addresses_that_lead_nowhere_are_not_found(gatebell: LiveGatebell, path: str) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    address = path.format(project=endpoint.project)
    head = request_head(endpoint, "Content-Length: 2", "Content-Type: application/json")
    sent = head.replace(endpoint.path.encode(), address.encode()) + b"{}"
    assert spoken(endpoint, sent)[9:12] in {b"404", b"405", b"400"}


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


@pytest.mark.hypothesis
@pytest.mark.spec("I3", "I7")
def test_whatever_a_generic_alert_holds_it_is_kept(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)

    @bounded(60)
    @given(any_fields)
    def send(fields: dict[str, Any]) -> None:
        answer = endpoint.post(posted(fields))
        assert answer.status_code == 200, answer.text
        assert all(set(each) == {"iid", "title"} for each in answer.json())
        assert newest_delivery(gatebell, endpoint.project).body == posted(fields)

    send()
    assert "Traceback" not in gatebell.log_text()


@pytest.mark.hypothesis
@pytest.mark.spec("I11", "I12")
def test_whatever_a_metrics_webhook_holds_the_answer_is_clear(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")

    @bounded(60)
    @given(any_items, field_values)
    def send(items: list[Any], other: Any) -> None:
        body = webhook(*items, version=other, commonLabels=other, truncatedAlerts=other)
        answer = endpoint.post(body)
        assert answer.status_code in {200, 422}, answer.text
        if answer.status_code == 200:
            # Each item is a report of an alert, or was refused with a reason.
            delivery = newest_delivery(gatebell, endpoint.project)
            refused = [remark for remark in delivery.remarks if " was refused: " in remark]
            assert reports_in(gatebell, delivery) + len(refused) == len(items)
            assert delivery.body == body

    send()
    assert "Traceback" not in gatebell.log_text()


@pytest.mark.hypothesis
@pytest.mark.spec("I1")
@pytest.mark.parametrize("kind", RECEIVERS)
def test_json_of_any_shape_is_stored_or_refused_in_a_sentence(
    gatebell: LiveGatebell, kind: str
) -> None:
    endpoint = connect(gatebell, kind=kind)

    @bounded(60)
    @given(json_values | st.dictionaries(texts, json_values))
    def send(value: Any) -> None:
        answer = endpoint.post(posted(value))
        # The generic format takes every object, and arrays of them; a webhook has attributes that
        # are required.
        items = value if isinstance(value, list) and kind == "http" else [value]
        objects = [each for each in items if isinstance(each, dict)]
        understood = 200 if kind == "http" and objects else 422
        is_read = items is value or objects
        assert answer.status_code == (understood if is_read else 400), answer.text
        if answer.status_code == 200:
            delivery = newest_delivery(gatebell, endpoint.project)
            reports = reports_in(gatebell, delivery)
            assert (delivery.body, reports) == (posted(value), len(objects))
        else:
            assert answer.json()["message"].startswith(f"{answer.status_code} ")

    send()
    assert "Traceback" not in gatebell.log_text()


@pytest.mark.spec("I11")
@pytest.mark.parametrize("alerts", [None, {}, "firing", 3, [], [None], [[]], [1, "x"]])
def test_alerts_of_another_type_are_refused_with_reasons(
    gatebell: LiveGatebell, alerts: Any
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    answer = endpoint.post(webhook(item("x"), alerts=alerts))
    assert answer.status_code == 422
    given_items = alerts if isinstance(alerts, list) else []
    reasons = answer.json().get("errors", [])
    assert [each["item"] for each in reasons] == list(range(len(given_items)))
