"""Pruning of the delivery log: recent deliveries and deliveries that opened alerts are kept."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import insert, select, text, update

from domain.alerts.storing.lifecycle import Action
from domain.housekeeping.pruning import DeliveryCheckProgress, Retention, prune_expired_rows
from models import Alert, Delivery
from tests.support.accounts.people import alice, database_of, now, signed_in
from tests.support.alerts.senders import connect, item, webhook
from tests.support.database.stored import change, list_stored_deliveries, list_stored_occurrences
from tests.support.service.live import LiveGatebell, NewService, running
from web.jobs.retention import prune_database
from web.settings.environment import parse_settings


@pytest.fixture(params=["sqlite", "postgres"])
def gatebell(request: pytest.FixtureRequest, new_service: NewService) -> Iterator[LiveGatebell]:
    """A service that keeps few deliveries."""
    with running(new_service(request.param, only="app", DELIVERY_KEEP_COUNT="10")) as live:
        yield live


@pytest.mark.spec("J5")
def test_a_delivery_that_opened_an_alert_is_not_pruned(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for _ in range(14):
        endpoint.accepted(title="Disk full", note="kept whole", fingerprint="d")
    log = list_stored_deliveries(gatebell, endpoint.project)
    old = update(Delivery).where(Delivery.project_id == log[0].project_id)
    change(gatebell, old.values(received_at=now() - timedelta(days=400)))
    gatebell.cli("prune")
    kept = [delivery.id for delivery in list_stored_deliveries(gatebell, endpoint.project)]
    assert kept == [log[0].id, *(delivery.id for delivery in log[-10:])]
    touched = list_stored_occurrences(gatebell, endpoint.project)
    assert touched == [(1, 0, Action.OPENED), *[(1, 0, Action.JOINED)] * 10]
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    assert "kept whole" in page.text


@pytest.mark.long
def test_a_long_log_is_pruned_past_kept_deliveries(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    endpoint.post(webhook(*(item(f"a{number}") for number in range(3))))
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    with database_of(gatebell) as session:
        alerts = session.scalars(select(Alert.id).where(Alert.delivery_id == delivery.id)).all()
        row = session.execute(select(Delivery.__table__).where(Delivery.id == delivery.id)).one()
        # Kept deliveries lie before, between and after more rows than one step deletes.
        old = {**row._asdict(), "received_at": now() - timedelta(days=400)}
        first = delivery.id + 1
        rows = [{**old, "id": first + number} for number in range(1_800)]
        session.execute(insert(Delivery), rows)
        if gatebell.database_url.startswith("postgres"):
            session.execute(text(f"SELECT setval('deliveries_id_seq', {rows[-1]['id']})"))
        openers = [first + 600 * (number + 1) for number in range(2)]
        for opener, alert in zip(openers, alerts, strict=False):
            session.execute(update(Alert).where(Alert.id == alert).values(delivery_id=opener))
    prune_database(parse_settings(gatebell.environment))
    kept = [each.id for each in list_stored_deliveries(gatebell, endpoint.project)]
    assert kept == [delivery.id, *openers, *range(first + 1_790, first + 1_800)]


@pytest.mark.long
def test_the_worker_checks_kept_deliveries_again_after_a_day(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for number in range(6):
        endpoint.accepted(title="Disk full" if number == 0 else f"alert {number}")
    log = [each.id for each in list_stored_deliveries(gatebell, endpoint.project)]
    long_ago = now() - timedelta(days=400)
    retention = Retention(keep_deliveries=1, keep_for=timedelta(days=30))
    kept, began = DeliveryCheckProgress(), now()

    def left_after(**later: float) -> list[int]:
        with database_of(gatebell) as session:
            at = began + timedelta(**later)
            prune_expired_rows(
                retention,
                checked_deliveries=kept,
                session=session,
                now=at,
                commit_batch=session.flush,
            )
        return [log.index(each.id) for each in list_stored_deliveries(gatebell, endpoint.project)]

    def remove_alert_of(index: int) -> None:
        change(
            gatebell, update(Alert).where(Alert.delivery_id == log[index]).values(delivery_id=None)
        )

    # The first half is old enough now, the other half later.
    change(gatebell, update(Delivery).where(Delivery.id < log[3]).values(received_at=long_ago))
    assert left_after() == [0, 1, 2, 3, 4, 5]
    for index in (1, 4):
        remove_alert_of(index)
    change(gatebell, update(Delivery).values(received_at=long_ago))
    assert left_after(hours=1) == [0, 1, 2, 3, 5]
    assert left_after(days=1) == [0, 2, 3, 5]
    # A clock that was set back does not delay the check either.
    remove_alert_of(0)
    assert left_after(hours=25) == [0, 2, 3, 5]
    assert left_after(days=-1) == [2, 3, 5]
