"""Follows the guides that connect a monitor word for word: its alerts open and resolve."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from domain.access.roles import Role
from tests.stories.conftest import Notify
from tests.stories.javascript import run_script
from tests.support.accounts.people import alice, make_project
from tests.support.accounts.team import browser_of
from tests.support.alerts.integration_pages import address
from tests.support.alerts.monitoring import is_installed, wait_until
from tests.support.alerts.senders import JSON, Endpoint, captured, connect
from tests.support.alerts.tool_messages import load_messages
from tests.support.database.stored import (
    list_stored_alerts,
    list_stored_deliveries,
    list_stored_integrations,
)
from tests.support.documents.guides import guide_for_integration
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")
GUIDES = Path(__file__).parents[1] / "guides"


@pytest.fixture
def endpoint(gatebell: LiveGatebell) -> Endpoint:
    return connect(gatebell)


def connect_tool(gatebell: LiveGatebell, slug: str) -> Endpoint:
    """Add an integration for a tool with its page in the gallery."""
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, f"new/tools/{slug}"))
    made = submit(browser, page, form_with(page, "name"))
    assert made.status_code == 302
    (row,) = list_stored_integrations(gatebell, project)
    shown = browser.get(gatebell.url + made.headers["Location"]).text
    (url,) = re.findall(r'<code class="copy-value" id="url">(.*?)</code>', shown)
    (key,) = re.findall(r'<code id="authorization-key">(.*?)</code>', shown)
    return Endpoint(row.id, project, url, key, gatebell.url)


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


def test_uptime_kuma_sends_its_own_body(gatebell: LiveGatebell) -> None:
    endpoint = connect_tool(gatebell, "uptime-kuma")
    headers = json.loads(guide_for_integration("uptime-kuma", endpoint).block("headers.json"))
    messages = load_messages("uptime_kuma")
    # With this preset, Uptime Kuma sets the media type itself.
    headers["Content-Type"] = JSON
    post(endpoint, json.dumps(messages.firing), headers)
    assert_opened(gatebell, endpoint, messages.expected["title"])
    post(endpoint, json.dumps(messages.recovery), headers)
    assert_all_resolved(gatebell, endpoint)


@pytest.mark.long
def test_zabbix_runs_its_script(gatebell: LiveGatebell) -> None:
    endpoint = connect_tool(gatebell, "zabbix")
    guide = guide_for_integration("zabbix", endpoint)
    names = re.findall(r"^\| `(\w+)` \|", guide.text, re.MULTILINE)

    def tell(value: str) -> None:
        parameters = {
            "url": endpoint.url,
            "key": endpoint.key,
            "event_id": "4711",
            "event_value": value,
            "event_severity": "High",
            "event_name": 'Free disk space is less than "5 %"',
            "host_name": "web-1",
            "alert_message": "3 %",
        }
        assert names == list(parameters)
        given = {"script": guide.block("script.js"), "parameters": parameters}
        run_script(GUIDES, given, script="zabbix.mjs")

    tell("1")
    assert_opened(gatebell, endpoint, 'Free disk space is less than "5 %"')
    assert list_stored_alerts(gatebell, endpoint.project)[0].severity == 1
    tell("0")
    assert_all_resolved(gatebell, endpoint)
    for delivery in list_stored_deliveries(gatebell, endpoint.project):
        assert endpoint.key.encode() not in (delivery.body or b"")


def test_healthchecks_sends_its_own_body(gatebell: LiveGatebell) -> None:
    endpoint = connect_tool(gatebell, "healthchecks")
    lines = guide_for_integration("healthchecks", endpoint).block("headers").splitlines()
    headers = dict(line.split(": ", 1) for line in lines)
    messages = load_messages("healthchecks")
    post(endpoint, json.dumps(messages.firing), headers)
    assert_opened(gatebell, endpoint, messages.expected["title"])
    post(endpoint, json.dumps(messages.recovery), headers)
    assert_all_resolved(gatebell, endpoint)


@pytest.mark.long
@pytest.mark.parametrize("has_mapping", [True, False])
def test_nagios_runs_its_program(
    gatebell: LiveGatebell, tmp_path: Path, *, has_mapping: bool
) -> None:
    endpoint = connect_tool(gatebell, "nagios-or-icinga") if has_mapping else connect(gatebell)
    guide = guide_for_integration("nagios", endpoint)
    program = guide.write("notify-gatebell", tmp_path)
    if not has_mapping:
        text, marker = program.read_text(encoding="utf-8"), "request = "
        program.write_text(text.replace(marker, guide.block("fields") + marker, 1), "utf-8")
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
    titles = ("web-1: Disk", "web-1") if has_mapping else ("Disk on web-1", "Host on web-1")
    assert_opened(gatebell, endpoint, *titles)
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


def test_sentry_reports_and_resolves_issues(gatebell: LiveGatebell) -> None:
    made = connect_tool(gatebell, "sentry-issues")
    name, _, value = guide_for_integration("sentry", made).block("headers").strip().partition(": ")
    headers = {"Content-Type": JSON, name: value}
    messages = load_messages("sentry_issues")
    post(made, json.dumps(messages.firing), headers)
    assert_opened(gatebell, made, messages.expected["title"])
    post(made, json.dumps(messages.recovery), headers)
    assert_all_resolved(gatebell, made)
