"""Real Prometheus and Alertmanager processes: they fire, group, repeat and resolve alerts."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.stories.conftest import Notify
from tests.support.alerts.monitoring import (
    Alertmanager,
    Metric,
    Prometheus,
    is_installed,
    wait_until,
)
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.live_settings import changed_settings

pytestmark = [
    pytest.mark.skipif(not is_installed(), reason="scripts/ensure-monitoring could not fetch them"),
    pytest.mark.one_database("postgres"),
]


def bearer(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "url": endpoint.url,
        "http_config": {"authorization": {"type": "Bearer", "credentials": endpoint.key}},
    }


def basic(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "url": endpoint.url,
        "http_config": {"basic_auth": {"username": "", "password": endpoint.key}},
    }


def in_the_url(endpoint: Endpoint) -> dict[str, Any]:
    return {"url": endpoint.url.replace("://", f"://:{endpoint.key}@")}


@pytest.fixture
def metric() -> Iterator[Metric]:
    made = Metric()
    yield made
    made.close()


@pytest.fixture
def measured(tmp_path: Path, metric: Metric) -> Iterator[Callable[[Alertmanager], Metric]]:
    """Starts a Prometheus that scrapes the metric."""
    started: list[Prometheus] = []

    def start(alertmanager: Alertmanager) -> Metric:
        started.append(Prometheus(tmp_path / "prometheus", metric, alertmanager))
        started[-1].start()
        return metric

    yield start
    for each in started:
        each.stop()


def labelled(instance: str) -> dict[str, Any]:
    return {
        "labels": {"alertname": "InstanceDown", "instance": instance, "severity": "page"},
        "annotations": {"summary": f"{instance} is down"},
    }


@pytest.mark.long
@pytest.mark.spec("I11", "I12", "I14", "I15", "I16", "I17")
def test_prometheus_fires_and_resolves(
    gatebell: LiveGatebell, notify: Notify, measured: Callable[[Alertmanager], Metric]
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    metric = measured(notify(bearer(endpoint)))
    metric.value = 1
    wait_until(
        lambda: len(list_stored_alerts(gatebell, endpoint.project)) == 1, "the alert is there"
    )
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.title, alert.status) == ("Disk of db-1 is full", "triggered")
    assert (alert.description, alert.severity) == ("Value 1", 3)
    metric.value = 0
    wait_until(
        lambda: list_stored_alerts(gatebell, endpoint.project)[0].status == "resolved",
        "it is resolved",
    )
    (resolved,) = list_stored_alerts(gatebell, endpoint.project)
    assert resolved.ended_at is not None
    assert resolved.ended_at > resolved.started_at
    metric.value = 1
    wait_until(
        lambda: len(list_stored_alerts(gatebell, endpoint.project)) == 2, "a second alert is there"
    )


@pytest.mark.spec("I2", "I11")
def test_alertmanager_groups_and_repeats_with_each_way_to_give_the_key(
    live_sqlite: LiveGatebell, notify: Notify
) -> None:
    ways = (bearer, basic, in_the_url)
    endpoints = [connect(live_sqlite, kind="prometheus") for _ in ways]
    webhooks = [way(endpoint) for way, endpoint in zip(ways, endpoints, strict=True)]
    alertmanager = notify(*webhooks, repeat="1s")
    alertmanager.fire(*(labelled(f"web-{number}") for number in range(3)))
    for way, endpoint in zip(ways, endpoints, strict=True):
        wait_until(partial(is_repeated, live_sqlite, endpoint), f"{way.__name__} repeats the group")
        alerts = list_stored_alerts(live_sqlite, endpoint.project)
        assert sorted(alert.title for alert in alerts) == [f"web-{n} is down" for n in range(3)]
        first = list_stored_deliveries(live_sqlite, endpoint.project)[0]
        assert (first.opened, first.status_code) == (3, 200)


def is_repeated(gatebell: LiveGatebell, endpoint: Endpoint) -> bool:
    return any(alert.events > 1 for alert in list_stored_alerts(gatebell, endpoint.project))


@pytest.mark.long
def test_alertmanager_repeats_rate_limited_webhooks(
    live_sqlite: LiveGatebell, notify: Notify
) -> None:
    endpoint = connect(live_sqlite, kind="prometheus")
    alertmanager = notify(bearer(endpoint))
    with changed_settings(live_sqlite, alert_rate_limit="1/hour"):
        # Each web process counts on its own: at least one of these requests exceeds the limit of
        # each.
        for number in range(6):
            labels = {"alertname": f"Down{number}", "severity": "page"}
            alertmanager.fire({"labels": labels})
        wait_until(
            lambda: "503" in alertmanager.log_text(), "Alertmanager is told to come again later"
        )
    wait_until(lambda: len(list_stored_alerts(live_sqlite, endpoint.project)) == 6, "all are there")
    assert {alert.events for alert in list_stored_alerts(live_sqlite, endpoint.project)} == {1}


@pytest.fixture(scope="module")
def own(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service for this file only, which its tests stop and start."""
    with running(new_service(only="web")) as live:
        yield live


@pytest.mark.long
def test_a_restart_loses_no_alerts(own: LiveGatebell, notify: Notify) -> None:
    many, few = (connect(own, kind="prometheus") for _ in range(2))
    flushing, failing = notify(bearer(many)), notify(bearer(few))
    # Alerts with different names are in different groups, so each is sent in its own webhook.
    flushing.fire(*({"labels": {"alertname": f"Down{number}"}} for number in range(60)))
    wait_until(lambda: bool(list_stored_alerts(own, many.project)), "the first one is there")
    own.stop()
    failing.fire(*(labelled(f"web-{number}") for number in range(3)))
    wait_until(lambda: "connection refused" in failing.log_text(), "a flush fails")
    own.start()
    wait_until(
        lambda: len(list_stored_alerts(own, many.project)) == 60, "all that were sent are there"
    )
    wait_until(
        lambda: len(list_stored_alerts(own, few.project)) == 3, "all that were tried are there"
    )
    answered = [row for row in list_stored_deliveries(own, many.project) if row.opened]
    assert len(answered) == 60
    # Alertmanager repeats a webhook whose response was late, so its alerts are counted again.
    kept = list_stored_deliveries(own, few.project)
    assert {alert.events for alert in list_stored_alerts(own, few.project)} == {len(kept)}
