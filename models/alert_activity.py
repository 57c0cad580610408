"""The history of an alert: reports of senders, and actions of users."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, SmallInteger, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Occurrence(Base):
    """An item of a delivery with the alert that it opened or changed; deleted with the delivery."""

    __tablename__ = "occurrences"

    alert_id: Mapped[int] = mapped_column(
        ForeignKey("alerts.id", ondelete="CASCADE"), primary_key=True
    )
    delivery_id: Mapped[int] = mapped_column(
        ForeignKey("deliveries.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    #: Index among the items of the body.
    item_index: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    #: The rank of its `domain.alerts.storing.lifecycle.Action`.
    action: Mapped[int] = mapped_column(SmallInteger)
    #: Whether it is a late report of a resolved alert: it was counted, and opened nothing.
    is_late: Mapped[bool] = mapped_column(default=False, server_default=false())


class AlertNote(Base):
    """An entry of an alert's activity: an action or note of a user, or a change by a report."""

    __tablename__ = "alert_notes"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    alert_id: Mapped[int] = mapped_column(ForeignKey("alerts.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    #: Kept when the account is deleted.
    user_name: Mapped[str] = mapped_column(String(255))
    #: note, status, assignee or page.
    kind: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text)
    #: From where the user acted, if it was no page and no token: in words, as in a sentence.
    via: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime]
    #: Old and new values by column, if a report changed them. A trigger writes it (migration 0017),
    #: and the entry is deleted with the delivery.
    changes: Mapped[dict[str, list[Any]] | None] = mapped_column(JSON(none_as_null=True))
    delivery_id: Mapped[int | None] = mapped_column(
        ForeignKey("deliveries.id", ondelete="CASCADE"), index=True
    )


class Assignment(Base):
    """The assignee of an alert."""

    __tablename__ = "assignments"

    alert_id: Mapped[int] = mapped_column(
        ForeignKey("alerts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
