"""The credentials page: it waits for the first delivery, and advises after a rejection."""

import re
from html import unescape

import pytest
import requests

from tests.support.alerts.integration_pages import opened
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")


def words(page: requests.Response) -> str:
    text = " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())
    return re.sub(r" ([.:,])", r"\1", text)


def setup_of(gatebell: LiveGatebell, endpoint: Endpoint) -> str:
    """Return the text of the part that the page polls."""
    page = opened(gatebell, endpoint, "{id}/setup")[1]
    assert page.status_code == 200, page.text
    assert "<html" not in page.text
    return words(page)


@pytest.mark.both_databases
def test_the_setup_page_waits_for_the_first_delivery(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    assert "Waiting for the first delivery." in setup_of(gatebell, endpoint)
    assert "Check again" in words(opened(gatebell, endpoint, "{id}/credentials")[1])

    endpoint.post(b"{}", Authorization="Bearer wrong", User_Agent="Alertmanager/0.27.0")
    refused = setup_of(gatebell, endpoint)
    assert re.search(r"The last delivery was rejected [0-9:]{5} \(just now\)\.", refused)
    assert "401 (Alertmanager): The authorization key is wrong. In alertmanager.yml," in refused

    endpoint.accepted(title="Here")
    accepted = setup_of(gatebell, endpoint)
    assert re.search(r"The last delivery was accepted [0-9:]{5} \(just now\)\.", accepted)
    page = words(opened(gatebell, endpoint, "{id}/credentials")[1])
    assert "Accepted · 200" in page
    assert "Rejected · 401" in page


ADVICE: tuple[tuple[str, dict[str, str], bytes, str], ...] = (
    ("curl/8.5.0", {"Authorization": ""}, b"{}", "401 (curl): The authorization key is"),
    ("curl/8.5.0", {"Content-Type": "text/plain"}, b"{}", "Add --header 'Content-Type: app"),
    ("Grafana", {"Authorization": "Bearer x"}, b"{}", "In Grafana, edit the contact point"),
    ("x", {"Authorization": "{key}"}, b"{}", "The Authorization header has no key"),
    ("x", {}, b"{", "400: "),
    ("x", {}, b'["x"]', "422: None of the items is an alert."),
    ("python-requests/2.32", {"Content-Type": "a/b"}, b"{}", "Pass the body as json="),
    # The sender is recognized by the body.
    ("", {"Content-Type": "a/b"}, b'{"heartbeat": 1, "monitor": 1, "msg": 1}', "Uptime Kuma"),
)


@pytest.mark.long
def test_the_setup_page_advises_after_a_rejection(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for agent, headers, body, advice in ADVICE:
        given = {name: text.replace("{key}", endpoint.key) for name, text in headers.items()}
        sent = {"Authorization": f"Bearer {endpoint.key}", "Content-Type": "application/json"}
        answer = requests.post(
            endpoint.url, data=body, headers={**sent, "User-Agent": agent, **given}, timeout=20
        )
        assert answer.status_code in {400, 401, 415, 422}
        assert advice in setup_of(gatebell, endpoint)


def test_a_test_alert_does_not_count_as_the_first_delivery(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/test")
    sent = submit(browser, page, form_with(page, "payload"), payload='{"title": "Only a test"}')
    assert sent.status_code == 200, sent.text
    assert "Waiting for the first delivery." in setup_of(gatebell, endpoint)
