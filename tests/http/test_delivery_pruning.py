"""Pruning the delivery log: what alerts still need stays, and so does what is recent."""

from datetime import timedelta

import pytest
from sqlalchemy import update

from domain.alerts.lifecycle import Action
from models import Delivery
from tests.live import LiveGatebell
from tests.people import alice, now, signed_in
from tests.senders import connect
from tests.stored import change, deliveries_of, occurrences_of


@pytest.mark.spec("J5")
def test_what_opened_an_alert_outlives_the_rest_of_the_log(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for _ in range(14):
        endpoint.accepted(title="Disk full", note="kept whole", fingerprint="d")
    log = deliveries_of(gatebell, endpoint.project)
    old = update(Delivery).where(Delivery.project_id == log[0].project_id)
    change(gatebell, old.values(received_at=now() - timedelta(days=400)))
    gatebell.cli("settings", "set", "DELIVERY_KEEP_COUNT", "10")
    try:
        assert gatebell.printed("prune")["deliveries"] >= 3
    finally:
        gatebell.cli("settings", "set", "DELIVERY_KEEP_COUNT", "1000")
    kept = [delivery.id for delivery in deliveries_of(gatebell, endpoint.project)]
    assert kept == [log[0].id, *(delivery.id for delivery in log[-10:])]
    touched = occurrences_of(gatebell, endpoint.project)
    assert touched == [(1, 0, Action.OPENED), *[(1, 0, Action.JOINED)] * 10]
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    assert "kept whole" in page.text
