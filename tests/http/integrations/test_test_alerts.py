"""Test alerts and their explanations, and dry runs, which store nothing."""

import json

import pytest

from domain.access.roles import Role
from domain.alerts.parsing.fingerprint import combine_with_monitor
from tests.support.alerts.integration_pages import opened, words
from tests.support.alerts.senders import connect, item, resolved, webhook
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

ENDED = "2026-11-21T08:00:00Z"


@pytest.mark.spec("H6")
@pytest.mark.parametrize(
    ("kind", "role"), [("http", Role.MAINTAINER), ("prometheus", Role.DEVELOPER)]
)
def test_the_proposed_test_alert_is_accepted(gatebell: LiveGatebell, kind: str, role: Role) -> None:
    endpoint = connect(gatebell, kind=kind)
    browser, page = opened(gatebell, endpoint, "{id}/test", role)
    form = form_with(page, "payload")
    result = submit(browser, page, form)
    assert result.status_code == 200
    assert "Test alert received" in result.text
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.title in result.text
    assert f"/{endpoint.project}/-/alerts/1" in result.text
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert delivery.is_test
    assert delivery.sender.startswith(role.name.lower())


@pytest.mark.long
def test_an_alert_is_marked_as_a_test_until_a_sender_reports_it(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/test")
    body = '{"title": "Disk full", "fingerprint": "disk"}'
    submit(browser, page, form_with(page, "payload"), payload=body)
    alerts = f"{gatebell.url}/{endpoint.project}/-/alerts"
    for address in (alerts, f"{alerts}/1"):
        assert browser.get(address).text.count('<span class="pill ">Test</span>') == 1
    endpoint.post(body.encode())
    for address in (alerts, f"{alerts}/1"):
        assert '<span class="pill ">Test</span>' not in browser.get(address).text


@pytest.mark.spec("H6")
def test_an_invalid_test_alert_is_rejected_with_a_reason(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/test")
    form = form_with(page, "payload")
    for payload, sentence in {
        "": "Enter a JSON object.",
        "[]": "The array is empty",
        '{"a":' * 200 + "1" + "}" * 200: "nested deeper than 100 levels",
    }.items():
        answer = submit(browser, page, form, payload=payload)
        assert answer.status_code == 422, payload
        assert sentence in answer.text
    large = submit(browser, page, form, payload='{"a": "' + "x" * 1024 * 1024 + '"}')
    assert large.status_code in {413, 422}
    assert list_stored_alerts(gatebell, endpoint.project) == []


@pytest.mark.spec("H4", "H6")
def test_an_integration_that_is_off_sends_no_test_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, active=False)
    browser, page = opened(gatebell, endpoint, "{id}/test")
    answer = submit(browser, page, form_with(page, "payload"), payload="{}")
    assert answer.status_code == 422
    assert "This integration is turned off" in answer.text
    assert list_stored_alerts(gatebell, endpoint.project) == []


@pytest.mark.spec("H6")
def test_the_text_of_a_test_alert_is_escaped(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/test")
    payload = json.dumps({"title": "</textarea><script>1</script>", "severity": "<i>x</i>"})
    answer = submit(browser, page, form_with(page, "payload"), payload=payload)
    assert answer.status_code == 200
    assert "<script>1" not in answer.text
    assert "<i>x" not in answer.text


@pytest.mark.spec("H6", "I12")
def test_a_webhook_without_a_valid_item_is_explained_item_by_item(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    browser, page = opened(gatebell, endpoint, "{id}/test")
    form = form_with(page, "payload")
    payload = webhook(item("x", labels={}), "nonsense").decode()
    for button in ("send", "dry_run"):
        answer = submit(browser, page, form, payload=payload, do=button)
        assert answer.status_code == 422
        assert "Item 1 was rejected: it has no title" in answer.text
        assert "Item 2 was rejected: it is not an object" in answer.text
    answer = submit(browser, page, form, payload='{"title": "x"}', do="dry_run")
    assert answer.status_code == 422
    assert "looks like a single alert" in answer.text


@pytest.mark.both_databases
@pytest.mark.spec("H6", "I17")
def test_the_result_explains_the_effect_of_a_test_alert(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/test", Role.DEVELOPER)
    form = form_with(page, "payload")
    firing = {"title": "Disk full", "fingerprint": "d1", "severity": "LOW", "start_time": "soon"}
    said = [
        words(submit(browser, page, form, payload=json.dumps(firing | more)).text)
        for more in ({}, {"title": "Other"}, {"end_time": "2026-11-21T08:00:00Z"}, {})
    ]
    assert "Opened a new alert" in said[0]
    assert "#1 Disk full" in said[0]
    assert "reported as “LOW”" in said[0]
    assert "Fingerprint source the fingerprint field" in said[0]
    stored = list_stored_alerts(gatebell, endpoint.project)[0]
    assert combine_with_monitor(stored.fingerprint or b"", stored.monitor_id).hex() in said[0]
    assert "start_time could not be read" in said[0]
    # The alert has the title of the last report.
    assert "#1 Other" in said[1]
    assert "Added to an open alert" in said[1]
    assert "title Other" in said[1]
    assert "Resolved an open alert" in said[2]
    assert "ended 2026-11-21 08:00:00 UTC" in said[2]
    assert "Opened a new alert" in said[3]
    assert "#2 Disk full" in said[3]


@pytest.mark.both_databases
@pytest.mark.spec("H6")
def test_each_item_of_a_webhook_is_explained(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a")))
    browser, page = opened(gatebell, endpoint, "{id}/test")
    payload = webhook(resolved("a"), item("b"), item("b"), resolved("never")).decode()
    said = words(submit(browser, page, form_with(page, "payload"), payload=payload).text)
    assert "4 alerts were parsed" in said
    for number, title, did in (
        (1, "a", "Resolved an open alert"),
        (2, "b", "Opened a new alert"),
        (2, "b", "Added to an open alert"),
        (3, "never", "Stored as resolved: there was no open alert"),
    ):
        assert f"#{number} {title} Result {did}" in said


@pytest.mark.both_databases
@pytest.mark.spec("H6")
@pytest.mark.parametrize("active", [True, False])
def test_a_dry_run_shows_the_result_and_stores_nothing(
    gatebell: LiveGatebell, *, active: bool
) -> None:
    endpoint = connect(gatebell)
    endpoint.send(title="Disk full", fingerprint="d1")
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    submit(browser, page, form_with(page, "name"), active="y" if active else None)
    page = browser.get(f"{page.url.rpartition('/')[0]}/test")
    form = form_with(page, "payload")
    for payload, would in (
        ({"title": "New one"}, "Would open a new alert"),
        ({"fingerprint": "d1"}, "#1 Disk full Expected result Would be added to an open alert"),
        ({"fingerprint": "d1", "end_time": ENDED}, "Would resolve an open alert"),
        ({"fingerprint": "d2", "end_time": ENDED}, "Would be stored as resolved"),
    ):
        answer = submit(browser, page, form, payload=json.dumps(payload), do="dry_run")
        assert answer.status_code == 200
        said = words(answer.text)
        assert would in said
        assert "nothing was stored" in said
        assert ("senders are rejected" in said) is not active
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.events, alert.status) == (1, "triggered")
    assert len(list_stored_deliveries(gatebell, endpoint.project)) == 1
