"""Tests that webhooks get the changes of incidents from every source."""

import pytest
from sqlalchemy import delete, select, update

from domain.core.due_time_sql import compute_time_parameters
from domain.delivery.webhooks.queueing import INCIDENT_CHANGE_QUEUE, INCIDENT_CHANGES_ARE_DUE
from models import Incident
from tests.support.database.webhooks import Webhooks
from tests.support.service.message_receiver import Receiver
from web.api.schemas.webhook_messages import IncidentMessage, MessageIncident


def open_incident(webhooks: Webhooks, iid: int, status: str = "triggered") -> None:
    """Store an incident as the code that opens incidents does."""
    with webhooks.open_session() as session:
        session.add(
            Incident(
                project_id=webhooks.project_id,
                iid=iid,
                title=f"Incident {iid}",
                description="",
                urgency=5,
                status=status,
                author_name="",
                created_at=webhooks.now,
                updated_at=webhooks.now,
            )
        )


def set_incident(webhooks: Webhooks, iid: int, status: str) -> None:
    with webhooks.open_session() as session:
        session.execute(update(Incident).where(Incident.iid == iid).values(status=status))


@pytest.mark.long
@pytest.mark.spec("J2")
def test_changes_of_an_incident_are_sent_in_order(webhooks: Webhooks, receiver: Receiver) -> None:
    open_incident(webhooks, 1)
    webhooks.create_webhook(receiver.url)
    open_incident(webhooks, 2)
    for status in ("acknowledged", "resolved", "triggered", "triggered"):
        set_incident(webhooks, 2, status)
    open_incident(webhooks, 3, "resolved")
    webhooks.deliver_messages()
    incidents = [(each.type, each.event["data"]["incident"]["iid"]) for each in receiver.received]
    # No webhook existed when the first incident was opened.
    assert [kind for kind, iid in incidents if iid == 2] == [
        f"incident.{kind}" for kind in ("opened", "acknowledged", "resolved", "reopened")
    ]
    assert [kind for kind, iid in incidents if iid != 2] == ["incident.opened"]
    shown = receiver.received[0].event["data"]["incident"]
    assert (shown["severity"], shown["alerts"]) == ("critical", [])
    # The message has exactly the documented fields.
    assert set(MessageIncident.model_fields) == set(shown)
    IncidentMessage.model_validate(receiver.received[0].event)


@pytest.mark.long
def test_no_message_is_sent_about_a_deleted_incident(
    webhooks: Webhooks, receiver: Receiver
) -> None:
    webhooks.create_webhook(receiver.url)
    open_incident(webhooks, 1)
    with webhooks.open_session() as session:
        session.execute(delete(Incident))
    assert webhooks.deliver_messages() == 0
    # The change is also not due any more.
    with webhooks.open_session() as session:
        assert not session.scalar(
            select(INCIDENT_CHANGES_ARE_DUE), compute_time_parameters(webhooks.now)
        )


@pytest.mark.long
def test_a_project_without_webhooks_stores_no_changes_of_incidents(webhooks: Webhooks) -> None:
    open_incident(webhooks, 1)
    with webhooks.open_session() as session:
        assert not session.scalar(
            select(INCIDENT_CHANGES_ARE_DUE), compute_time_parameters(webhooks.now)
        )


@pytest.mark.one_database("postgres")  # SQLite has one writer at a time
def test_two_workers_do_not_share_the_changes_of_an_incident(webhooks: Webhooks) -> None:
    webhooks.create_webhook("http://127.0.0.1:1/")
    open_incident(webhooks, 1)
    set_incident(webhooks, 1, "resolved")
    with webhooks.open_session() as one, webhooks.open_session() as other:
        (first,) = INCIDENT_CHANGE_QUEUE.lock_due_rows(maximum=10, session=one, now=webhooks.now)
        assert first.kind == "opened"
        assert not INCIDENT_CHANGE_QUEUE.lock_due_rows(maximum=10, session=other, now=webhooks.now)
