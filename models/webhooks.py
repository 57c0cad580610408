"""Outgoing webhooks of projects, their delivery log, and changes of incidents to be told."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Integer, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import BigId, Numbered, belongs_to, partial_index
from models.destination import Destination

_IS_WAITING = "state = 'waiting'"


class WebhookEndpoint(Destination):
    """A URL that gets the events of a project."""

    __tablename__ = "webhook_endpoints"

    project_id: Mapped[int] = belongs_to("projects", index=True)
    #: The names of the events that it gets, sorted.
    events: Mapped[list[str]] = mapped_column(JSON)
    #: What `domain.alerts.matching.conditions` stores; for events of alerts.
    conditions: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: Why it is paused: user, failures, gone or application; NULL while it is not.
    pause_reason: Mapped[str | None] = mapped_column(String(16))
    #: The authorization of the application that chose the URL. When that access ends, the endpoint
    #: is paused.
    authorization_id: Mapped[int | None] = mapped_column(BigId)

    # SQLite would use the number of a deleted endpoint again, and its deliveries with it.
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - SQLAlchemy's declared name


class WebhookDelivery(Numbered):
    """A message to an endpoint: one that waits, or what came of it.

    Without foreign keys, so that an endpoint with a long log is deleted at once.
    """

    __tablename__ = "webhook_deliveries"

    endpoint_id: Mapped[int] = mapped_column(BigId)
    project_id: Mapped[int] = mapped_column(BigId, index=True)
    #: Random; the same at each attempt, so that a receiver can drop duplicates.
    message_id: Mapped[str] = mapped_column(String(40))
    event: Mapped[str] = mapped_column(String(40))
    #: Deliveries of an endpoint with the same one are sent one after the other; NULL: in any order.
    order_key: Mapped[str | None] = mapped_column(String(40))
    body: Mapped[str] = mapped_column(Text)
    #: waiting, delivered or failed.
    state: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]
    #: When it was stored, or sent again by a user.
    queued_at: Mapped[datetime]
    #: Not before this moment; NULL unless it waits.
    next_try_at: Mapped[datetime | None]
    #: Attempts since it was queued, and the last of all.
    tries: Mapped[int] = mapped_column(Integer, default=0)
    last_try_at: Mapped[datetime | None]
    #: Of the last response.
    status_code: Mapped[int | None] = mapped_column(SmallInteger)
    response: Mapped[str | None] = mapped_column(Text)
    #: Milliseconds of the last attempt.
    duration: Mapped[int | None]
    error: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        Index("ix_webhook_deliveries_endpoint_id_id", "endpoint_id", "id"),
        partial_index(
            "ix_webhook_deliveries_due", "endpoint_id", "next_try_at", "id", where=_IS_WAITING
        ),
        partial_index(
            "ix_webhook_deliveries_order", "endpoint_id", "order_key", "id", where=_IS_WAITING
        ),
    )


class WebhookIncidentChange(Numbered):
    """A change of an incident that webhooks of its project are to be told of.

    A trigger adds it in the transaction of the change (migration 0051). Without foreign keys.
    """

    __tablename__ = "webhook_incident_changes"

    project_id: Mapped[int] = mapped_column(BigId)
    incident_id: Mapped[int] = mapped_column(BigId)
    #: opened, acknowledged, resolved or reopened.
    kind: Mapped[str] = mapped_column(String(16))
    #: By the clock of the database.
    created_at: Mapped[datetime]
    #: After a failure: not before this moment.
    next_try_at: Mapped[datetime | None]

    __table_args__ = (Index("ix_webhook_incident_changes_incident_id_id", "incident_id", "id"),)
