"""The alert list and the page of an alert: contents, roles and actions."""

import json
import re
from functools import cache

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.people import alice, signed_in
from tests.support.accounts.team import browser_of
from tests.support.alerts.senders import Endpoint, captured, connect, item, resolved, webhook
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")

FIELDS = {
    "title": "Disk full",
    "description": "web-1 has 98 % in use",
    "severity": "LOW",
    "service": "checkout",
    "monitoring_tool": "Nagios",
    "hosts": ["web-1", "web-2"],
    "platform_environment_name": "production",
    "runbook": "https://runbooks.example/disk",
    "start_time": "2026-11-21T07:52:39Z",
    "extra": {"deep": [{"er": "nested value"}], "number": 12.5, "nothing": None},
}


def page_of(gatebell: LiveGatebell, endpoint: Endpoint, path: str = "") -> requests.Response:
    """Return the page of an alert as the project's owner Alice sees it."""
    browser = signed_in(gatebell, alice(gatebell))
    return browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts{path}")


def titles(page: requests.Response) -> list[str]:
    assert page.status_code == 200, page.text
    return re.findall(r'/-/alerts/\d+"><bdi>([^<]*)</bdi>', page.text)


@pytest.mark.both_databases
@pytest.mark.spec("J5", "I3", "I13")
def test_the_page_of_an_alert_shows_every_stored_field(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for _ in range(3):
        endpoint.accepted(**FIELDS)
    page = page_of(gatebell, endpoint, "/1")
    assert page.status_code == 200
    for text in (
        "Disk full", "web-1 has 98 % in use", "Low", "checkout", "Nagios", "web-2", "production",
        "3 events", "extra.deep", "nested value", "extra.number", "12.5", "Hook",
        "2026-11-21 07:52:39 UTC",
        'href="https://runbooks.example/disk"',
        "Reports that differ only in start_time, end_time, hosts",
    ):  # fmt: skip
        assert text in page.text, text


@pytest.mark.both_databases
@pytest.mark.spec("J5", "I13")
def test_the_page_of_a_prometheus_alert_shows_query_links_and_notes(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(captured("01_firing_unicode_bearer.json"))
    endpoint.post(captured("17_prometheus_instance_down_2.json"))
    unicode_page = page_of(gatebell, endpoint, "/1").text
    for text in ("磁盘使用率", "сервер-1", "## Heading", "annotations.nested", "&lt;b&gt;html"):
        assert text in unicode_page, text
    down = page_of(gatebell, endpoint, "/3").text
    for text in ("up{job=&#34;dead&#34;} == 0", 'href="https://r.example/down"', "127.0.0.1:2"):
        assert text in down, text


EVIL = "<script>alert(1)</script>{{7*7}}${7*7}%s\u202e<img src=x onerror=alert(1)>\"'"


@pytest.mark.spec("J5")
@pytest.mark.parametrize("kind", ["http", "prometheus"])
def test_text_of_senders_is_escaped_on_every_page(gatebell: LiveGatebell, kind: str) -> None:
    endpoint = connect(gatebell, kind=kind)
    names = (*FIELDS, EVIL, "alertname", "summary", "platform_incident_markdown", "runbook_url")
    fields = dict.fromkeys(names, EVIL) | {"hosts": [EVIL], "fingerprint": [EVIL]}
    evil_item = item("x", labels=fields, annotations=fields, generatorURL=EVIL, fingerprint=EVIL)
    body = webhook(evil_item) if kind == "prometheus" else json.dumps(fields).encode()
    assert endpoint.post(body).status_code == 200
    home = signed_in(gatebell, alice(gatebell)).get(gatebell.url)
    project = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{endpoint.project}")
    for page in (page_of(gatebell, endpoint), page_of(gatebell, endpoint, "/1"), home, project):
        assert page.status_code == 200
        assert "&lt;script&gt;alert(1)" in page.text
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "{{7*7}}" in page.text
        assert "49${" not in page.text


# tests/domain/core/test_text_links.py has more texts that are not links.
@pytest.mark.long
@pytest.mark.advisory("CVE-2023-40577")
@pytest.mark.spec("J5")
def test_only_http_addresses_become_links(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    metrics = connect(gatebell, endpoint.project, kind="prometheus", name="Metrics")
    links = ("javascript:alert(1)", "//evil.example/x", "https:evil")
    for link in links:
        endpoint.accepted(runbook=link)
        metrics.post(webhook(item(link, generatorURL=link, annotations={"runbook": link})))
    for iid in range(1, 2 * len(links) + 1):
        page = page_of(gatebell, endpoint, f"/{iid}")
        assert page.status_code == 200
        addresses = re.findall(r'(?:href|src|action)="([^"]*)"', page.text)
        assert all(re.match(r"/(?!/)|https?://|#|$", address) for address in addresses), addresses
        assert "evil.example" not in "".join(addresses)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J5")
def test_the_list_has_a_tab_for_each_status(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    for iid, status in enumerate(("triggered", "acknowledged", "resolved", "ignored"), start=1):
        endpoint.accepted(title=f"is {status}")
        set_status(browser, endpoint, iid, status)
    expected = {
        "": ["is acknowledged", "is triggered"],
        "?status=open": ["is acknowledged", "is triggered"],
        "?status=triggered": ["is triggered"],
        "?status=acknowledged": ["is acknowledged"],
        "?status=resolved": ["is resolved"],
        "?status=ignored": ["is ignored"],
        "?status=all": ["is ignored", "is resolved", "is acknowledged", "is triggered"],
        "?status=": ["is acknowledged", "is triggered"],
    }
    for query, found in expected.items():
        assert titles(page_of(gatebell, endpoint, query)) == found, query


# tests/http/alerts/test_alert_words.py tests the search index in detail.
@pytest.mark.long
@pytest.mark.both_databases
def test_search_finds_words_by_their_beginnings(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Disk 100% full")
    endpoint.accepted(title='quo"te', service="checkout")
    browser = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}/{endpoint.project}/-/alerts"
    for search, found in (
        ("DIS 10", ["Disk 100% full"]),
        ("checkout", ["quo&#34;te"]),
        ('te quo"', ["quo&#34;te"]),
        ("disk\x00full", ["Disk 100% full"]),
        ("isk", []),
        ("%", []),
        ("' OR '1'='1", []),
        ("x" * 200, []),
    ):
        answer = browser.get(address, params={"status": "open", "search": search})
        assert titles(answer) == found, search


# tests/domain/alerts/test_sort_orders.py has more invalid cursors.
@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["before", "after"])
def test_a_forged_cursor_is_refused(gatebell: LiveGatebell, name: str) -> None:
    endpoint = quiet_endpoint(gatebell)
    for forged in ("x", "%00", f"1_{2**63}"):
        assert page_of(gatebell, endpoint, f"?{name}={forged}").status_code == 400
    assert page_of(gatebell, endpoint, f"?{name}={2**50}_{2**63 - 1}").status_code == 200


@cache
def quiet_endpoint(gatebell: LiveGatebell) -> Endpoint:
    """Return an endpoint with one alert, for tests that change nothing."""
    endpoint = connect(gatebell)
    endpoint.accepted()
    return endpoint


@pytest.mark.long
@pytest.mark.both_databases
def test_an_alert_that_does_not_exist_is_not_found(gatebell: LiveGatebell) -> None:
    endpoint = quiet_endpoint(gatebell)
    assert page_of(gatebell, endpoint, "/1").status_code == 200
    numbers = ("0", "2", "2147483647", "2147483648", "9" * 19, "9" * 60, "1e3", "%00")
    found = {number: page_of(gatebell, endpoint, f"/{number}").status_code for number in numbers}
    assert found == dict.fromkeys(numbers, 404)


def set_status(
    browser: requests.Session, endpoint: Endpoint, iid: int, status: str
) -> requests.Response:
    page = browser.get(f"{endpoint.service}/{endpoint.project}/-/alerts/{iid}")
    return submit(browser, page, form_with(page, "status"), status=status)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("I17", "J5")
def test_a_status_changes_to_any_other_and_back(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(fingerprint="x")
    browser = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    for status in ("acknowledged", "ignored", "resolved", "triggered", "resolved", "acknowledged"):
        answer = set_status(browser, endpoint, 1, status)
        assert answer.status_code == 302
        (alert,) = list_stored_alerts(gatebell, endpoint.project)
        assert alert.status == status
        assert (alert.ended_at is not None) == (status == "resolved")
    # The alert is open in each status but resolved, so a new report joins it.
    assert endpoint.accepted(fingerprint="x")["iid"] == 1


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("I16")
def test_reopening_is_refused_while_another_open_alert_is_the_same(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(fingerprint="x")
    browser = signed_in(gatebell, alice(gatebell))
    set_status(browser, endpoint, 1, "resolved")
    assert endpoint.accepted(fingerprint="x")["iid"] == 2
    answer = set_status(browser, endpoint, 1, "triggered")
    assert answer.status_code == 302
    told = browser.get(gatebell.url + answer.headers["Location"])
    assert "Another unresolved alert has the same fingerprint" in told.text
    assert [alert.status for alert in list_stored_alerts(gatebell, endpoint.project)] == [
        "resolved",
        "triggered",
    ]
    set_status(browser, endpoint, 2, "resolved")
    assert set_status(browser, endpoint, 1, "triggered").status_code == 302
    assert list_stored_alerts(gatebell, endpoint.project)[0].status == "triggered"


@pytest.mark.long
def test_an_unknown_status_changes_nothing(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    browser = signed_in(gatebell, alice(gatebell))
    for status in ("", "closed", "Resolved", "resolved\x00"):
        assert set_status(browser, endpoint, 1, status).status_code == 422, status
    url = f"{gatebell.url}/{endpoint.project}/-/alerts/1/status"
    for forged in ({}, {"csrf_token": "forged"}):
        assert browser.post(url, data={"status": "resolved", **forged}).status_code == 400
    assert list_stored_alerts(gatebell, endpoint.project)[0].status == "triggered"


@pytest.mark.spec("I17", "J5")
def test_the_page_shows_a_recovery(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a")))
    endpoint.post(webhook(resolved("a")))
    page = page_of(gatebell, endpoint, "/1")
    assert "Resolved" in page.text
    assert "2026-11-21 08:00:00 UTC" in page.text
