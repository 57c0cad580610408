"""Values of each type, long values and hostile texts in each field of both formats."""

from typing import Any

import pytest

from domain.access.roles import Role
from tests.support.accounts.team import browser_of
from tests.support.alerts.integration_pages import address
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.alerts.strange_bodies import (
    ANNOTATIONS,
    GENERIC,
    LABELS,
    VALUES,
    full_alerts,
    full_webhooks,
)
from tests.support.database.databases import ON_POSTGRES
from tests.support.database.stored import (
    count_reports,
    get_newest_delivery,
    list_stored_alerts,
    list_stored_deliveries,
)
from tests.support.service.live import LiveGatebell

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


# tests/domain/alerts/parsing/test_strange_bodies.py tests each value in each field separately.
@pytest.mark.spec("I3", "I7")
def test_a_generic_alert_with_any_value_in_all_its_fields_is_stored(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for name, value in VALUES.items():
        for body in full_alerts(value):
            answer = endpoint.post(body)
            assert answer.status_code == 200, (name, answer.text)
            delivery = get_newest_delivery(gatebell, endpoint.project)
            assert (delivery.body, count_reports(gatebell, delivery)) == (body, 1), name
    lengths = {"title": 200, "description": 1000, "service": 100, "monitoring_tool": 100}
    for alert in list_stored_alerts(gatebell, endpoint.project):
        assert all(len(getattr(alert, field) or "") <= lengths[field] for field in lengths)
        assert len(alert.hosts.replace("\n", "")) <= 255


@pytest.mark.long
@pytest.mark.spec("I11", "I12", "I13")
def test_a_webhook_with_any_value_in_all_its_fields_is_stored(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    for name, value in VALUES.items():
        for body in full_webhooks(value):
            answer = endpoint.post(body)
            assert answer.status_code == 200, (name, answer.text)
            delivery = get_newest_delivery(gatebell, endpoint.project)
            refused = [
                warning for warning in delivery.parse_warnings if " was rejected: " in warning
            ]
            count = body.count(b'"startsAt"')
            assert count_reports(gatebell, delivery) + len(refused) == count, name
            assert delivery.body == body, name


@pytest.mark.long
@ON_POSTGRES
def test_hostile_text_is_escaped_on_every_page(gatebell: LiveGatebell) -> None:
    generic = connect(gatebell, name="".join(HOSTILE[:2]))
    for text in HOSTILE:
        generic.accepted(**dict.fromkeys(GENERIC, text))
    metrics = connect(gatebell, generic.project, kind="prometheus", name=HOSTILE[2])
    items: list[dict[str, Any]] = [
        item(
            "a",
            labels=dict.fromkeys(LABELS, text),
            annotations=dict.fromkeys(ANNOTATIONS, text),
            generatorURL=text,
            fingerprint=f"another {text}",
        )
        for text in HOSTILE
    ]
    assert len(metrics.post(webhook(*items)).json()) == len(HOSTILE)
    browser = browser_of(gatebell, generic.project, Role.MAINTAINER)
    for page in pages(gatebell, generic, metrics):
        shown = browser.get(page)
        assert shown.status_code == 200, page
        for forbidden in ("<script>alert", "<img src=x", "<svg onload", 'href="javascript:'):
            assert forbidden not in shown.text, page
        assert 'href="data:' not in shown.text, page
        assert "Set-Cookie: a=b" not in str(shown.headers), page
        assert " 49 " not in shown.text, page


def pages(gatebell: LiveGatebell, *endpoints: Endpoint) -> list[str]:
    """Return the pages that show a part of the body."""
    project = endpoints[0].project
    found = [f"{gatebell.url}/{project}", f"{gatebell.url}/{project}/-/alerts"]
    found += [
        f"{gatebell.url}/{project}/-/alerts/{alert.iid}"
        for alert in list_stored_alerts(gatebell, project)
    ]
    found.append(address(gatebell, project))
    for endpoint in endpoints:
        for page in ("configure", "credentials", "test", "deliveries", "delete"):
            found.append(address(gatebell, project, f"{{id}}/{page}", endpoint.id))
    for row in list_stored_deliveries(gatebell, project):
        for page in (f"deliveries/{row.id}", f"configure?sample={row.id}"):
            found.append(address(gatebell, project, f"{{id}}/{page}", row.integration_id or 0))
    return found
