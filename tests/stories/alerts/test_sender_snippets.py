"""Snippets for programs that use a script, a template or a URL, run as those programs do."""

import json
import os
import re
import subprocess
import warnings
from pathlib import Path
from string import Template
from typing import Any

import apprise
import pytest
import requests
import yaml

from tests.stories.javascript import NODE, install, run_script
from tests.support.alerts.integration_pages import opened, snippets_on
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

_GUIDES = Path(__file__).parents[1] / "guides"

#: Objects that Zabbix provides to scripts; requests go to standard output.
ZABBIX = """
class HttpRequest {
  constructor() { this.headers = []; }
  addHeader(line) { this.headers.push(line); }
  getStatus() { return 200; }
  post(url, body) { console.log(JSON.stringify({ url, body, headers: this.headers })); return ''; }
}
const run = new Function('value', 'HttpRequest', SCRIPT);
if (run(JSON.stringify(PARAMETERS), HttpRequest) !== 'OK') process.exit(1);
"""


@pytest.fixture
def endpoint(live_sqlite: LiveGatebell) -> Endpoint:
    return connect(live_sqlite)


def text_for(gatebell: LiveGatebell, endpoint: Endpoint, beginning: str) -> str:
    texts = snippets_on(opened(gatebell, endpoint, "{id}/credentials")[1])
    (text,) = (text for title, text in texts.items() if title.startswith(beginning))
    return text


def headers_in(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines())


def send(endpoint: Endpoint, body: str, headers: dict[str, str]) -> None:
    answer = requests.post(endpoint.url, data=body.encode(), headers=headers, timeout=20)
    assert answer.status_code == 200, answer.text


def titles(gatebell: LiveGatebell, endpoint: Endpoint) -> list[tuple[str, str]]:
    return [(each.title, each.status) for each in list_stored_alerts(gatebell, endpoint.project)]


@pytest.mark.long
def test_apprise_accepts_its_url(live_sqlite: LiveGatebell, endpoint: Endpoint) -> None:
    text = text_for(live_sqlite, endpoint, "Apprise")
    url = re.search(r"'(jsons?://[^']+)'", text)
    assert url is not None
    sender = apprise.Apprise()
    with warnings.catch_warnings():  # Its plugins cause warnings.
        warnings.simplefilter("ignore")
        assert sender.add(url[1])
        assert sender.notify(title="Disk almost full", body="2% left")
    (alert,) = list_stored_alerts(live_sqlite, endpoint.project)
    assert (alert.title, alert.description) == ("Disk almost full", "2% left")


@pytest.mark.long
def test_monit_calls_its_script(
    live_sqlite: LiveGatebell, endpoint: Endpoint, tmp_path: Path
) -> None:
    script = tmp_path / "gatebell-monit"
    script.write_text(text_for(live_sqlite, endpoint, "Monit"))
    told = {
        "MONIT_HOST": "web-1",
        "MONIT_SERVICE": "root",
        "MONIT_EVENT": "Resource limit matched",
        "MONIT_DESCRIPTION": 'space usage 91.0% matches "limit"\\ [usage > 90.0%]\n\t$(id) `id`',
    }
    environment = {"PATH": os.environ["PATH"], **told}
    for arguments in ([], ["resolved"]):
        subprocess.run(
            ["/bin/sh", str(script), *arguments], env=environment, timeout=60, check=True
        )
        (alert,) = list_stored_alerts(live_sqlite, endpoint.project)
        assert alert.title == "root: Resource limit matched"
        assert alert.status == ("resolved" if arguments else "triggered")
        description = alert.description or ""
        assert description.startswith('space usage 91.0% matches "limit"\\ [usage')
        assert "$(id) `id`" in description


@pytest.mark.long
def test_healthchecks_fills_in_its_bodies(live_sqlite: LiveGatebell, endpoint: Endpoint) -> None:
    texts = {
        part: text_for(live_sqlite, endpoint, f"Healthchecks: {part}")
        for part in (
            *("webhook URL", "request headers"),
            *("request body for down", "request body for up"),
        )
    }
    assert texts["webhook URL"].strip() == endpoint.url
    told = {"NAME": "Backup", "CODE": "6f0c", "NOW": "2026-11-23T03:00:00+00:00"}
    for state in ("down", "up"):
        body = Template(texts[f"request body for {state}"]).substitute(told)
        send(endpoint, body, headers_in(texts["request headers"]))
    assert titles(live_sqlite, endpoint) == [("Backup is down", "resolved")]


@pytest.mark.long
def test_uptime_kuma_renders_its_body(live_sqlite: LiveGatebell, endpoint: Endpoint) -> None:
    headers = json.loads(text_for(live_sqlite, endpoint, "Uptime Kuma: additional"))
    install(_GUIDES)
    template = text_for(live_sqlite, endpoint, "Uptime Kuma: custom")

    def render(told: dict[str, Any]) -> str:
        given = {"template": template, "context": told}
        return str(run_script(_GUIDES, given, script="fill.mjs")["filled"])

    times = {0: "2026-11-23 03:00:00.000", 1: "2026-11-23 23:59:00.000"}
    for status, time in times.items():
        told: dict[str, Any] = {
            "name": 'The "shop"',
            "msg": f'[The "shop"] [{status}]',
            "monitorJSON": {"id": 7},
            "heartbeatJSON": {"status": status, "time": time},
        }
        send(endpoint, render(told), headers)
    assert titles(live_sqlite, endpoint) == [('[The "shop"] [0]', "resolved")]
    # Its test message contains neither a monitor nor a heartbeat.
    none = {"name": "Monitor Name not available", "msg": "Testing"}
    send(endpoint, render({**none, "monitorJSON": None, "heartbeatJSON": None}), headers)
    assert ("Testing", "triggered") in titles(live_sqlite, endpoint)


@pytest.mark.long
def test_zabbix_runs_its_script(live_sqlite: LiveGatebell, endpoint: Endpoint) -> None:
    imported = yaml.safe_load(text_for(live_sqlite, endpoint, "Zabbix"))
    (media_type,) = imported["zabbix_export"]["media_types"]
    assert {each["operation_mode"] for each in media_type["message_templates"]} == {
        "PROBLEM",
        "RECOVERY",
    }
    given = {each["name"]: each["value"] for each in media_type["parameters"]}
    told = {
        "host": "web-1",
        "id": "42",
        "name": "High load",
        "message": "9.1",
        "severity": "4",
    }
    for value in ("1", "0"):
        parameters = {**given, **told, "value": value}
        program = ZABBIX.replace("SCRIPT", json.dumps(media_type["script"])).replace(
            "PARAMETERS", json.dumps(parameters)
        )
        done = subprocess.run(
            [NODE, "-e", program], capture_output=True, text=True, timeout=60, check=True
        )
        sent = json.loads(done.stdout)
        assert sent["url"] == endpoint.url
        send(endpoint, sent["body"], dict(line.split(": ", 1) for line in sent["headers"]))
    (alert,) = list_stored_alerts(live_sqlite, endpoint.project)
    assert (alert.title, alert.status, alert.hosts) == ("High load", "resolved", "web-1")


def test_collectd_sends_notifications_with_its_configuration(
    live_sqlite: LiveGatebell, endpoint: Endpoint
) -> None:
    text = text_for(live_sqlite, endpoint, "collectd")
    options = dict(re.findall(r"^    (\w+) \"?([^\"\n]+)\"?$", text, re.MULTILINE))
    assert options["URL"] == endpoint.url
    assert (options["Format"], options["Metrics"], options["Notifications"]) == (
        *("JSON", "false"),
        "true",
    )
    # This is the format of collectd's write_http.
    notification = {
        "labels": {"alertname": "collectd_df_df_complex", "severity": "FAILURE"},
        "annotations": {"summary": "Host web-1, plugin df: 97 is above 90."},
        "startsAt": "2026-11-23T03:00:00.000000000Z",
    }
    headers = {**headers_in(options["Header"]), "Content-Type": "application/json"}
    send(endpoint, json.dumps([notification]), headers)
    assert len(titles(live_sqlite, endpoint)) == 1
