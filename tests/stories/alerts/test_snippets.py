"""Snippets of the credentials page, used with the programs that they are for."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.stories.conftest import Notify
from tests.support.alerts.integration_pages import opened, snippets_on
from tests.support.alerts.monitoring import PROGRAMS, is_installed, wait_until
from tests.support.alerts.senders import JSON, Endpoint, captured, connect
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
needs_monitoring = pytest.mark.skipif(
    not is_installed(), reason="scripts/ensure-monitoring could not fetch them"
)


def documents(gatebell: LiveGatebell, endpoint: Endpoint, sender: str) -> list[Any]:
    """Return the YAML documents of the snippet for a sender."""
    return list(yaml.safe_load_all(text_for(gatebell, endpoint, sender)))


def text_for(gatebell: LiveGatebell, endpoint: Endpoint, sender: str) -> str:
    texts = snippets_on(opened(gatebell, endpoint, "{id}/credentials")[1])
    (text,) = (text for title, text in texts.items() if title.startswith(sender))
    return text


def check_configuration(text: str, directory: Path) -> None:
    """Check a configuration with Alertmanager's own tool."""
    file = directory / "alertmanager.yml"
    file.write_text(text, encoding="utf-8")
    command = [str(PROGRAMS / "amtool"), "check-config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@needs_monitoring
@pytest.mark.spec("H5", "I2", "I11")
def test_alertmanager_accepts_its_snippet_and_sends(
    live_sqlite: LiveGatebell, notify: Notify, tmp_path: Path
) -> None:
    endpoint = connect(live_sqlite, kind="prometheus", name="It's O'Brien's: #1")
    check_configuration(text_for(live_sqlite, endpoint, "Alertmanager"), tmp_path)
    (pasted,) = documents(live_sqlite, endpoint, "Alertmanager")
    # Only the receiver is used, because the route would wait for half a minute.
    (receiver,) = pasted["receivers"]
    assert pasted["route"] == {"receiver": receiver["name"]}
    (webhook,) = receiver["webhook_configs"]
    notify(webhook).fire({"labels": {"alertname": "Pasted"}})
    wait_until(
        lambda: len(list_stored_alerts(live_sqlite, endpoint.project)) == 1, "the alert is there"
    )


@needs_monitoring
@pytest.mark.spec("H5", "I2")
def test_the_resources_for_the_operator_are_equivalent(
    live_sqlite: LiveGatebell, tmp_path: Path
) -> None:
    endpoint = connect(live_sqlite, kind="prometheus")
    secret, resource = documents(live_sqlite, endpoint, "Prometheus Operator")
    assert (secret["apiVersion"], secret["kind"]) == ("v1", "Secret")
    assert (resource["apiVersion"], resource["kind"]) == (
        "monitoring.coreos.com/v1alpha1",
        "AlertmanagerConfig",
    )
    spec = resource["spec"]
    spec["receivers"][0]["webhookConfigs"][0]["httpConfig"]["authorization"]["credentials"] = (
        referred_to(secret, spec["receivers"][0]["webhookConfigs"][0])
    )
    made = yaml.safe_dump(snake_case(spec))
    check_configuration(made, tmp_path)
    (pasted,) = documents(live_sqlite, endpoint, "Alertmanager")
    assert yaml.safe_load(made) == pasted


def referred_to(secret: dict[str, Any], webhook: dict[str, Any]) -> str:
    """Return the value that the operator reads from the secret that a webhook names."""
    reference = webhook["httpConfig"]["authorization"]["credentials"]
    assert reference["name"] == secret["metadata"]["name"]
    key = secret["stringData"][reference["key"]]
    assert isinstance(key, str)
    return key


def snake_case(value: Any) -> Any:
    """Return a resource with the names of Alertmanager's configuration file."""
    if isinstance(value, dict):
        return {
            re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name): snake_case(each)
            for name, each in value.items()
        }
    return [snake_case(each) for each in value] if isinstance(value, list) else value


@pytest.mark.spec("H5", "I2", "I11")
def test_grafana_sends_with_its_contact_point(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    (provisioned,) = documents(gatebell, endpoint, "Grafana")
    assert provisioned["apiVersion"] == 1
    (point,) = provisioned["contactPoints"]
    (receiver,) = point["receivers"]
    assert (receiver["type"], receiver["disableResolveMessage"]) == ("webhook", False)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", receiver["uid"])
    # Grafana replaces these by variables of its environment.
    assert "$" not in yaml.safe_dump(provisioned)
    settings = receiver["settings"]
    scheme, key = settings["authorization_scheme"], settings["authorization_credentials"]
    answer = requests.request(
        settings["httpMethod"],
        settings["url"],
        data=captured("grafana.json"),
        headers={"Content-Type": JSON, "Authorization": f"{scheme} {key}"},
        timeout=30,
    )
    assert [each["iid"] for each in answer.json()] == [1, 2]


def test_the_snippet_for_pagerduty_tools_has_url_and_routing_key(
    live_sqlite: LiveGatebell,
) -> None:
    endpoint = connect(live_sqlite)
    pasted = json.loads(text_for(live_sqlite, endpoint, "PagerDuty"))
    event = {
        "routing_key": pasted["routing_key"],
        "event_action": "trigger",
        "payload": {"summary": "Pasted", "source": "web-1", "severity": "info"},
    }
    assert requests.post(pasted["url"], json=event, timeout=10).status_code == 202
    assert [alert.title for alert in list_stored_alerts(live_sqlite, endpoint.project)] == [
        "Pasted"
    ]
