"""The gallery of known tools: search, adding an integration, its own message, and the strip."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
import requests

from domain.access.roles import Role
from tests.http.pages.test_charts import strips_of
from tests.support.accounts.people import alice, make_project
from tests.support.accounts.team import browser_of
from tests.support.alerts.integration_pages import address, opened, snippets_on, words
from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_alerts, list_stored_integrations
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings
from tests.support.wire.html_forms import form_to, form_with, forms_in, submit

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def free(live_sqlite: LiveGatebell) -> Iterator[LiveGatebell]:
    with changed_settings(live_sqlite, tier="free") as live:
        yield live


def test_a_search_lists_the_tools_by_kind(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new/tools")
    shown = words(page.text)
    assert re.search(r"Uptime [^→]*H Healthchecks [^→]*UK Uptime Kuma [^→]*Servers and", shown)
    assert "Any tool that posts JSON" in shown
    assert "External on-call tool" in shown
    assert page.text.count('<li><a class="tile"') > 25

    tools = address(gatebell, endpoint.project, "new/tools")
    found = browser.get(tools, params={"search": "sns CLOUD"}).text
    assert words(found).count("Amazon") == 2  # The kind of both tools contains the other word.
    assert "2 tools matching" in words(found)
    none = words(browser.get(tools, params={"search": "<b>nothing"}).text)
    assert "No matching tools" in none
    assert "Any tool that posts JSON" in none
    assert browser.get(tools, params={"unknown": "1"}).status_code == 400
    assert browser.get(f"{tools}/unknown").status_code == 404
    _, refused = opened(gatebell, endpoint, "new/tools", Role.DEVELOPER)
    assert refused.status_code == 403


@pytest.mark.parametrize(
    ("slug", "kind", "title"),
    [
        ("zabbix", "http", "Disk almost full"),
        ("nagios-or-icinga", "http", "web-1: web"),
        ("amazon-cloudwatch-through-sns", "http", "Disk almost full"),
        ("pagerduty-events-api", "http", "Disk almost full"),
        ("grafana", "prometheus", "web-1 does not answer"),
        ("prometheus-or-vmalert", "prometheus", "web-1 does not answer"),
    ],
)
def test_a_tool_gets_an_integration_whose_test_alert_is_resolved(
    gatebell: LiveGatebell, slug: str, kind: str, title: str
) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, f"new/tools/{slug}"))
    form = form_with(page, "name")
    name = form.value("name")
    made = submit(browser, page, form)
    (row,) = list_stored_integrations(gatebell, project)
    assert (row.type, row.name, row.active) == (kind, name, True)

    credentials = browser.get(gatebell.url + made.headers["Location"])
    curl = snippets_on(credentials)["curl: one alert on the command line"]
    command = shlex.split(curl.replace("\\\n", " "))
    sent = subprocess.run(
        [*command, "--silent", "--noproxy", "*"], check=True, capture_output=True, text=True
    )
    answer = json.loads(sent.stdout)
    assert answer == [{"iid": 1, "title": title}] or answer["status"] == "success"

    test = browser.get(address(gatebell, project, "{id}/test", row.id))
    result = submit(browser, test, form_with(test, "payload"), do="send")
    assert "Added to an open alert" in words(result.text)
    recovery = next(each for each in forms_in(result.text) if each.has("payload"))
    over = submit(browser, result, recovery, do="send")
    assert "Resolved an open alert" in words(over.text)
    assert [(each.title, each.status) for each in list_stored_alerts(gatebell, project)] == [
        (title, "resolved")
    ]


def test_the_guide_of_a_tool_is_in_place(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new/tools/uptime-kuma"))
    assert "1. Create the integration" in words(page.text)
    assert "2. Add a notification" in words(page.text)
    assert "Without a mapping" not in words(page.text)
    made = submit(browser, page, form_with(page, "name"), name="Night")
    credentials = browser.get(gatebell.url + made.headers["Location"])
    (row,) = list_stored_integrations(gatebell, project)
    assert row.name == "Night"
    guide = credentials.text.partition("Step by step")[2]
    assert f"/notify/night/{row.endpoint_identifier}.json" in guide.partition("</details>")[0]
    # A tool without a guide has an instruction.
    hint = words(browser.get(address(gatebell, project, "new/tools/pingdom")).text)
    assert "2. Configure Pingdom Add an integration of the type Webhook" in hint


def test_a_pasted_message_is_the_message_of_the_snippets(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    sample = '{"check": {"label": "It\'s \\"full\\"", "ok": false, "none": null}, "level": "High"}'
    found = submit(browser, page, form_to(page, "/new#proposal"), do="recognize", sample=sample)
    made = submit(browser, found, form_with(found, "name"))
    credentials = browser.get(gatebell.url + made.headers["Location"])
    snippets = snippets_on(credentials)
    assert [title.partition(":")[0] for title in snippets] == ["curl", "Python"]
    python = snippets["Python: standard library only"]
    ran = subprocess.run(
        [sys.executable, "-c", python],
        check=True,
        capture_output=True,
        text=True,
        env={"no_proxy": "*"},
    )
    assert json.loads(ran.stdout)[0]["title"] == 'It\'s "full"'


def test_the_free_tier_shows_how_to_connect_a_tool_without_a_mapping(free: LiveGatebell) -> None:
    project = make_project(free, alice(free))
    browser = browser_of(free, project, Role.MAINTAINER)
    page = browser.get(address(free, project, "new/tools/uptime-kuma"))
    assert "Mappings require the Premium or Ultimate tier" in words(page.text)
    assert "2. Add a notification" not in words(page.text)
    assert "Choose Custom Body" in words(page.text)
    made = submit(browser, page, form_with(page, "name"))
    (row,) = list_stored_integrations(free, project)
    assert (row.mapping, row.sample) == (None, None)
    snippets = snippets_on(browser.get(free.url + made.headers["Location"]))
    assert "Uptime Kuma: custom request body" in snippets
    # The body of the snippet is readable.
    curl = shlex.split(snippets["curl: one alert on the command line"].replace("\\\n", " "))
    ran = subprocess.run([*curl, "--silent", "--noproxy", "*"], check=True, capture_output=True)
    assert json.loads(ran.stdout)[0]["title"] == "Disk almost full on web-1"


def test_a_routing_key_in_a_pasted_message_is_not_stored(gatebell: LiveGatebell) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    page = browser.get(address(gatebell, project, "new"))
    about = {"summary": "Disk full", "source": "web-1", "severity": "critical"}
    event = {"routing_key": "secret-1", "event_action": "trigger", "payload": about}
    added = submit(browser, page, form_to(page, "/new#proposal"), sample=json.dumps(event))
    assert added.status_code == 302
    (row,) = list_stored_integrations(gatebell, project)
    assert json.loads(row.sample or "")["payload"] == about
    assert "secret-1" not in (row.sample or "")


def test_a_routing_key_in_the_sample_of_a_mapping_is_not_stored(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    sample = json.dumps({"routing_key": "secret-1", "title": "Disk full"})
    at = f"alert_management_integrations/{endpoint.id}/mapping"
    script_of(gatebell, endpoint.project, at).put(sample=sample, mapping={})
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert json.loads(row.sample or "")["routing_key"] == "[hidden]"
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    page = submit(browser, page, form_with(page, "sample"), sample=sample)
    assert submit(browser, page, form_with(page, "sample"), do="save").status_code == 302
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert json.loads(row.sample or "")["routing_key"] == "[hidden]"


@pytest.mark.both_databases
def test_the_list_shows_the_last_24_hours(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    connect(gatebell, endpoint.project, name="Silent")
    connect(gatebell, endpoint.project, kind="external", name="Pager", active=False)
    endpoint.accepted(title="Now")
    assert endpoint.post(b"{").status_code == 400
    _, page = opened(gatebell, endpoint, "")
    strips = re.findall(r'<svg class="hours" viewBox="0 0 144 18".*?</svg>', page.text, re.DOTALL)
    of_busy, of_silent = strips_of(page.text)
    assert of_busy.endswith(
        "in the last 24 hours. Hours with received deliveries: 1, with rejected deliveries: 1"
    )
    assert of_silent == "No deliveries"
    assert strips[0].count("<title>") == 24
    assert "<title>Last hour: received and rejected</title>" in strips[0]


def test_a_tool_without_headers_gets_an_integration_that_accepts_the_key_in_the_url(
    gatebell: LiveGatebell,
) -> None:
    project = make_project(gatebell, alice(gatebell))
    browser = browser_of(gatebell, project, Role.MAINTAINER)
    for slug, expected in (("cloudflare", 200), ("zabbix", 401)):
        page = browser.get(address(gatebell, project, f"new/tools/{slug}"))
        made = submit(browser, page, form_with(page, "name"))
        credentials = browser.get(gatebell.url + made.headers["Location"])
        curl = shlex.split(snippets_on(credentials)["curl: one alert on the command line"])
        url = next(word for word in curl if word.startswith("http"))
        key = next(word for word in curl if "Bearer" in word).rpartition(" ")[2]
        body = json.loads(curl[curl.index("--data") + 1])
        with requests.Session() as session:
            session.trust_env = False
            answer = session.post(url, params={"key": key}, json=body, timeout=60)
        assert answer.status_code == expected, slug
