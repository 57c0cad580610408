"""The delivery log of an integration: its entries, its filters, and processing a body again."""

import re

import pytest
from sqlalchemy import update

from models import Integration
from tests.support.alerts.integration_pages import address, opened, words
from tests.support.alerts.senders import Endpoint, captured, connect, item, webhook
from tests.support.database.stored import change, list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")


def test_the_delivery_log_shows_the_result_of_each_delivery(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(captured("05_truncated_max_alerts_2_of_5.json"))
    endpoint.post(b'{"title": "<script>1</script>"}')
    endpoint.post(b"{}", Authorization="Bearer wrong")
    browser, page = opened(gatebell, endpoint, "{id}/deliveries")
    assert page.status_code == 200
    for text in ("Accepted", "2 opened", "3 alerts left out", "422", "401", "key is wrong"):
        assert text in page.text
    truncated, refused, stranger = list_stored_deliveries(gatebell, endpoint.project)
    shown = []
    for delivery in (truncated, refused, stranger):
        url = address(gatebell, endpoint.project, f"{{id}}/deliveries/{delivery.id}", endpoint.id)
        answer = browser.get(url)
        assert answer.status_code == 200
        shown.append(answer.text)
    assert "truncatedAlerts" in shown[0]
    assert "&lt;script&gt;1" in shown[1]
    assert "<script>1" not in shown[1]
    assert "body was not stored" in shown[2]


@pytest.mark.both_databases
def test_the_delivery_log_is_paginated(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for number in range(23):
        endpoint.send(title=str(number))
    browser, first = opened(gatebell, endpoint, "{id}/deliveries")
    assert first.text.count("Accepted ·") == 20
    older = re.search(r'href="([^"]*)" rel="next"', first.text)
    assert older is not None
    second = browser.get(gatebell.url + older[1].replace("&amp;", "&"))
    assert second.text.count("Accepted ·") == 3


def shown(gatebell: LiveGatebell, endpoint: Endpoint, query: str) -> list[str]:
    """Return the outcomes of the deliveries that the log lists with these filters."""
    _, page = opened(gatebell, endpoint, f"{{id}}/deliveries?{query}")
    assert page.status_code == 200, page.text
    return re.findall(r"(?:Accepted|Rejected) · (\d+)", page.text)


@pytest.mark.long
@pytest.mark.both_databases
def test_the_delivery_log_is_filtered(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.send(title="good")
    endpoint.send(start_time="whenever")
    endpoint.post(b"{")
    endpoint.post(b"{}", Content_Type="text/plain")
    browser, page = opened(gatebell, endpoint, "{id}/test")
    submit(browser, page, form_with(page, "payload"))
    assert shown(gatebell, endpoint, "") == ["200", "415", "400", "200", "200"]
    assert shown(gatebell, endpoint, "show=accepted") == ["200"] * 3
    assert shown(gatebell, endpoint, "show=refused") == ["415", "400"]
    assert shown(gatebell, endpoint, "show=remarks") == ["200"]
    assert shown(gatebell, endpoint, "show=tests") == ["200"]
    assert shown(gatebell, endpoint, "status=415") == ["415"]
    assert shown(gatebell, endpoint, "status=415&show=accepted") == []
    _, nothing = opened(gatebell, endpoint, "{id}/deliveries?status=503")
    assert "No matching deliveries" in nothing.text


def test_invalid_filters_and_cursors_are_rejected(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/deliveries")
    asked = [
        *(f"before={cursor}" for cursor in ("-1", "1e3", "9" * 30, "٣", "1 OR 1=1", "%00")),
        *("show=some", "status=x", "status=٤٠٤", "status=-1", "status=1e2"),
    ]
    answers = {query: browser.get(f"{page.url}?{query}") for query in asked}
    assert {query: each.status_code for query, each in answers.items()} == dict.fromkeys(asked, 400)
    assert not any("Traceback" in each.text for each in answers.values())


@pytest.mark.both_databases
def test_the_delivery_log_shows_the_duration_of_each_delivery(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    for body in (webhook(item("a")), webhook(item("a"), item("b")), b"{"):
        endpoint.post(body)
    log = list_stored_deliveries(gatebell, endpoint.project)
    assert all(delivery.duration and 0 < delivery.duration < 60_000_000 for delivery in log)
    _, page = opened(gatebell, endpoint, "{id}/deliveries")
    assert len(re.findall(r"\d\.\d ms", page.text)) == 3


@pytest.mark.spec("I19")
def test_the_delivery_log_contains_bodies_over_the_limit(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    too_large = b"x" * (1024 * 1024 + 5)
    assert endpoint.post(too_large, Authorization="").status_code == 413
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert (delivery.status_code, delivery.size, delivery.body) == (413, len(too_large), None)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("kind", "body", "told", "sentence"),
    [
        (
            *("http", "grafana.json", "type “Prometheus Alertmanager”"),
            "looks like a webhook from Prometheus Alertmanager or Grafana",
        ),
        (
            *("prometheus", "apprise.json", "type “HTTP Endpoint”"),
            "looks like a single alert",
        ),
    ],
)
def test_the_delivery_log_explains_bodies_of_another_format(
    gatebell: LiveGatebell, kind: str, body: str, told: str, sentence: str
) -> None:
    endpoint = connect(gatebell, kind=kind)
    assert "the format of another integration type" not in log_of(gatebell, endpoint)
    assert endpoint.post(captured(body)).status_code == (200 if kind == "http" else 422)
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert sentence in opened(gatebell, endpoint, f"{{id}}/deliveries/{delivery.id}")[1].text
    label = "Deliveries have the format of another integration type"
    assert f"{label} : 1, most recently " in log_of(gatebell, endpoint)
    endpoint.post(captured(body))
    seen = log_of(gatebell, endpoint)
    assert seen.count(f"{label} : 2, most recently ") == 1
    assert told in seen


@pytest.mark.both_databases
def test_the_delivery_log_counts_alerts_that_senders_left_out(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a")))
    assert "Senders left out" not in log_of(gatebell, endpoint)
    for _ in range(2):
        endpoint.post(captured("05_truncated_max_alerts_2_of_5.json"))
    assert log_of(gatebell, endpoint).count("Senders left out alerts : 6, most recently ") == 1


def log_of(gatebell: LiveGatebell, endpoint: Endpoint) -> str:
    """Return the text of the log's page as a maintainer sees it."""
    return words(opened(gatebell, endpoint, "{id}/deliveries")[1].text).replace(" ,", ",")


def test_the_delivery_log_explains_why_each_item_was_rejected(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    body = webhook(item("x", labels={}), "nonsense")
    assert endpoint.post(body).status_code == 422
    log = opened(gatebell, endpoint, "{id}/deliveries?show=remarks")[1]
    assert "(2 warnings)" in log.text
    (first,) = list_stored_deliveries(gatebell, endpoint.project)
    browser, page = opened(gatebell, endpoint, f"{{id}}/deliveries/{first.id}")
    assert "Item 1 was rejected: it has no title" in page.text
    assert "Item 2 was rejected: it is not an object" in page.text
    answer = submit(browser, page, form_to(page, "/send_again"))
    page = browser.get(gatebell.url + answer.headers["Location"])
    assert "processed again and rejected" in page.text
    _, again = list_stored_deliveries(gatebell, endpoint.project)
    assert (again.status_code, again.parse_warnings) == (422, first.parse_warnings)


def test_the_delivery_log_counts_warnings_beyond_its_limit(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    strange = [item(f"t{number}", startsAt="soon") for number in range(120)]
    assert endpoint.post(webhook(*strange, *["nonsense"] * 30)).status_code == 200
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert len(delivery.parse_warnings) == 100
    # Warnings about rejected items come before other warnings.
    assert [" was rejected: " in warning for warning in delivery.parse_warnings[:31]] == [
        True
    ] * 30 + [False]
    assert delivery.parse_warnings[-1] == "And 51 more warnings, which are not stored."


@pytest.mark.both_databases
def test_a_body_is_processed_again_with_the_current_mapping(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.send(event="Disk full", id=7)
    mapping = {"title": [["event"]], "fingerprint": [["id"]]}
    mine = update(Integration).where(Integration.id == endpoint.id)
    change(gatebell, mine.values(mapping=mapping))
    (first,) = list_stored_deliveries(gatebell, endpoint.project)
    browser, page = opened(gatebell, endpoint, f"{{id}}/deliveries/{first.id}")
    answers = [submit(browser, page, form_to(page, "/send_again")) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302]
    second = browser.get(gatebell.url + answers[1].headers["Location"])
    assert "1 added to open alerts" in second.text
    assert f"Sent again from delivery {first.id}." in second.text
    assert [
        (alert.title, alert.events) for alert in list_stored_alerts(gatebell, endpoint.project)
    ] == [
        ("New: Alert", 1),
        ("Disk full", 2),
    ]
    log = list_stored_deliveries(gatebell, endpoint.project)
    assert {delivery.body for delivery in log} == {first.body}
    assert log[-1].sender.startswith("maintainer")


def test_a_delivery_without_a_stored_body_cannot_be_sent_again(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post(b"{}", Authorization="Bearer wrong")
    endpoint.send()
    stranger, good = list_stored_deliveries(gatebell, endpoint.project)
    browser, page = opened(gatebell, endpoint, f"{{id}}/deliveries/{stranger.id}")
    assert "Send again" not in page.text
    page = browser.get(page.url.replace(f"/deliveries/{stranger.id}", f"/deliveries/{good.id}"))
    form = form_to(page, "/send_again")
    form.action = form.action.replace(f"/deliveries/{good.id}/", f"/deliveries/{stranger.id}/")
    assert submit(browser, page, form).status_code == 404
    change(gatebell, update(Integration).where(Integration.id == endpoint.id).values(active=False))
    assert submit(browser, page, form_to(page, "/send_again")).status_code == 403
    assert len(list_stored_deliveries(gatebell, endpoint.project)) == 2
