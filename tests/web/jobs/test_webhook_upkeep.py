"""Tests of webhook maintenance: pruning, key changes, deleted projects and resent deliveries."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import delete, func, select, update

from domain.core.keyring import Keyring
from domain.delivery.webhooks import endpoints
from domain.delivery.webhooks.endpoints import WEBHOOK_KIND, requeue_delivery
from domain.delivery.webhooks.types import DeliveryState, Webhook
from domain.housekeeping.secret_key_rotation import reencrypt_all_columns
from models import Project, WebhookDelivery, WebhookEndpoint
from tests.support.database.webhooks import Webhooks
from tests.support.service.message_receiver import Receiver
from web.jobs.retention import prune_database

DOWN = "http://127.0.0.1:1/"
NEW_KEY = "the key of tomorrow, which is long"


def states(webhooks: Webhooks, endpoint: Webhook) -> list[DeliveryState]:
    return [each.state for each in webhooks.list_log(endpoint)]


@pytest.mark.long
def test_old_or_excess_deliveries_are_discarded(webhooks: Webhooks) -> None:
    endpoint = webhooks.create_webhook(DOWN).destination
    webhooks.send_alert("Old")
    webhooks.queue_messages()
    webhooks.advance_time(days=4)
    for name in ("One", "Two", "Three"):
        webhooks.send_alert(name)
        webhooks.queue_messages()
    with webhooks.open_session() as session:
        given_up = endpoints.abandon_old_deliveries(
            session=session, now=webhooks.now, commit_batch=session.flush, maximum=2
        )
    assert given_up == 2
    failed, waiting = [DeliveryState.FAILED] * 2, [DeliveryState.WAITING] * 2
    assert states(webhooks, endpoint) == failed + waiting
    assert "three days" in (webhooks.list_log(endpoint)[0].error or "")


def test_the_log_keeps_recent_and_waiting_deliveries(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    endpoint = webhooks.create_webhook(receiver.url).destination
    for name in ("One", "Two", "Three"):
        webhooks.send_alert(name)
        webhooks.deliver_messages()
        webhooks.advance_time(days=1)
    webhooks.send_alert("Waiting")
    webhooks.queue_messages()

    def prune(before: datetime, most: int) -> int:
        with webhooks.open_session() as session:
            return endpoints.prune_webhook_log(
                before=before, session=session, commit_batch=session.flush, maximum=most
            )

    assert prune(webhooks.now - timedelta(days=2, hours=12), most=10) == 1
    assert prune(webhooks.now - timedelta(days=9), most=1) == 1
    assert states(webhooks, endpoint) == [DeliveryState.DELIVERED, DeliveryState.WAITING]
    webhooks.advance_time(days=1)
    assert prune(webhooks.now, most=10) == 1
    assert states(webhooks, endpoint) == [DeliveryState.WAITING]


@pytest.mark.long
def test_secrets_are_encrypted_again_under_a_new_key(webhooks: Webhooks) -> None:
    made = webhooks.create_webhook(DOWN)
    both = Keyring(NEW_KEY, webhooks.settings.secret_key)
    with webhooks.open_session() as session:
        done = reencrypt_all_columns(both, session=session)
    assert (done["webhook_secrets"], done["previous_webhook_secrets"]) == (1, 0)
    with webhooks.open_session() as session:
        secrets = WEBHOOK_KIND.list_secrets(
            made.destination.id,
            session=session,
            keyring=Keyring(NEW_KEY),
            now=webhooks.now,
        )
    assert secrets == [made.secret]


@pytest.mark.long
def test_the_webhooks_of_a_deleted_project_and_their_log_are_deleted(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    other = webhooks.create_project("other")
    kept = webhooks.create_webhook(receiver.url, project_id=other).destination
    webhooks.create_webhook(receiver.url)
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    with webhooks.open_session() as session:
        mine = Project.id == webhooks.project_id
        session.execute(update(Project).where(mine).values(deleted_at=webhooks.now))
        # Simulate the job that deletes removed projects, and their alerts first.
        session.execute(delete(WebhookEndpoint).where(WebhookEndpoint.project_id != other))
    prune_database(webhooks.settings)
    with webhooks.open_session() as session:
        assert session.scalar(select(func.count(WebhookDelivery.id))) == 0
        found = WEBHOOK_KIND.get_destination(
            kept.id, owner=other, session=session, keyring=webhooks.keyring, now=webhooks.now
        )
        assert found == kept


@pytest.mark.long
def test_a_project_that_is_being_deleted_sends_no_messages(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    webhooks.create_webhook(receiver.url)
    webhooks.send_alert("Disk full")
    with webhooks.open_session() as session:
        session.execute(update(Project).values(deleted_at=webhooks.now))
    webhooks.deliver_messages()
    assert receiver.received == []


@pytest.mark.long
def test_a_delivery_that_is_sent_again_does_not_wait_for_the_next_attempt(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    receiver.answer = lambda _request: (500, {})
    endpoint = webhooks.create_webhook(receiver.url).destination
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    assert webhooks.deliver_messages() == 0
    receiver.answer = lambda _request: (204, {})
    with webhooks.open_session() as session:
        requeue_delivery(
            endpoint.id, webhooks.list_log(endpoint)[0].id, session=session, now=webhooks.now
        )
    assert webhooks.deliver_messages() == 1
    assert states(webhooks, endpoint) == [DeliveryState.DELIVERED]
