"""What senders delivered, byte for byte."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Delivery(Base):
    """One request to a receiver and what became of it.

    The body is stored here and nowhere else; an alert names the delivery whose words it shows.
    """

    __tablename__ = "deliveries"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    #: Empty once the integration was deleted; its alerts still need their payload.
    integration_id: Mapped[int | None] = mapped_column(
        ForeignKey("integrations.id", ondelete="SET NULL")
    )
    #: http or prometheus: how the body is to be read.
    format: Mapped[str] = mapped_column(String(16))
    #: The mapping that it was read by (`domain.alerts.reading.mapping`); NULL if not known.
    mapping: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Sent by a person from the integration's page.
    is_test: Mapped[bool] = mapped_column(default=False)
    received_at: Mapped[datetime]
    #: HTTP status of our answer.
    status_code: Mapped[int] = mapped_column(SmallInteger)
    #: Why it was refused, in a sentence.
    reason: Mapped[str | None] = mapped_column(Text)
    sender: Mapped[str] = mapped_column(String(64))
    #: Size in bytes as received; a body that was refused unread has a size and no body.
    size: Mapped[int]
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    opened: Mapped[int] = mapped_column(default=0)
    joined: Mapped[int] = mapped_column(default=0)
    resolved: Mapped[int] = mapped_column(default=0)
    #: Sentences for the maintainer: times that could not be read, items that were refused.
    parse_warnings: Mapped[list[str]] = mapped_column("remarks", JSON, default=list)
    truncated_alerts: Mapped[int] = mapped_column(default=0)
    #: From the request's arrival to the moment of writing; microseconds.
    duration: Mapped[int | None]
    #: How many refusals just like this one went by without a row of their own.
    skipped: Mapped[int] = mapped_column(default=0)

    __table_args__ = (
        Index("ix_deliveries_integration_id_id", "integration_id", "id"),
        Index("ix_deliveries_project_id", "project_id"),
    )
