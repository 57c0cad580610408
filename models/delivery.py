"""Deliveries: the requests to receivers, with their bodies as received."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, SmallInteger, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Delivery(Base):
    """One request to a receiver and its outcome.

    The body is stored here only; an alert refers to the delivery whose report it shows.
    """

    __tablename__ = "deliveries"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    #: NULL once the integration was deleted; its alerts still need their payload.
    integration_id: Mapped[int | None] = mapped_column(
        ForeignKey("integrations.id", ondelete="SET NULL")
    )
    #: The format of the body: http or prometheus.
    format: Mapped[str] = mapped_column(String(16))
    #: The mapping that it was read with (`domain.alerts.reading.mapping`); NULL if unknown.
    mapping: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Whether a user sent it from the page of the integration.
    is_test: Mapped[bool] = mapped_column(default=False)
    received_at: Mapped[datetime]
    #: HTTP status code of the response.
    status_code: Mapped[int] = mapped_column(SmallInteger)
    #: The reason of a refusal, in a sentence.
    reason: Mapped[str | None] = mapped_column(Text)
    sender: Mapped[str] = mapped_column(String(64))
    #: In bytes as received; also set if the body was refused unread and is not stored.
    size: Mapped[int]
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    opened: Mapped[int] = mapped_column(default=0)
    joined: Mapped[int] = mapped_column(default=0)
    resolved: Mapped[int] = mapped_column(default=0)
    #: One sentence for each item that was refused and each guess, such as an unreadable time.
    parse_warnings: Mapped[list[str]] = mapped_column("remarks", JSON, default=list)
    truncated_alerts: Mapped[int] = mapped_column(default=0)
    #: The number of items that a rule of the mapping dropped.
    dropped: Mapped[int] = mapped_column(default=0, server_default="0")
    #: From the arrival of the request until this row was written, in microseconds.
    duration: Mapped[int | None]
    #: The number of later refusals like this one that are counted here instead of stored.
    skipped: Mapped[int] = mapped_column(default=0)
    #: Of a refused request, as its client calls itself.
    user_agent: Mapped[str | None] = mapped_column(String(255))

    #: The delivery as which a refused one was stored after all.
    replayed_as: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        Index("ix_deliveries_integration_id_id", "integration_id", "id"),
        Index(
            "ix_deliveries_refused",
            *("integration_id", "id"),
            postgresql_where=text("status_code >= 300"),
            sqlite_where=text("status_code >= 300"),
        ),
        Index("ix_deliveries_project_id", "project_id"),
    )
