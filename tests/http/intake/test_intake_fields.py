"""Every field of both formats with values of every type and length, and with hostile text."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from domain.accounts.roles import Role
from tests.support.integration_pages import address
from tests.support.live import LiveGatebell
from tests.support.senders import Endpoint, connect, item, webhook
from tests.support.stored import alerts_of, deliveries_of
from tests.support.team import browser_of

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

#: As JSON texts, for some cannot be written by a careful writer.
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
    "long": json.dumps("x" * 200_000),
    "long and wide": json.dumps("\N{GRINNING FACE}" * 20_000, ensure_ascii=False),
    "an empty array": "[]",
    "an array": '[1, null, "a", [true, {"b": []}]]',
    "many": json.dumps([f"host-{number}" for number in range(5_000)]),
    "an empty object": "{}",
    "an object": '{"a": {"b": [1, "x"]}, "": null}',
    "deep": "[" * 90 + "]" * 90,
    "an early time": '"0000-00-00T00:00:00Z"',
    "a late time": '"9999-12-31T23:59:59.999999999Z"',
    "epoch": "1763712000",
    "epoch in milliseconds": "1763712000123",
    "epoch of nobody": "99999999999999999999",
}

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></textarea></select><svg onload=alert(1)>",
    "javascript:alert(1)",
    "[click](javascript:alert(1)) ![x](//evil.example/x.png) **bold**",
    "data:text/html,<script>alert(1)</script>",
    "\u202egnp.exe\u202c \u200b\u2066\ufeff",
    "{{ 7*7 }} {% for x in y %} ${7*7} #{7*7}",
    "%s %(password)s %n {0} {0.__class__} {alert.__dict__}",
    "'; DROP TABLE alerts; -- \" OR 1=1 \\",
    "\x1b[31mred\x07\r\nSet-Cookie: a=b",
)


def metrics_bodies(value: str) -> list[bytes]:
    """Return webhooks, each with the value in another place."""
    parts = [(part, name) for part in NAMES for name in NAMES[part]]
    bodies = [
        webhook(item("a", **{part: {"alertname": "a", name: "VALUE"}})) for part, name in parts
    ]
    bodies += [webhook(item("a", **{name: "VALUE"})) for name in ITEM]
    bodies += [webhook(item("a"), **{name: "VALUE"}) for name in TOP]
    return [body.replace(b'"VALUE"', value.encode("utf-8", "surrogatepass")) for body in bodies]


@pytest.mark.spec("I3", "I7")
@pytest.mark.parametrize("name", VALUES)
def test_a_generic_alert_takes_any_value_in_any_field(gatebell: LiveGatebell, name: str) -> None:
    endpoint = connect(gatebell)
    for field in GENERIC:
        body = f'{{"{field}": {VALUES[name]}, "number": "{field}"}}'.encode()
        answer = endpoint.post(body)
        assert answer.status_code == 200, (field, answer.text)
        assert deliveries_of(gatebell, endpoint.project)[-1].body == body
    lengths = {"title": 200, "description": 1000, "service": 100, "monitoring_tool": 100}
    for alert in alerts_of(gatebell, endpoint.project):
        assert all(len(getattr(alert, field) or "") <= lengths[field] for field in lengths)
        assert len(alert.hosts.replace("\n", "")) <= 255


@pytest.mark.spec("I11", "I12", "I13")
@pytest.mark.parametrize("name", VALUES)
def test_a_webhook_takes_any_value_in_any_place_or_says_what_is_wrong(
    gatebell: LiveGatebell, name: str
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    for body in metrics_bodies(VALUES[name]):
        answer = endpoint.post(body)
        assert answer.status_code in {200, 422}, answer.text
        if answer.status_code == 422:
            assert answer.json()["errors"][0]["reason"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text_wherever_it_is_shown(gatebell: LiveGatebell, text: str) -> None:
    generic = connect(gatebell, name=text if text.isprintable() else "Hook")
    generic.send(**dict.fromkeys(GENERIC, text))
    metrics = connect(gatebell, generic.project, kind="prometheus", name="Metrics")
    labels, annotations = dict.fromkeys(LABELS, text), dict.fromkeys(ANNOTATIONS, text)
    changes: dict[str, Any] = {"generatorURL": text, "fingerprint": f"another {text}"}
    metrics.post(webhook(item("a", labels=labels, annotations=annotations, **changes)))
    browser = browser_of(gatebell, generic.project, Role.MAINTAINER)
    for page in pages(gatebell, generic, metrics):
        shown = browser.get(page)
        assert shown.status_code == 200, page
        for forbidden in ("<script>alert", "<img src=x", "<svg onload", 'href="javascript:'):
            assert forbidden not in shown.text, page
        assert 'href="data:' not in shown.text
        assert "Set-Cookie: a=b" not in str(shown.headers)
        assert " 49 " not in shown.text


def pages(gatebell: LiveGatebell, *endpoints: Endpoint) -> list[str]:
    """Return where anything of what was sent is shown."""
    project = endpoints[0].project
    found = [f"{gatebell.url}/{project}", f"{gatebell.url}/{project}/-/alerts"]
    found += [f"{gatebell.url}/{project}/-/alerts/{iid}" for iid in (1, 2)]
    found.append(address(gatebell, project))
    log = deliveries_of(gatebell, project)
    for endpoint in endpoints:
        for page in ("configure", "credentials", "test", "deliveries", "delete"):
            found.append(address(gatebell, project, f"{{id}}/{page}", endpoint.id))
        (mine,) = (each.id for each in log if each.integration_id == endpoint.id)
        found.append(address(gatebell, project, f"{{id}}/deliveries/{mine}", endpoint.id))
        found.append(address(gatebell, project, f"{{id}}/configure?sample={mine}", endpoint.id))
    return found
