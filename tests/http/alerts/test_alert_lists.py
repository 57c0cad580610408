"""Filters, sort orders, counts, bulk changes and the chart of the alert list."""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from html import unescape
from urllib.parse import quote

import pytest
import requests
from sqlalchemy import insert, select, update

from domain.projects.access import get_project
from domain.projects.views import Viewer
from models import Alert
from tests.support.accounts.people import alice, database_of, now, signed_in
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("postgres")

ROW = re.compile(r'/-/alerts/\d+"><bdi>([^<]*)</bdi>')
BADGE = re.compile(r'<li><a href="[^"]*"[^>]*>(\w+) <span class="badge">([^<]*)</span>')


def list_of(gatebell: LiveGatebell, endpoint: Endpoint, query: str = "") -> requests.Response:
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts{query}")
    assert page.status_code == 200, page.text
    return page


def part_of(gatebell: LiveGatebell, endpoint: Endpoint, query: str) -> str:
    """Return the list without the rest of the page, which is slower to render."""
    return list_of(gatebell, endpoint, f"{query}&_part=list").text


def titles(gatebell: LiveGatebell, endpoint: Endpoint, query: str) -> list[str]:
    return ROW.findall(part_of(gatebell, endpoint, query))


def all_titles(gatebell: LiveGatebell, endpoint: Endpoint, query: str) -> Iterator[list[str]]:
    """Yield the titles of each page, from the first to the last and back."""
    browser = signed_in(gatebell, alice(gatebell))
    page = part_of(gatebell, endpoint, query)
    for relation in ("next", "prev"):
        yield ROW.findall(page)
        while found := re.search(rf'href="([^"]*)" rel="{relation}"', page):
            answer = browser.get(f"{gatebell.url}{unescape(found[1])}&_part=list")
            assert answer.status_code == 200
            page = answer.text
            yield ROW.findall(page)


@cache
def varied(gatebell: LiveGatebell) -> Endpoint:
    """Return an endpoint with 45 alerts that differ in every sort key; the last is the newest."""
    endpoint = connect(gatebell)
    words = ("critical", "high", "medium", "low", "info", "unknown")
    for number in range(45):
        # Two alerts at a time start at the same moment, and severities alternate.
        moment = f"2026-11-{1 + number // 2:02}T00:00:00Z"
        endpoint.accepted(title=f"a{number}", severity=words[number % 6], start_time=moment)
    stored = list_stored_alerts(gatebell, endpoint.project)
    with database_of(gatebell) as session:
        for number, alert in enumerate(stored):
            values = {
                "events": number * 7 % 10,
                "last_event_at": now() + timedelta(minutes=number * 11 % 45),
            }
            session.execute(update(Alert).where(Alert.id == alert.id).values(**values))
    return endpoint


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("sort", ["started", "oldest", "severity", "last_event", "events"])
def test_each_sort_order_has_pages_in_both_directions(gatebell: LiveGatebell, sort: str) -> None:
    endpoint = varied(gatebell)
    numbers = range(45)
    expected = {
        "oldest": list(numbers),
        "severity": sorted(numbers, key=lambda n: (n % 6, -n)),
        "last_event": sorted(numbers, key=lambda n: -(n * 11 % 45)),
        "events": sorted(numbers, key=lambda n: (-(n * 7 % 10), -n)),
    }.get(sort, sorted(numbers, reverse=True))
    there_and_back = list(all_titles(gatebell, endpoint, f"?sort={sort}"))
    first, second, third, back_third, back_second, back_first = there_and_back
    assert [*first, *second, *third] == [f"a{number}" for number in expected]
    assert [back_first, back_second, back_third] == [first, second, third]


def test_a_cursor_of_another_sort_order_is_rejected(gatebell: LiveGatebell) -> None:
    endpoint = varied(gatebell)
    page = list_of(gatebell, endpoint, "?sort=severity")
    found = re.search(r"before=([^&\"]+)", page.text)
    assert found is not None
    browser = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}/{endpoint.project}/-/alerts"
    assert browser.get(f"{address}?before={found[1]}").status_code == 400


@cache
def filtered(gatebell: LiveGatebell) -> Endpoint:
    """Return an endpoint with alerts for each filter, one of them from another integration."""
    endpoint = connect(gatebell)
    endpoint.accepted(title="a", severity="high", service="mail", platform_environment_name="prod")
    endpoint.accepted(title="b", severity="low", service="mail", platform_environment_name="test")
    endpoint.accepted(title="c", severity="low", service="it's <b>")
    metrics = connect(gatebell, endpoint.project, kind="prometheus", name="Metrics")
    labels = {"alertname": "d", "severity": "critical"}
    metrics.post(webhook(item("d", labels=labels, startsAt="2030-01-01T00:00:00Z")))
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/2")
    submit(browser, page, form_to(page, "/assignee"), assignee=alice(gatebell).username)
    return endpoint


FOUND = {
    "?severity=low": "cb",
    "?severity=high&service=mail": "a",
    "?service=mail": "ba",
    "?service=" + quote("it's <b>"): "c",
    "?environment=prod": "a",
    "?environment=PROD": "",
    "?environment=' OR 1=1 --": "",
    "?assignee=-": "dca",
    "?assignee=nobody-has-this-name": "",
    "?service=mail&search=b": "b",
    "?severity=&integration=&sort=": "dcba",
    "?integration=9223372036854775807": "",
    "?environment=%00": "",
}


@pytest.mark.long
@pytest.mark.both_databases
def test_filters_show_only_matching_alerts(gatebell: LiveGatebell) -> None:
    endpoint = filtered(gatebell)
    for query, found in FOUND.items():
        page = part_of(gatebell, endpoint, query)
        assert "".join(ROW.findall(page)) == found, query
        counts = dict(BADGE.findall(page))
        assert counts["Open"] == counts["All"] == str(len(found)), query


@pytest.mark.long
@pytest.mark.both_databases
def test_alerts_are_filtered_by_assignee_and_integration(gatebell: LiveGatebell) -> None:
    endpoint = filtered(gatebell)
    me = alice(gatebell).username
    assert titles(gatebell, endpoint, f"?assignee={me.upper()}") == ["b"]
    assert titles(gatebell, endpoint, f"?integration={endpoint.id}") == ["c", "b", "a"]
    page = list_of(gatebell, endpoint, f"?assignee={me}&service=mail")
    assert f'<option value="{me}" selected>' in page.text
    assert '<option value="mail" selected>' in page.text
    assert '<option value="it&#39;s &lt;b&gt;">' in page.text


@pytest.mark.long
@pytest.mark.both_databases
def test_counting_stops_at_a_thousand(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="one")
    with database_of(gatebell) as session:
        viewer = Viewer(user_id=None, is_admin=True)
        project = get_project(endpoint.project, viewer, session=session)
        row = (
            session.execute(select(Alert.__table__).where(Alert.project_id == project.id))
            .one()
            ._asdict()
        )
        many = [
            {
                **row,
                "id": row["id"] + 10_000_000 + n,
                "iid": n,
                "fingerprint": None,
                "title": "old one" if n < 3_000 else "one",
            }
            for n in range(2, 5_003)
        ]
        session.execute(insert(Alert), many)
    page = list_of(gatebell, endpoint).text
    assert dict(BADGE.findall(page))["Open"] == "1,000+"
    assert dict(BADGE.findall(page))["Resolved"] == "0"
    project_page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{endpoint.project}")
    assert "1,000+" in project_page.text
    # A search with many matches is not counted.
    found = list_of(gatebell, endpoint, "?search=on&sort=events")
    assert ROW.findall(found.text) == ["one"] * 20
    assert BADGE.findall(found.text) == []
    assert "Only the newest 2,000 alerts of each status are sorted." in found.text
    # The same applies to a search that matches only older alerts.
    found = list_of(gatebell, endpoint, "?search=old&sort=oldest")
    assert ROW.findall(found.text) == ["old one"] * 20
    assert BADGE.findall(found.text) == []


@pytest.mark.long
def test_the_list_can_be_requested_without_its_page(gatebell: LiveGatebell) -> None:
    part = list_of(gatebell, filtered(gatebell), "?service=mail&_part=list").text
    assert ROW.findall(part) == ["b", "a"]
    assert "<html" not in part
    assert "_part" not in part


def change_several(
    gatebell: LiveGatebell, endpoint: Endpoint, browser: requests.Session, **given: str | list[str]
) -> requests.Response:
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts?status=all&search=disk")
    return submit(browser, page, form_to(page, "/alerts/status"), **given)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_bulk_change_names_a_conflicting_alert_and_changes_the_others(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="disk <b>one</b>", fingerprint="x")
    endpoint.accepted(title="disk two", fingerprint="y")
    browser = signed_in(gatebell, alice(gatebell))
    change_several(gatebell, endpoint, browser, iid=["1", "2"], status="resolved")
    assert endpoint.accepted(title="disk again", fingerprint="x")["iid"] == 3
    answer = change_several(gatebell, endpoint, browser, iid=["1", "2"], status="triggered")
    told = browser.get(gatebell.url + answer.headers["Location"]).text
    assert "1 alert is now triggered." in told
    assert "Not changed: #1 “disk &lt;b&gt;one&lt;/b&gt;”" in told
    found = [alert.status for alert in list_stored_alerts(gatebell, endpoint.project)]
    assert found == ["resolved", "triggered", "triggered"]


@pytest.mark.long
@pytest.mark.both_databases
def test_invalid_alert_numbers_change_nothing(gatebell: LiveGatebell) -> None:
    endpoint = filtered(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    for iid in ([], ["x"], ["-1"], ["9" * 30], ["%00"], ["1; DROP TABLE alerts"]):
        answer = change_several(gatebell, endpoint, browser, iid=iid, status="ignored")
        told = browser.get(gatebell.url + answer.headers["Location"]).text
        assert "Select alerts first." in told, iid
    for given in (
        {"iid": [str(number) for number in range(1, 202)], "status": "ignored"},
        {"iid": "1", "status": "x"},
    ):
        assert change_several(gatebell, endpoint, browser, **given).status_code == 422
    # The redirect stays in this project and on an existing list.
    given = {"iid": "1", "status": "ignored", "back": "sort=x"}
    assert change_several(gatebell, endpoint, browser, **given).status_code == 400
    forged = "project_path=other/place&_scheme=javascript&_external=1&status=all&a=b"
    answer = change_several(gatebell, endpoint, browser, iid=[], status="ignored", back=forged)
    assert answer.headers["Location"] == f"/{endpoint.project}/-/alerts?status=all"
    assert {alert.status for alert in list_stored_alerts(gatebell, endpoint.project)} == {
        "triggered"
    }


@pytest.mark.both_databases
def test_the_chart_counts_the_alerts_of_the_last_days(gatebell: LiveGatebell) -> None:
    page = list_of(gatebell, varied(gatebell)).text
    table = page[page.index("by day and severity") : page.index("list-search")]
    days = [re.findall(r">([\d,]+)</td>", row) for row in re.findall(r"<tr><th.*?</tr>", table)]
    # A new day may have begun since the first alert was created.
    counts = [list(map(int, day)) for day in days[:3] if day]
    assert [sum(column) for column in zip(*counts, strict=True)] == [8, 8, 8, 7, 7, 7, 45]
    assert f"45 alerts · busiest day {max(day[-1] for day in counts)}" in page
    assert "style=" not in table
