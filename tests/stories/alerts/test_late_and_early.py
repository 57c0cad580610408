"""Implausible times: ends before starts, and copies that arrive after the recovery."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from domain.alerts.parsing.times import END_BEFORE_START
from domain.alerts.storing.lifecycle import ARRIVED_LATE_WARNING
from models import Alert
from tests.support.accounts.people import alice, database_of, signed_in
from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import Endpoint, connect, item, resolved, webhook
from tests.support.database.stored import (
    get_newest_delivery,
    list_stored_alerts,
    resolve_for_silence,
)
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings
from tests.support.wire.html_forms import form_to, submit

NINE = "2026-11-21T09:00:00Z"


def page_of(gatebell: LiveGatebell, endpoint: Endpoint, iid: int = 1) -> str:
    browser = signed_in(gatebell, alice(gatebell))
    return browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/{iid}", timeout=20).text


@pytest.mark.spec("I5", "I17")
@pytest.mark.parametrize(
    "bodies",
    [
        [{"start_time": NINE}, {"end_time": "2026-11-21T08:56:53Z"}],
        [{"start_time": NINE, "end_time": "2026-11-21T08:56:53Z"}],
        [{"start_time": NINE}, {"start_time": NINE, "end_time": "2026-11-21T08:56:53Z"}],
    ],
)
def test_an_end_before_the_start_counts_as_the_start(
    gatebell: LiveGatebell, bodies: list[dict[str, Any]]
) -> None:
    endpoint = connect(gatebell)
    for body in bodies:
        endpoint.accepted(fingerprint="x", **body)
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.status == "resolved"
    assert alert.ended_at == alert.started_at == datetime(2026, 11, 21, 9, tzinfo=UTC)
    assert get_newest_delivery(gatebell, endpoint.project).parse_warnings == [END_BEFORE_START]
    assert (
        "after" not in page_of(gatebell, endpoint).partition("state-line")[2].partition("</p>")[0]
    )


def test_a_recovery_with_a_slow_clock_never_ends_an_alert_before_its_start(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(fingerprint="x")
    behind = datetime.now(UTC) - timedelta(seconds=187)
    endpoint.accepted(fingerprint="x", end_time=behind.isoformat())
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.ended_at == alert.started_at
    assert not re.search(r"(?<!\w)-18", page_of(gatebell, endpoint))


def test_an_alert_reported_after_its_end_keeps_its_end(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(fingerprint="x", end_time=NINE)
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.ended_at == alert.started_at == datetime(2026, 11, 21, 9, tzinfo=UTC)
    assert get_newest_delivery(gatebell, endpoint.project).parse_warnings == []


def test_an_alert_with_a_future_start_cannot_end_before_its_start(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(fingerprint="x", start_time="2999-01-01T00:00:00Z")
    address = f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(address, timeout=20)
    assert submit(browser, page, form_to(page, "/status"), status="resolved").ok
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.ended_at == alert.started_at == datetime(2999, 1, 1, tzinfo=UTC)


@pytest.mark.spec("I16")
@pytest.mark.parametrize("others", [(), (item("other"),)])
def test_a_late_copy_opens_no_alert(
    gatebell: LiveGatebell, others: tuple[dict[str, Any], ...]
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a")))
    endpoint.post(webhook(resolved("a")))
    answer = endpoint.post(webhook(item("a"), *others))
    assert answer.json()[0] == {"iid": 1, "title": "a"}
    first = list_stored_alerts(gatebell, endpoint.project)[0]
    assert (first.status, first.events) == ("resolved", 2)
    log = get_newest_delivery(gatebell, endpoint.project)
    assert (log.opened, log.joined, log.resolved) == (len(others), 1, 0)
    assert log.parse_warnings == [
        f"Item 1: {ARRIVED_LATE_WARNING}" if others else ARRIVED_LATE_WARNING
    ]
    assert "arrived late" in page_of(gatebell, endpoint)
    # The next alert begins after that end.
    again = endpoint.post(webhook(item("a", startsAt="2026-11-21T08:00:00Z"), *others))
    assert again.json()[0]["iid"] == 2 + len(others)


@pytest.mark.spec("I16")
@pytest.mark.parametrize("others", [(), (item("other"),)])
def test_a_manually_resolved_alert_that_still_fires_opens_a_new_alert(
    gatebell: LiveGatebell, others: tuple[dict[str, Any], ...]
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a")))
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/1", timeout=20)
    assert submit(browser, page, form_to(page, "/status"), status="resolved").ok
    assert endpoint.post(webhook(item("a"), *others)).json()[0] == {"iid": 2, "title": "a"}


def age_recoveries(gatebell: LiveGatebell, endpoint: Endpoint, **time: float) -> None:
    """Move the recoveries of a project into the past."""
    ids = [alert.id for alert in list_stored_alerts(gatebell, endpoint.project)]
    with database_of(gatebell) as session:
        for alert in session.scalars(select(Alert).where(Alert.id.in_(ids))):
            assert alert.recovery_received_at is not None
            alert.recovery_received_at -= timedelta(**time)


@pytest.mark.spec("I16")
@pytest.mark.both_databases
@pytest.mark.parametrize("others", [(), (item("other"),)])
def test_a_payload_repeated_long_after_its_recovery_opens_a_new_alert(
    gatebell: LiveGatebell, others: tuple[dict[str, Any], ...]
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(item("a")))
    endpoint.post(webhook(resolved("a")))
    # A redundant Alertmanager that lags does not extend the time in which copies are ignored.
    age_recoveries(gatebell, endpoint, seconds=290)
    assert endpoint.post(webhook(item("a"))).json()[0]["iid"] == 1
    age_recoveries(gatebell, endpoint, seconds=15)
    assert endpoint.post(webhook(item("a"), *others)).json()[0] == {"iid": 2, "title": "a"}
    first, second, *_ = list_stored_alerts(gatebell, endpoint.project)
    assert (first.status, first.events) == ("resolved", 2)
    assert (second.status, second.started_at) == ("triggered", first.started_at)
    # It is an ordinary alert: it is repeated, and its own recovery resolves it.
    assert endpoint.post(webhook(item("a"))).json()[0]["iid"] == 2
    endpoint.post(webhook(resolved("a")))
    assert {each.status for each in list_stored_alerts(gatebell, endpoint.project)[:2]} == {
        "resolved"
    }


@pytest.mark.long
@pytest.mark.spec("I16")
@pytest.mark.both_databases
def test_the_time_for_late_copies_can_be_turned_off(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    with changed_settings(gatebell, late_copy_seconds="0"):
        endpoint.accepted(fingerprint="x", start_time=NINE)
        endpoint.accepted(fingerprint="x", start_time=NINE, end_time="2026-11-21T10:00:00Z")
        assert endpoint.accepted(fingerprint="x", start_time=NINE)["iid"] == 2


@pytest.mark.spec("I16")
def test_an_alert_resolved_without_reports_that_fires_again_is_new(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(fingerprint="x", start_time=NINE)
    resolve_for_silence(gatebell, endpoint.id, minutes=1)
    assert list_stored_alerts(gatebell, endpoint.project)[0].status == "resolved"
    assert endpoint.accepted(fingerprint="x", start_time=NINE)["iid"] == 2


@pytest.mark.spec("I16")
def test_a_mapped_creation_time_does_not_make_new_alerts_late(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    mapping = {"start_time": [["made"]], "fingerprint": [["id"]], "end_time": [["over"]]}
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    sample = {"made": NINE, "id": "x"}
    saved = worker.put(f"/{endpoint.id}/mapping", sample=sample, mapping=mapping)
    assert saved.status_code == 200
    recent = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    for made, opened in (("2019-03-01T08:00:00Z", 2), (recent, 1)):
        for over in (None, datetime.now(UTC).isoformat(), None):
            endpoint.accepted(id=made, made=made, over=over)
        alerts = list_stored_alerts(gatebell, endpoint.project)
        assert sum(each.started_at == datetime.fromisoformat(made) for each in alerts) == opened


@pytest.mark.spec("I16")
@pytest.mark.parametrize("offset", ["", "+00:00"])
def test_a_start_without_an_offset_does_not_make_a_new_alert_late(
    gatebell: LiveGatebell, offset: str
) -> None:
    endpoint = connect(gatebell)
    # The sender's clock shows the time of another zone.
    started = (datetime.now(UTC) - timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M:%S.5") + offset
    for over in (None, datetime.now(UTC).isoformat(), None):
        endpoint.accepted(fingerprint="x", start_time=started, end_time=over)
    alerts = list_stored_alerts(gatebell, endpoint.project)
    assert len(alerts) == (1 if offset else 2)
    assert {each.started_at for each in alerts} == {
        datetime.fromisoformat(started).replace(tzinfo=UTC)
    }


@pytest.mark.spec("I16")
@pytest.mark.parametrize("offset", ["", "Z"])
def test_an_alertmanager_start_without_an_offset_does_not_make_a_new_alert_late(
    gatebell: LiveGatebell, offset: str
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    start = f"2026-11-21T07:00:00.5{offset}"
    for each in (item("a", startsAt=start), resolved("a", startsAt=start)):
        endpoint.post(webhook(each))
    endpoint.post(webhook(item("a", startsAt=start)))
    assert len(list_stored_alerts(gatebell, endpoint.project)) == (1 if offset else 2)
