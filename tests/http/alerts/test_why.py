"""The line of an alert's page that explains the alert, and excerpts of large bodies."""

import re

import pytest

from tests.support.accounts.people import alice, signed_in
from tests.support.alerts.integration_pages import words
from tests.support.alerts.senders import connect, item, webhook
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("postgres")


def sentences_of(page: str) -> str:
    """Return the words of a page, without the spaces around markup in a sentence."""
    return re.sub(r" ([.:”])", r"\1", words(page)).replace("“ ", "“")


@pytest.mark.long
@pytest.mark.both_databases
def test_the_explanation_shows_severity_and_earlier_notes(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    first = {"title": "Disk full", "severity": "high", "fingerprint": "disk"}
    endpoint.accepted(**first)
    url = f"{gatebell.url}/{endpoint.project}/-/alerts"
    page = browser.get(f"{url}/1")
    seen = sentences_of(page.text)
    assert "Why this alert? High: reported as “high”." in seen
    assert "Received by the integration Hook" in seen
    assert "read by the default fields." in seen
    assert "Not seen before." in seen
    submit(browser, page, form_to(page, "/notes"), text="Rotated the\nlogs <b>by hand</b>")
    endpoint.accepted(**first, end_time="2026-11-21T07:52:39Z")
    for _ in range(2):
        endpoint.accepted(**first)
    seen = sentences_of(browser.get(f"{url}/2").text)
    assert "2 events in one alert: reports with the same fingerprint." in seen
    assert "Seen once before, most recently as #1" in seen
    assert "noted in #1: “Rotated the logs <b>by hand</b>”" in seen


def test_the_explanation_names_the_user_who_resolved_the_last_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    endpoint.accepted(title="Disk full", fingerprint="disk")
    url = f"{gatebell.url}/{endpoint.project}/-/alerts"
    page = browser.get(f"{url}/1")
    submit(browser, page, form_to(page, "/status"), status="resolved")
    endpoint.accepted(title="Disk full", fingerprint="disk")
    assert "resolved #1." in sentences_of(browser.get(f"{url}/2").text)


@pytest.mark.long
def test_the_page_of_an_alert_shows_only_its_item_of_a_large_body(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    body = webhook(*(item(f"Alert{number}", extra="x" * 400) for number in range(1_000)))
    assert len(endpoint.post(body).json()) == 1_000
    browser = signed_in(gatebell, alice(gatebell))
    url = f"{gatebell.url}/{endpoint.project}/-/alerts/500"
    page = browser.get(url)
    assert len(page.content) < 60_000
    assert "Alert499" in page.text
    assert "Alert498" not in page.text
    assert "the part of the body for this alert" in page.text
    whole = browser.get(f"{url}/payload")
    assert whole.content == body
    assert whole.headers["Content-Disposition"] == "attachment"
