"""Messages of known tools, posted to integrations with the proposed mapping."""

import json
from typing import Any

import pytest

from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.alerts.tool_messages import ToolMessages, load_messages
from tests.support.database.stored import get_newest_delivery, list_stored_alerts
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases


def set_up(gatebell: LiveGatebell, messages: ToolMessages) -> Endpoint:
    """Create an integration with the type and the mapping that the service proposes."""
    found = messages.recognize().proposal.format
    endpoint = connect(gatebell, kind=found.name)
    integrations = script_of(gatebell, endpoint.project, "alert_management_integrations")
    proposed = integrations.post("/recognize", sample=messages.sample).json()
    assert proposed["tool"] == messages.tool
    if proposed["type"] == "http":
        saved = integrations.put(f"/{endpoint.id}/mapping", **proposed)
        assert saved.status_code == 200, saved.text
    return endpoint


def post(endpoint: Endpoint, *messages: Any) -> None:
    for message in messages:
        answer = endpoint.post(json.dumps(message).encode())
        assert answer.ok, answer.text


def stored(gatebell: LiveGatebell, endpoint: Endpoint) -> list[tuple[str, str, int]]:
    return [
        (alert.title, alert.status, alert.events)
        for alert in list_stored_alerts(gatebell, endpoint.project)
    ]


@pytest.mark.parametrize("module", ["alertmanager", "collectd", "nagios", "pagerduty_events"])
def test_a_repeat_joins_the_alert_and_the_recovery_resolves_it(
    gatebell: LiveGatebell, module: str
) -> None:
    messages = load_messages(module)
    endpoint = set_up(gatebell, messages)
    title = messages.expected["title"]
    post(endpoint, messages.firing, messages.repeat)
    assert stored(gatebell, endpoint) == [(title, "triggered", 2)]
    post(endpoint, messages.recovery)
    ((_, status, _),) = stored(gatebell, endpoint)
    assert status == "resolved"


def test_alerts_of_a_tool_without_recoveries_stay_open(gatebell: LiveGatebell) -> None:
    messages = load_messages("sentry_issue_alerts")
    endpoint = set_up(gatebell, messages)
    post(endpoint, messages.firing, messages.repeat)
    assert stored(gatebell, endpoint) == [(messages.expected["title"], "triggered", 2)]


def test_another_object_opens_another_alert_and_harmless_messages_open_none(
    gatebell: LiveGatebell,
) -> None:
    messages = load_messages("nagios")
    endpoint = set_up(gatebell, messages)
    for harmless in messages.harmless:
        assert endpoint.post_json(harmless) == []
        assert get_newest_delivery(gatebell, endpoint.project).dropped == 1
    post(endpoint, messages.firing, *messages.others, *messages.harmless, messages.recovery)
    assert stored(gatebell, endpoint) == [
        ("web-1: HTTP", "resolved", 1),
        ("web-2: HTTP", "triggered", 1),
        ("web-1: SSH", "triggered", 1),
    ]
