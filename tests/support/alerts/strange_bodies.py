"""Malformed and unusual bodies and values that a sender may send."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.alerts.senders import item, webhook

#: Bodies that are not JSON objects.
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

#: Unusual bodies that are accepted, each with the title of its alert.
STRANGE: Mapping[str, tuple[bytes, str]] = {
    "an empty object": (b"{}", "New: Alert"),
    "white space around it": (b'\r\n {"title": "blank"} \r\n', "blank"),
    "a byte order mark": (b'\xef\xbb\xbf{"title": "mark"}', "mark"),
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

GENERIC = (
    *("title", "description", "start_time", "end_time", "service", "monitoring_tool", "hosts"),
    *("severity", "fingerprint", "platform_environment_name", "runbook", "anything"),
)
LABELS = ("alertname", "severity", "service", "instance", "host", "platform_environment_name")
ANNOTATIONS = (
    *("title", "summary", "description", "runbook", "runbook_url"),
    *("platform_incident_markdown", "platform_y_label", "anything"),
)
NAMES = {"labels": LABELS, "annotations": ANNOTATIONS}
ITEM = ("startsAt", "endsAt", "status", "fingerprint", "generatorURL", "labels", "annotations")
TOP = ("receiver", "status", "externalURL", "version", "groupKey", "groupLabels", "commonLabels")

#: Values as JSON texts, since a strict encoder cannot write some of them. A body with one of them
#: in all fields stays below the limit of a body.
VALUES: Mapping[str, str] = {
    "null": "null",
    "false": "false",
    "zero": "0",
    "a fraction": "-1.5e-9",
    "beyond a float": "1e400",
    "beyond 64 bits": "18446744073709551617",
    "ten thousand digits": "9" * 10_000,
    "nothing": '""',
    "white space": r'" \t\r\n"',
    "NUL": r'"a\u0000b"',
    "a lone surrogate": r'"a\ud800b"',
    "emoji": r'"\ud83d\ude00"',
    "long": json.dumps("x" * 40_000),
    "long and wide": json.dumps("\N{GRINNING FACE}" * 10_000, ensure_ascii=False),
    "an empty array": "[]",
    "an array": '[1, null, "a", [true, {"b": []}]]',
    "many": json.dumps([f"host-{number}" for number in range(3_000)]),
    "an empty object": "{}",
    "an object": '{"a": {"b": [1, "x"]}, "": null}',
    "deep": "[" * 90 + "]" * 90,
    "an early time": '"0000-00-00T00:00:00Z"',
    "a late time": '"9999-12-31T23:59:59.999999999Z"',
    "epoch": "1763712000",
    "epoch in milliseconds": "1763712000123",
    "epoch of nobody": "99999999999999999999",
}


def metrics_bodies(value: str) -> list[bytes]:
    """Return webhooks with the value at a different position in each."""
    parts = [(part, name) for part in NAMES for name in NAMES[part]]
    bodies = [
        webhook(item("a", **{part: {"alertname": "a", name: "VALUE"}})) for part, name in parts
    ]
    bodies += [webhook(item("a", **{name: "VALUE"})) for name in ITEM]
    bodies += [webhook(item("a"), **{name: "VALUE"}) for name in TOP]
    return [_with(value, body) for body in bodies]


def full_webhooks(value: str) -> tuple[bytes, bytes]:
    """Return webhooks with the value at every position of the items and around the items."""
    items: list[dict[str, Any]] = [
        item("a", **{part: {"alertname": "a", **dict.fromkeys(names, "VALUE")}})
        for part, names in NAMES.items()
    ]
    items += [item(f"its {name}", **{name: "VALUE"}) for name in ITEM]
    around = webhook(item("a"), **dict.fromkeys(TOP, "VALUE"))
    return _with(value, webhook(*items)), _with(value, around)


def full_alerts(value: str) -> tuple[bytes, bytes]:
    """Return a generic alert with the value in every field, and one with an end.

    Alerts with an end are stored in another way.
    """
    firing = [name for name in GENERIC if name != "end_time"]
    ending = {"title": "VALUE", "end_time": "VALUE"}
    return (
        _with(value, json.dumps(dict.fromkeys(firing, "VALUE")).encode()),
        _with(value, json.dumps(ending).encode()),
    )


def _with(value: str, body: bytes) -> bytes:
    return body.replace(b'"VALUE"', value.encode("utf-8", "surrogatepass"))
