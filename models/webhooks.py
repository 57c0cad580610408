"""Outgoing webhooks of projects, their delivery log, and queued incident changes."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Integer, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import BaseWithId, BigId, build_cascading_foreign_key, build_partial_index
from models.destination import Destination

_IS_WAITING = "state = 'waiting'"


class WebhookEndpoint(Destination):
    """A URL that receives the events of a project."""

    __tablename__ = "webhook_endpoints"

    project_id: Mapped[int] = build_cascading_foreign_key("projects", index=True)
    #: Sorted names of the events that the endpoint receives.
    events: Mapped[list[str]] = mapped_column(JSON)
    #: Conditions for alert events, in the format of `domain.alerts.matching.conditions`.
    conditions: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: Reason for the pause: user, failures, gone or application. NULL while deliveries are active.
    pause_reason: Mapped[str | None] = mapped_column(String(16))
    #: Authorization of the application that set the URL. When the application loses access, the
    #: endpoint is paused.
    authorization_id: Mapped[int | None] = mapped_column(BigId)

    # SQLite would reuse the ID of a deleted endpoint, and the new endpoint would receive the old
    # endpoint's deliveries.
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - SQLAlchemy's declared name


class WebhookDelivery(BaseWithId):
    """A queued message to an endpoint, or the result of its delivery.

    There are no foreign keys, so that deleting an endpoint with a long log is fast.
    """

    __tablename__ = "webhook_deliveries"

    endpoint_id: Mapped[int] = mapped_column(BigId)
    project_id: Mapped[int] = mapped_column(BigId, index=True)
    #: Random ID, which is the same for each attempt, so that receivers can drop duplicates.
    message_id: Mapped[str] = mapped_column(String(40))
    event: Mapped[str] = mapped_column(String(40))
    #: Key of deliveries that an endpoint receives in order. NULL if the order does not matter.
    order_key: Mapped[str | None] = mapped_column(String(40))
    body: Mapped[str] = mapped_column(Text)
    #: State: waiting, delivered or failed.
    state: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]
    #: Time at which the delivery was stored, or sent again by a user.
    queued_at: Mapped[datetime]
    #: Earliest time of the next attempt. NULL unless the delivery is queued.
    next_try_at: Mapped[datetime | None]
    #: Number of attempts since the delivery was queued, and the time of the last attempt.
    tries: Mapped[int] = mapped_column(Integer, default=0)
    last_try_at: Mapped[datetime | None]
    #: Status code of the last response.
    status_code: Mapped[int | None] = mapped_column(SmallInteger)
    response: Mapped[str | None] = mapped_column(Text)
    #: Duration of the last attempt in milliseconds.
    duration: Mapped[int | None]
    error: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        Index("ix_webhook_deliveries_endpoint_id_id", "endpoint_id", "id"),
        build_partial_index(
            "ix_webhook_deliveries_due", "endpoint_id", "next_try_at", "id", where=_IS_WAITING
        ),
        build_partial_index(
            "ix_webhook_deliveries_order", "endpoint_id", "order_key", "id", where=_IS_WAITING
        ),
    )


class WebhookIncidentChange(BaseWithId):
    """A change to an incident that has to be sent to the webhooks of its project.

    A trigger adds the row in the transaction of the change (migration 0051). There are no foreign
    keys.
    """

    __tablename__ = "webhook_incident_changes"

    project_id: Mapped[int] = mapped_column(BigId)
    incident_id: Mapped[int] = mapped_column(BigId)
    #: Kind: opened, acknowledged, resolved or reopened.
    kind: Mapped[str] = mapped_column(String(16))
    #: Time according to the database's clock.
    created_at: Mapped[datetime]
    #: Earliest time of the next attempt after a failure.
    next_try_at: Mapped[datetime | None]

    __table_args__ = (Index("ix_webhook_incident_changes_incident_id_id", "incident_id", "id"),)
