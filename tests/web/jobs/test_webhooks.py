"""Tests that webhooks get their chosen events signed and in order, in spite of failures."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete
from standardwebhooks.webhooks import WebhookVerificationError

from domain.core.errors import ConflictError
from domain.delivery.outgoing.destinations import DestinationState
from domain.delivery.webhooks.endpoints import (
    MAX_ENDPOINTS,
    WEBHOOK_KIND,
    get_delivery,
    requeue_delivery,
)
from domain.delivery.webhooks.types import DeliveryState, PauseReason
from models import Alert, Project
from tests.support.database.webhooks import Webhooks
from tests.support.service.commands import operate
from tests.support.service.message_receiver import Received, Receiver
from web.api.schemas.webhook_messages import AlertMessage, MessageAlert
from web.jobs.mail import queue_destination_failure_mail
from web.jobs.retention import prune_database

DOWN = "http://127.0.0.1:1/"


def received_events(receiver: Receiver) -> list[tuple[str, str]]:
    """Return the type of each message and the title of its alert."""
    return [(each.type, each.event["data"]["alert"]["title"]) for each in receiver.received]


def alert_of(message: Received) -> dict[str, Any]:
    found: dict[str, Any] = message.event["data"]["alert"]
    return found


@pytest.mark.long
@pytest.mark.spec("J1")
def test_changes_of_an_alert_are_sent_signed_and_in_order(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    made = webhooks.create_webhook(receiver.url)
    webhooks.send_alert("Disk full", severity="warning", host="db-1", service="web")
    for status in ("acknowledged", "ignored", "triggered"):
        webhooks.set_status(1, status)
    webhooks.send_alert(
        "Disk full", severity="warning", host="db-1", service="web", status="resolved"
    )
    webhooks.queue_messages()
    webhooks.deliver_messages()

    assert received_events(receiver) == [
        (f"alert.{kind}", "Disk full")
        for kind in ("opened", "acknowledged", "ignored", "reopened", "resolved")
    ]
    body = receiver.received[0].verified_by(made.secret)
    assert set(body) == {"type", "timestamp", "data"}
    # The message has exactly the documented fields.
    assert set(MessageAlert.model_fields) == set(body["data"]["alert"])
    AlertMessage.model_validate(body)
    assert body["data"]["project"] == {
        "id": webhooks.project_id,
        "name": "shop",
        "path_with_namespace": "acme/shop",
        "web_url": f"{webhooks.settings.base_url}/acme/shop",
    }
    alert = alert_of(receiver.received[0])
    assert (alert["iid"], alert["service"]) == (1, "web")
    assert alert["labels"]["host"] == "db-1"
    assert alert["web_url"] == f"{webhooks.settings.base_url}/acme/shop/-/alerts/1"
    assert len({each.message_id for each in receiver.received}) == 5
    forged = Received("/", receiver.received[0].headers, receiver.received[0].body + b" ")
    with pytest.raises(WebhookVerificationError):
        forged.verified_by(made.secret)
    log = webhooks.list_log(made.destination)
    assert {each.state for each in log} == {DeliveryState.DELIVERED}
    assert [(each.status_code, each.tries, each.error) for each in log] == [(204, 1, None)] * 5
    assert webhooks.read_webhook_state(made.destination).backlog == 0


@pytest.mark.long
def test_an_endpoint_gets_only_its_chosen_events_of_alerts_that_meet_its_conditions(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    webhooks.create_webhook(receiver.url, "alert.resolved", conditions={"labels": 'team="db"'})
    webhooks.send_alert("One", team="db", **{f"z{number}": "x" * 1_001 for number in range(70)})
    webhooks.send_alert("Two", team="web")
    webhooks.send_alert("Over when it came", team="db", status="resolved")
    for iid in (1, 2):
        webhooks.set_status(iid, "resolved")
    webhooks.deliver_messages()
    webhooks.deliver_messages()
    assert received_events(receiver) == [("alert.resolved", "One")]
    labels = alert_of(receiver.received[0])["labels"]
    assert (len(labels), max(map(len, labels.values()))) == (64, 1_000)


@pytest.mark.long
def test_a_project_without_webhooks_for_alerts_stores_no_changes(webhooks: Webhooks) -> None:
    assert not webhooks.is_followed()
    incidents = webhooks.create_webhook(DOWN, "incident.opened").destination
    assert not webhooks.is_followed()
    alerts = webhooks.create_webhook(DOWN).destination
    assert webhooks.is_followed()
    with webhooks.open_session() as session:
        WEBHOOK_KIND.pause_destination(
            alerts.id, owner=webhooks.project_id, session=session, now=webhooks.now
        )
    assert not webhooks.is_followed()
    webhooks.send_alert("Unheard")
    with webhooks.open_session() as session:
        WEBHOOK_KIND.resume_destination(alerts.id, owner=webhooks.project_id, session=session)
    assert webhooks.is_followed()
    assert webhooks.queue_messages() == 0
    with webhooks.open_session() as session:
        for each in (alerts, incidents):
            WEBHOOK_KIND.delete_destination(each.id, owner=webhooks.project_id, session=session)
    assert not webhooks.is_followed()


@pytest.mark.long
def test_an_endpoint_of_another_project_gets_no_messages(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    webhooks.create_webhook(receiver.url, project_id=webhooks.create_project("other"))
    webhooks.create_webhook(DOWN)
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    assert receiver.received == []


def test_after_an_hour_long_outage_an_endpoint_gets_all_messages_once_in_order_for_each_alert(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    is_down = True
    receiver.answer = lambda _request: (503, {}) if is_down else (204, {})
    endpoint = webhooks.create_webhook(receiver.url).destination
    webhooks.send_alert("One")
    began = webhooks.now
    assert webhooks.deliver_messages() == 1
    state = webhooks.read_webhook_state(endpoint)
    assert state.state is DestinationState.RETRYING
    assert state.last_error == "the server returned 503 Service Unavailable"
    assert state.next_try_at is not None
    assert state.next_try_at - began <= timedelta(seconds=30)
    webhooks.set_status(1, "acknowledged")
    webhooks.send_alert("Two")
    while webhooks.now - began < timedelta(hours=1):
        # No attempt is made before it is due.
        assert webhooks.deliver_messages() == 0
        webhooks.now = webhooks.read_webhook_state(endpoint).next_try_at or webhooks.now
        assert webhooks.deliver_messages() == 1
    is_down = False
    for _ in range(3):
        webhooks.advance_time(hours=4)
        webhooks.deliver_messages()
    assert sorted(received_events(receiver)) == [
        ("alert.acknowledged", "One"),
        ("alert.opened", "One"),
        ("alert.opened", "Two"),
    ]
    of_one = [kind for kind, title in received_events(receiver) if title == "One"]
    assert of_one == ["alert.opened", "alert.acknowledged"]
    assert webhooks.read_webhook_state(endpoint).state is DestinationState.ACTIVE


def test_a_permanently_rejected_message_delays_only_its_own_alert(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    def answer(request: Received) -> tuple[int, Mapping[str, str]]:
        return (400 if alert_of(request)["title"] == "Poison" else 204), {}

    receiver.answer = answer
    endpoint = webhooks.create_webhook(receiver.url).destination
    webhooks.send_alert("Poison")
    webhooks.deliver_messages()
    webhooks.set_status(1, "acknowledged")
    webhooks.send_alert("Other")
    webhooks.advance_time(minutes=1)
    webhooks.deliver_messages()
    webhooks.advance_time(minutes=1)
    webhooks.deliver_messages()
    assert received_events(receiver) == [("alert.opened", "Other")]
    poison, held, other = webhooks.list_log(endpoint)
    assert (poison.status_code, poison.error) == (400, "the server returned 400 Bad Request")
    assert (held.state, held.tries) == (DeliveryState.WAITING, 0)
    assert other.state is DeliveryState.DELIVERED
    # After three days the message is discarded, and the messages behind it are tried.
    webhooks.advance_time(days=3, minutes=5)
    for _ in range(2):
        webhooks.deliver_messages()
        webhooks.advance_time(minutes=10)
    poison, held, _ = webhooks.list_log(endpoint)
    assert poison.state is DeliveryState.FAILED
    assert held.tries > 0


@pytest.mark.long
def test_an_endpoint_that_fails_for_days_is_paused_and_maintainers_are_notified(
    webhooks: Webhooks,
) -> None:
    operate(webhooks.app, "members", "add", "acme/shop", "alice", "maintainer")
    endpoint = webhooks.create_webhook(DOWN).destination
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    assert mail(webhooks) == 0
    webhooks.advance_time(days=1)
    webhooks.deliver_messages()
    assert webhooks.read_webhook_state(endpoint).state is DestinationState.FAILING
    assert (mail(webhooks), mail(webhooks)) == (1, 0)
    webhooks.advance_time(days=4)
    webhooks.deliver_messages()
    state = webhooks.read_webhook_state(endpoint)
    assert (state.state, state.pause_reason) == (DestinationState.PAUSED, "failures")
    assert (mail(webhooks), mail(webhooks)) == (1, 0)
    # Alerts are not followed any more; a resumed webhook gets only later events.
    assert not webhooks.is_followed()
    with webhooks.open_session() as session:
        WEBHOOK_KIND.resume_destination(endpoint.id, owner=webhooks.project_id, session=session)
    assert webhooks.is_followed()
    assert webhooks.read_webhook_state(endpoint).state is DestinationState.ACTIVE


def mail(webhooks: Webhooks) -> int:
    return queue_destination_failure_mail(webhooks.settings, clock=lambda: webhooks.now)


@pytest.mark.long
def test_an_endpoint_that_answers_410_is_paused_immediately(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    receiver.answer = lambda _request: (410, {})
    endpoint = webhooks.create_webhook(receiver.url).destination
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    state = webhooks.read_webhook_state(endpoint)
    assert (state.state, state.pause_reason) == (DestinationState.PAUSED, "gone")


@pytest.mark.long
def test_a_delivery_is_sent_again_with_its_id(webhooks: Webhooks, receiver: Receiver) -> None:
    endpoint = webhooks.create_webhook(receiver.url).destination
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    (delivery,) = webhooks.list_log(endpoint)
    with webhooks.open_session() as session:
        requeue_delivery(endpoint.id, delivery.id, session=session, now=webhooks.now)
    webhooks.deliver_messages()
    first, second = receiver.received
    assert (first.message_id, first.body) == (second.message_id, second.body)
    with webhooks.open_session() as session:
        WEBHOOK_KIND.pause_destination(
            endpoint.id, owner=webhooks.project_id, session=session, now=webhooks.now
        )
        with pytest.raises(ConflictError, match="paused"):
            requeue_delivery(endpoint.id, delivery.id, session=session, now=webhooks.now)


@pytest.mark.long
def test_the_log_shows_request_and_response_without_the_signature(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    receiver.answer = lambda _request: (500, {})
    endpoint = webhooks.create_webhook(f"{receiver.url}?key=hidden").destination
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    with webhooks.open_session() as session:
        (listed,) = webhooks.list_log(endpoint)
        shown = get_delivery(endpoint.id, listed.id, session=session)
    assert set(shown.headers) == {"Content-Type", "webhook-id", "webhook-timestamp"}
    assert shown.body is not None
    assert '"title":"Disk full"' in shown.body
    assert shown.duration is not None
    assert "hidden" not in (shown.error or "") + shown.body


@pytest.mark.long
def test_the_backlog_of_a_removed_webhook_is_deleted(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    endpoint = webhooks.create_webhook(receiver.url).destination
    webhooks.send_alert("Disk full")
    webhooks.queue_messages()
    with webhooks.open_session() as session:
        WEBHOOK_KIND.delete_destination(endpoint.id, owner=webhooks.project_id, session=session)
    newer = webhooks.create_webhook(receiver.url).destination
    # The id is not reused.
    assert newer.id > endpoint.id
    assert webhooks.deliver_messages() == 0
    assert prune_database(webhooks.settings)["webhook_deliveries"] == 1


@pytest.mark.long
def test_no_message_is_sent_about_a_deleted_alert(webhooks: Webhooks, receiver: Receiver) -> None:
    webhooks.create_webhook(receiver.url)
    webhooks.send_alert("Disk full")
    with webhooks.open_session() as session:
        session.execute(delete(Alert))
    assert webhooks.deliver_messages() == 0


@pytest.mark.long
def test_a_project_has_no_more_webhooks_than_the_limit(webhooks: Webhooks) -> None:
    for _ in range(MAX_ENDPOINTS):
        webhooks.create_webhook(DOWN)
    with pytest.raises(ConflictError, match="Delete a webhook first"):
        webhooks.create_webhook(DOWN)


@pytest.mark.parametrize(
    ("column", "why"), [("archived_at", "archived"), ("deleted_at", "deleted")]
)
def test_waiting_messages_are_cancelled_when_the_project_is_archived_or_deleted(
    webhooks: Webhooks, receiver: Receiver, column: str, why: str
) -> None:
    endpoint = webhooks.create_webhook(receiver.url).destination
    receiver.answer = lambda _request: (503, {})
    webhooks.send_alert("Disk full")
    webhooks.deliver_messages()
    assert [each.tries for each in webhooks.list_log(endpoint)] == [1]
    receiver.answer = lambda _request: (204, {})
    with webhooks.open_session() as session:
        setattr(session.get_one(Project, webhooks.project_id), column, webhooks.now)
    webhooks.now += timedelta(minutes=1)
    webhooks.deliver_messages()
    assert receiver.received == []
    (entry,) = webhooks.list_log(endpoint)
    assert entry.state is DeliveryState.FAILED
    assert why in (entry.error or "")
    assert webhooks.deliver_messages() == 0


def test_nothing_is_sent_to_a_url_from_an_application_that_lost_access(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    endpoint = webhooks.create_webhook(receiver.url).destination
    webhooks.send_alert("Disk full")
    webhooks.queue_messages()
    with webhooks.open_session() as session:
        # An authorization without a token
        WEBHOOK_KIND.store_authorization(endpoint.id, 1_000, session=session)
    webhooks.deliver_messages()
    assert receiver.received == []
    assert webhooks.read_webhook_state(endpoint).pause_reason is PauseReason.APPLICATION
    assert [each.state for each in webhooks.list_log(endpoint)] == [DeliveryState.WAITING]
