"""Labels of received alerts."""

from collections.abc import Mapping

from sqlalchemy import delete

from domain.alerts.formats.base import ParserSettings
from domain.alerts.matching.labels import find_alert_labels
from models import Delivery
from tests.support.accounts.people import database_of
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)


def read(gatebell: LiveGatebell, endpoint: Endpoint) -> list[Mapping[str, str]]:
    ids = [alert.id for alert in list_stored_alerts(gatebell, endpoint.project)]
    with database_of(gatebell) as session:
        found = find_alert_labels([*ids, 2**40], session=session, reading=READING)
    assert list(found) == ids
    return [each.labels for each in found.values()]


def test_labels_of_a_generic_payload_are_its_keys_and_alert_fields(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(
        title="Disk full", severity="HIGH", hosts=["db-1", "db-2"], service="db", team="storage",
        count=3, ratio=0.5, is_new=True, nothing=None, empty="", nested={"a": 1},
        platform_environment_name="production", big=10**30,
    )  # fmt: skip
    (labels,) = read(gatebell, endpoint)
    assert labels == {
        "alertname": "Disk full", "title": "Disk full", "severity": "high", "host": "db-1",
        "service": "db", "environment": "production", "status": "triggered", "team": "storage",
        "count": "3", "ratio": "0.5", "is_new": "true", "big": str(10**30),
        "platform_environment_name": "production",
    }  # fmt: skip


def test_labels_of_alertmanager_include_common_labels(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    items = [
        item(name, labels={"alertname": name, "severity": "page", "instance": f"{name}:9"})
        for name in ("First", "Second")
    ]
    endpoint.post(webhook(*items, commonLabels={"region": "eu", "instance": "both"}))
    first, second = read(gatebell, endpoint)
    assert first == {
        "alertname": "First", "title": "First", "severity": "high", "instance": "First:9",
        "host": "First:9", "region": "eu", "status": "triggered", "monitoring_tool": "Prometheus",
    }  # fmt: skip
    assert second["alertname"] == "Second"


def test_each_item_of_an_array_has_its_own_labels(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post_json([{"title": "a", "team": "x\ud800"}, 5, {"title": "b", "team": "y"}])
    assert [each["team"] for each in read(gatebell, endpoint)] == ["x\ufffd", "y"]


def test_without_the_payload_alert_fields_are_still_labels(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Disk full", team="storage")
    with database_of(gatebell) as session:
        session.execute(delete(Delivery).where(Delivery.integration_id == endpoint.id))
    (labels,) = read(gatebell, endpoint)
    assert labels["alertname"] == "Disk full"
    assert "team" not in labels
