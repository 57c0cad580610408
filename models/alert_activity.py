"""What happened to an alert: what senders reported of it, and what people did with it."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, SmallInteger, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Occurrence(Base):
    """One item of one delivery and the alert that it touched; gone when the delivery is."""

    __tablename__ = "occurrences"

    alert_id: Mapped[int] = mapped_column(
        ForeignKey("alerts.id", ondelete="CASCADE"), primary_key=True
    )
    delivery_id: Mapped[int] = mapped_column(
        ForeignKey("deliveries.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    #: Position among the items of the body.
    item_index: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    #: What the item did, by its rank in `domain.alerts.storing.lifecycle.Action`.
    action: Mapped[int] = mapped_column(SmallInteger)
    #: Whether it is a report of what was over already: it was counted, and opened nothing.
    is_late: Mapped[bool] = mapped_column(default=False, server_default=false())


class AlertNote(Base):
    """Something that a person did with an alert, or wrote about it, or that a report changed."""

    __tablename__ = "alert_notes"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    alert_id: Mapped[int] = mapped_column(ForeignKey("alerts.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    #: The name stays when the account is gone.
    user_name: Mapped[str] = mapped_column(String(255))
    #: note, status or assignee.
    kind: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: What a report changed, old and new by the names of the columns; a trigger writes it
    #: (migration 0017), and it goes with the delivery.
    changes: Mapped[dict[str, list[Any]] | None] = mapped_column(JSON(none_as_null=True))
    delivery_id: Mapped[int | None] = mapped_column(
        ForeignKey("deliveries.id", ondelete="CASCADE"), index=True
    )


class Assignment(Base):
    """Who looks after an alert."""

    __tablename__ = "assignments"

    alert_id: Mapped[int] = mapped_column(
        ForeignKey("alerts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
