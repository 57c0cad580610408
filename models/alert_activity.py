"""What happened to an alert: what senders reported of it, and what people did with it."""

from datetime import datetime

from sqlalchemy import ForeignKey, SmallInteger, String, Text
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
    #: What the item did, by its rank in `domain.alerts.lifecycle.Action`.
    action: Mapped[int] = mapped_column(SmallInteger)


class AlertNote(Base):
    """Something that a person did with an alert, or wrote about it."""

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


class Assignment(Base):
    """Who looks after an alert."""

    __tablename__ = "assignments"

    alert_id: Mapped[int] = mapped_column(
        ForeignKey("alerts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
