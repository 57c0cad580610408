"""The latest report of an open alert updates the fields that lists and pages show."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier
from typing import Any
from urllib.parse import quote

import pytest
import requests
from sqlalchemy import select, update

from models import Alert, AlertNote, Integration, Project
from tests.support.accounts.people import alice, database_of, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import Endpoint, connect, item, resolved, webhook
from tests.support.database.stored import change, list_stored_alerts
from tests.support.service.live import LiveGatebell

LOW: dict[str, Any] = {
    "title": "CPU 80%",
    "description": "Rising slowly",
    "severity": "low",
    "service": "web",
    "monitoring_tool": "Monit",
    "hosts": ["web-1"],
    "fingerprint": "cpu",
}
DEAD: dict[str, Any] = {
    "title": "CPU 100% DEAD",
    "description": "Nothing answers",
    "severity": "critical",
    "service": "everything",
    "monitoring_tool": "Nagios",
    "hosts": ["web-1", "web-2"],
    "fingerprint": "cpu",
}
COLUMNS = ("title", "description", "service", "monitoring_tool")


def in_api(gatebell: LiveGatebell, endpoint: Endpoint, path: str = "") -> Any:
    token = make_token(gatebell, alice(gatebell), scopes="read_alerts").clear
    reference = quote(endpoint.project, safe="")
    address = f"{gatebell.url}/api/v4/projects/{reference}/alert_management_alerts{path}"
    return requests.get(address, headers={"PRIVATE-TOKEN": token}, timeout=20).json()


def page_of(gatebell: LiveGatebell, endpoint: Endpoint, path: str = "") -> str:
    browser = signed_in(gatebell, alice(gatebell))
    answer = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts{path}", timeout=20)
    assert answer.status_code == 200
    return answer.text


def changes_of(
    gatebell: LiveGatebell, endpoint: Endpoint, *iids: int
) -> list[dict[str, list[Any]]]:
    """Return the changes that reports made to alerts of a project, oldest first."""
    statement = (
        select(AlertNote.changes)
        .join(Alert, Alert.id == AlertNote.alert_id)
        .join(Project, Project.id == Alert.project_id)
        .where(Project.path == endpoint.project, AlertNote.changes.is_not(None))
        .order_by(AlertNote.id)
    )
    if iids:
        statement = statement.where(Alert.iid.in_(iids))
    with database_of(gatebell) as session:
        return [changes for changes in session.scalars(statement) if changes is not None]


@pytest.mark.spec("I16")
@pytest.mark.parametrize("company", [(), ({"title": "Third", "severity": "info"},)])
def test_an_alert_that_gets_worse_is_seen_everywhere(
    gatebell: LiveGatebell, company: tuple[dict[str, str], ...]
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(**LOW)
    endpoint.accepted(title="Other", severity="high")
    # A single item and an item among others are stored by different code.
    sent = endpoint.post_json([DEAD, *company] if company else DEAD)
    assert sent[0] == {"iid": 1, "title": "CPU 100% DEAD"}
    alert = list_stored_alerts(gatebell, endpoint.project)[0]
    assert {name: getattr(alert, name) for name in COLUMNS} == {n: DEAD[n] for n in COLUMNS}
    assert (alert.severity, alert.hosts, alert.events) == (0, "web-1\nweb-2", 2)
    listed = in_api(gatebell, endpoint, "?sort=severity")
    assert [row["title"] for row in listed][:2] == ["CPU 100% DEAD", "Other"]
    assert (listed[0]["severity"], listed[0]["raised_from"]) == ("critical", "low")
    assert listed[1]["raised_from"] is None
    assert in_api(gatebell, endpoint, "?severity=low") == []
    listed_page, shown = page_of(gatebell, endpoint), page_of(gatebell, endpoint, "/1")
    for page in (listed_page, shown):
        assert "CPU 100% DEAD" in page
        assert page.count("Raised from low") == 1
    assert "CPU 80%" not in listed_page
    for old, new in zip(
        ("low", "CPU 80%", "Rising slowly", "Monit"),
        ("critical", "CPU 100% DEAD", "Nothing answers", "Nagios"),
        strict=True,
    ):
        assert f"<del><bdi>{old}</bdi></del>" in shown
        assert f"<ins><bdi>{new}</bdi></ins>" in shown
    # All fields, the payload and the reason are from the last report, too.
    assert "reported as “critical”" in shown
    assert in_api(gatebell, endpoint, "/1")["details"]["title"] == "CPU 100% DEAD"


@pytest.mark.parametrize("company", [(), ({"title": "Third", "severity": "info"},)])
def test_search_finds_current_values(
    gatebell: LiveGatebell, company: tuple[dict[str, str], ...]
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(**LOW)
    endpoint.post_json([DEAD, *company] if company else DEAD)
    for word in ("DEAD", "answers", "everything", "Nagios", "web-2"):
        assert [row["iid"] for row in in_api(gatebell, endpoint, f"?search={word}")] == [1], word
    for word in ("slowly", "Monit"):
        assert in_api(gatebell, endpoint, f"?search={word}") == [], word


def test_fields_missing_from_a_report_are_kept(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(**LOW)
    assert endpoint.accepted(fingerprint="cpu") == {"iid": 1, "title": "CPU 80%"}
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.severity, alert.hosts, alert.events) == (3, "web-1", 2)
    assert changes_of(gatebell, endpoint) == []
    endpoint.accepted(fingerprint="cpu", description="Now 85%")
    assert changes_of(gatebell, endpoint) == [{"description": ["Rising slowly", "Now 85%"]}]


def test_the_mark_of_a_raised_severity_follows_the_severity(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    marks = []
    for word in ("medium", "low", "high", "critical", "medium", "low", "medium"):
        endpoint.accepted(fingerprint="x", severity=word)
        marks.append(in_api(gatebell, endpoint, "/1")["raised_from"])
    assert marks == [None, None, "low", "low", "low", None, "low"]
    ranks = [each["severity"] for each in changes_of(gatebell, endpoint)]
    assert ranks == [[2, 3], [3, 1], [1, 0], [0, 2], [2, 3], [3, 2]]


def test_recoveries_and_late_reports_do_not_change_fields(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(**LOW, start_time="2026-11-21T07:00:00Z")
    recovered = {"fingerprint": "cpu", "title": "OK", "end_time": "2026-11-21T08:00:00Z"}
    assert endpoint.accepted(**recovered) == {"iid": 1, "title": "CPU 80%"}
    late = endpoint.accepted(**DEAD, start_time="2026-11-21T07:00:00Z")
    assert late == {"iid": 1, "title": "CPU 80%"}
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.status, alert.severity, alert.events) == ("resolved", 3, 2)
    assert changes_of(gatebell, endpoint) == []


def test_the_query_is_updated(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    for expression in ("up", "up", "up == 0"):
        link = f"http://prom.example/graph?g0.expr={quote(expression)}"
        endpoint.post(webhook(item("a", generatorURL=link)))
    assert in_api(gatebell, endpoint, "/1")["query"] == "up == 0"
    assert changes_of(gatebell, endpoint) == [{"query": ["up", "up == 0"]}]


@pytest.mark.parametrize("kind", ["http", "prometheus"])
def test_concurrent_reports_record_a_complete_chain_of_changes(
    gatebell: LiveGatebell, kind: str
) -> None:
    endpoint = connect(gatebell, kind=kind)
    crowd, rounds = 8, 4
    start = Barrier(crowd)

    def send(number: int) -> list[int]:
        statuses = []
        for turn in range(rounds):
            mark = f"said by {number} in turn {turn}"
            start.wait(60)
            # Half of the senders use webhooks with two items, in either order.
            items = [item(name, annotations={"description": mark}) for name in ("a", "b")]
            body = webhook(*(items[:1] if number % 2 else items[:: 1 if number % 4 else -1]))
            if kind == "http":
                sent = endpoint.send(fingerprint="a", title="T", description=mark)
            else:
                sent = endpoint.post(body)
            statuses.append(sent.status_code)
        return statuses

    with ThreadPoolExecutor(crowd) as senders:
        statuses = [status for each in senders.map(send, range(crowd)) for status in each]
    assert statuses == [200] * crowd * rounds
    (alert, *_) = sorted(
        list_stored_alerts(gatebell, endpoint.project), key=lambda each: -each.events
    )
    assert alert.events == crowd * rounds
    told = [changes["description"] for changes in changes_of(gatebell, endpoint, alert.iid)]
    assert len(told) == crowd * rounds - 1
    assert all(before[1] == after[0] for before, after in pairwise(told))
    assert told[-1][1] == alert.description


def test_webhooks_update_alerts_that_they_count_and_resolve(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a"), item("b")))
    worse = {"alertname": "a", "severity": "info"}
    answer = endpoint.post(
        webhook(
            item("a", labels=worse, annotations={"title": "Later"}),
            item("b", annotations={"title": "Then over"}),
            resolved("b"),
        )
    )
    assert answer.json() == [{"iid": 1, "title": "Later"}, {"iid": 2, "title": "Then over"}]
    changes = sorted(changes_of(gatebell, endpoint), key=repr)
    assert changes == [{"severity": [0, 4], "title": ["a", "Later"]}, {"title": ["b", "Then over"]}]


def test_the_severity_reason_comes_from_the_mapping_that_was_used(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    read = {"severity": [["prio"]], "runbook": [["book"]]}
    change(gatebell, update(Integration).where(Integration.id == endpoint.id).values(mapping=read))
    endpoint.accepted(title="a", prio="low", book="https://wiki.example/a")
    change(gatebell, update(Integration).where(Integration.id == endpoint.id).values(mapping=None))
    page = page_of(gatebell, endpoint, "/1")
    assert "Low: <bdi>reported as “low”" in page
    assert "No severity: treated as critical" not in page
    assert "https://wiki.example/a" in page
