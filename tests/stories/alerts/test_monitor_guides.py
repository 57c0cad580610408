"""Follows the guides that connect a monitor word for word: its alerts open and resolve."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.stories.conftest import Notify
from tests.stories.javascript import install, run_script
from tests.support.alerts.integration_pages import address, opened, words
from tests.support.alerts.monitoring import is_installed, wait_until
from tests.support.alerts.senders import JSON, Endpoint, captured, connect
from tests.support.database.stored import list_stored_alerts, list_stored_integrations
from tests.support.documents.guides import guide_for_integration
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")
GUIDES = Path(__file__).parents[1] / "guides"


@pytest.fixture
def endpoint(gatebell: LiveGatebell) -> Endpoint:
    return connect(gatebell)


def assert_opened(gatebell: LiveGatebell, endpoint: Endpoint, *titles: str) -> None:
    alerts = list_stored_alerts(gatebell, endpoint.project)
    assert [(each.title, each.status) for each in alerts] == [
        (title, "triggered") for title in titles
    ]


def assert_all_resolved(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    assert {each.status for each in list_stored_alerts(gatebell, endpoint.project)} == {"resolved"}


def post(endpoint: Endpoint, body: str, headers: dict[str, str]) -> None:
    """Post a body as a monitor does, with only its headers."""
    answer = requests.post(endpoint.url, data=body.encode(), headers=headers, timeout=30)
    assert answer.status_code == 200, answer.text


def test_curl_opens_and_resolves(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    guide = guide_for_integration("curl", endpoint)
    assert json.loads(guide.run_shell("open", KEY=endpoint.key)) == [
        {"iid": 1, "title": "Disk almost full"}
    ]
    assert_opened(gatebell, endpoint, "Disk almost full")
    guide.run_shell("resolve", KEY=endpoint.key)
    assert_all_resolved(gatebell, endpoint)
    guide.run_shell("job", KEY=endpoint.key)
    assert list_stored_alerts(gatebell, endpoint.project)[1].title == "Backup failed"


@pytest.mark.skipif(not is_installed(), reason="scripts/ensure-monitoring could not fetch it")
def test_alertmanager_sends_with_its_configuration(gatebell: LiveGatebell, notify: Notify) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    file = yaml.safe_load(guide_for_integration("alertmanager", endpoint).block("alertmanager.yml"))
    (receiver,) = file["receivers"]
    assert file["route"] == {"receiver": receiver["name"]}
    notify(*receiver["webhook_configs"]).fire({"labels": {"alertname": "InstanceDown"}})
    wait_until(lambda: bool(list_stored_alerts(gatebell, endpoint.project)), "the alert is there")
    assert_opened(gatebell, endpoint, "InstanceDown")


def test_grafana_sends_with_its_contact_point(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    file = yaml.safe_load(guide_for_integration("grafana", endpoint).block("gatebell.yaml"))
    ((receiver,),) = (point["receivers"] for point in file["contactPoints"])
    settings = receiver["settings"]
    assert (settings["url"], settings["httpMethod"]) == (endpoint.url, "POST")
    scheme, key = settings["authorization_scheme"], settings["authorization_credentials"]
    headers = {"Content-Type": JSON, "Authorization": f"{scheme} {key}"}
    post(endpoint, captured("grafana.json").decode(), headers)
    assert len(list_stored_alerts(gatebell, endpoint.project)) == 2


@pytest.mark.long
def test_uptime_kuma_sends_with_its_template(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    install(GUIDES)
    guide = guide_for_integration("uptime-kuma", endpoint)
    headers = json.loads(guide.block("headers.json"))
    monitor = {"id": 7, "name": 'The "shop"', "url": "https://shop.example"}

    def tell(message: str, heartbeat: dict[str, Any] | None) -> None:
        context = {
            "name": monitor["name"],
            "msg": message,
            "hostnameOrURL": monitor["url"],
            "monitorJSON": monitor,
            "heartbeatJSON": heartbeat,
        }
        given = {"template": guide.block("body.liquid"), "context": context}
        post(endpoint, run_script(GUIDES, given, script="fill.mjs")["filled"], headers)

    tell('[The "shop"] [Down] timeout', {"status": 0, "time": "2026-11-22 03:05:00.123"})
    assert_opened(gatebell, endpoint, 'The "shop"')
    tell('[The "shop"] [Up] 200 - OK', {"status": 1, "time": "2026-11-22 03:15:00.123"})
    assert_all_resolved(gatebell, endpoint)
    tell("Uptime Kuma Test", None)
    assert len(list_stored_alerts(gatebell, endpoint.project)) == 2


@pytest.mark.long
def test_zabbix_runs_its_script(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    guide = guide_for_integration("zabbix", endpoint)

    def tell(value: str) -> None:
        parameters = {
            "url": endpoint.url,
            "key": endpoint.key,
            "event": "4711",
            "value": value,
            "severity": "4",
            "title": 'Free disk space is less than "5 %"',
            "host": "web-1",
            "data": "3 %",
        }
        given = {"script": guide.block("script.js"), "parameters": parameters}
        run_script(GUIDES, given, script="zabbix.mjs")

    tell("1")
    assert_opened(gatebell, endpoint, 'Free disk space is less than "5 %"')
    assert list_stored_alerts(gatebell, endpoint.project)[0].severity == 1
    tell("0")
    assert_all_resolved(gatebell, endpoint)


def test_healthchecks_sends_with_its_templates(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    guide = guide_for_integration("healthchecks", endpoint)
    lines = guide.block("headers").splitlines()
    headers = dict(line.split(": ", 1) for line in lines)

    def tell(block: str) -> None:
        known = {
            "$NAME": "Nightly backup",
            "$NOW": "2026-11-22T03:05:00+00:00",
            "$CODE": "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278",
        }
        body = re.sub(r"\$[A-Z]+", lambda found: known[found[0]], guide.block(block))
        post(endpoint, body, headers)

    tell("down.json")
    assert_opened(gatebell, endpoint, "Nightly backup is down")
    tell("up.json")
    assert_all_resolved(gatebell, endpoint)


@pytest.mark.long
def test_nagios_runs_its_program(
    gatebell: LiveGatebell, endpoint: Endpoint, tmp_path: Path
) -> None:
    guide = guide_for_integration("nagios", endpoint)
    program = guide.write("notify-gatebell", tmp_path)
    commands = re.findall(r"command_line\s+(.*)", guide.block("gatebell.cfg"))

    def tell(command: str, **macros: str) -> None:
        filled = re.sub(r"\$(\w+)\$", lambda found: macros[found[1]], command)
        words = shlex.split(filled)
        assert words[0] == "/usr/local/bin/notify-gatebell"
        subprocess.run(
            [sys.executable, str(program), *words[1:]],
            env={"no_proxy": "*"},
            check=True,
            timeout=60,
        )

    of_host, of_service = commands
    service = {"HOSTNAME": "web-1", "SERVICEDESC": "Disk", "SERVICEOUTPUT": "DISK 3 % free"}
    host = {"HOSTNAME": "web-1", "HOSTOUTPUT": "CRITICAL - Host Unreachable"}
    tell(of_service, NOTIFICATIONTYPE="PROBLEM", SERVICESTATE="WARNING", **service)
    tell(of_service, NOTIFICATIONTYPE="PROBLEM", SERVICESTATE="CRITICAL", **service)
    tell(of_service, NOTIFICATIONTYPE="ACKNOWLEDGEMENT", SERVICESTATE="CRITICAL", **service)
    tell(of_host, NOTIFICATIONTYPE="PROBLEM", HOSTSTATE="DOWN", **host)
    assert_opened(gatebell, endpoint, "Disk on web-1", "Host on web-1")
    tell(of_service, NOTIFICATIONTYPE="RECOVERY", SERVICESTATE="OK", **service)
    tell(of_host, NOTIFICATIONTYPE="RECOVERY", HOSTSTATE="UP", **host)
    assert_all_resolved(gatebell, endpoint)


def test_eventbridge_transforms_events(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    file = yaml.safe_load(guide_for_integration("cloudwatch", endpoint).block("gatebell.yaml"))
    parts = {name: each["Properties"] for name, each in file["Resources"].items()}
    assert parts["Destination"]["InvocationEndpoint"] == endpoint.url
    header = parts["Connection"]["AuthParameters"]["ApiKeyAuthParameters"]
    # EventBridge sends application/json with any template.
    headers = {"Content-Type": JSON, header["ApiKeyName"]: header["ApiKeyValue"]}
    for state, rule in (("ALARM", parts["Alarm"]), ("OK", parts["Ok"])):
        assert rule["EventPattern"]["detail"] == {"state": {"value": [state]}}
        (target,) = rule["Targets"]
        post(endpoint, transformed(alarm_event(state), target["InputTransformer"]), headers)
        if state == "ALARM":
            assert_opened(gatebell, endpoint, "ServerCpuTooHigh")
    assert_all_resolved(gatebell, endpoint)


def alarm_event(state: str) -> dict[str, Any]:
    """Return an event with the fields that AWS documents."""
    return {
        "detail-type": "CloudWatch Alarm State Change",
        "source": "aws.cloudwatch",
        "time": "2026-11-22T03:05:00Z" if state == "ALARM" else "2026-11-22T03:15:00Z",
        "region": "us-east-1",
        "resources": ["arn:aws:cloudwatch:us-east-1:123456789012:alarm:ServerCpuTooHigh"],
        "detail": {
            "alarmName": "ServerCpuTooHigh",
            "state": {"value": state, "reason": 'Threshold "Crossed": 1 datapoint [99.5]'},
        },
    }


def transformed(event: dict[str, Any], transformer: dict[str, Any]) -> str:
    """Return an event after EventBridge has replaced names by values as JSON."""

    def value_at(path: str) -> Any:
        found: Any = event
        for part in re.findall(r"\w+", path):
            found = found[int(part)] if part.isdigit() else found[part]
        return found

    paths = transformer["InputPathsMap"]
    template = transformer["InputTemplate"]
    return re.sub(r"<(\w+)>", lambda found: json.dumps(value_at(paths[found[1]])), template)


@pytest.mark.long
def test_sentry_is_recognized_and_resolves_issues(
    gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    guide = guide_for_integration("sentry", endpoint)
    browser, page = opened(gatebell, endpoint, "new")
    sample = guide.block("issue.json")
    found = submit(browser, page, form_to(page, "/new/recognize"), sample=sample)
    assert "Recognized: Sentry (issues)." in words(found.text)
    added = submit(browser, found, form_with(found, "name"))
    assert added.status_code == 302
    row = list_stored_integrations(gatebell, endpoint.project)[-1]
    shown = browser.get(address(gatebell, endpoint.project, "{id}/credentials", row.id)).text
    (url,) = re.findall(r'<code class="copy-value" id="url">(.*?)</code>', shown)
    (key,) = re.findall(r'<code id="authorization-key">(.*?)</code>', shown)
    made = replace(endpoint, id=row.id, url=url, key=key)
    name, _, value = guide_for_integration("sentry", made).block("headers").strip().partition(": ")
    headers = {"Content-Type": JSON, name: value}
    post(made, captured("tools/sentry_issue_created.json").decode(), headers)
    assert_opened(gatebell, made, "KeyError: 'sku'")
    post(made, captured("tools/sentry_issue_resolved.json").decode(), headers)
    assert_all_resolved(gatebell, made)
