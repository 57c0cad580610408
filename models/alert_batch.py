"""Changes of the status of many alerts at once, and what undoes them; saved filters of lists."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class AlertBatch(Base):
    """A status that a user gave to several alerts: selected ones, or all that match a filter."""

    __tablename__ = "alert_batches"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    #: NULL for alerts of all projects of the user.
    project_id: Mapped[int | None] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    #: The new status.
    status: Mapped[str] = mapped_column(String(16))
    #: The arguments of the list that the user came from.
    list_query: Mapped[str] = mapped_column(Text, default="")
    #: What `domain.alerts.handling.batches` stores of the filter; NULL for selected alerts.
    filter: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Alerts with a higher id opened after the user confirmed, and are left alone.
    newest_alert_id: Mapped[int] = mapped_column(BigInteger, default=0)
    #: Where the next slice begins; NULL for the first one.
    cursor: Mapped[str | None] = mapped_column(String(255))
    #: The number that matched when the user confirmed; NULL if there were too many to count.
    matched: Mapped[int | None]
    #: The number of alerts that have another status through it,
    changed: Mapped[int] = mapped_column(default=0)
    #: and of those that could not get it.
    left: Mapped[int] = mapped_column(default=0)
    #: While it is undone: the number that have their status again,
    restored: Mapped[int] = mapped_column(default=0)
    #: of those that somebody changed since,
    kept: Mapped[int] = mapped_column(default=0)
    #: and the last alert of the slice before.
    undone_to: Mapped[int] = mapped_column(BigInteger, default=0)
    #: running, done, undoing or undone.
    state: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_alert_batches_state_id", "state", "id"),
        Index("ix_alert_batches_created_at", "created_at"),
    )


class AlertBatchItem(Base):
    """An alert that a batch changed, as it was before.

    There is no foreign key to the alert, which may be deleted meanwhile.
    """

    __tablename__ = "alert_batch_items"

    batch_id: Mapped[int] = mapped_column(
        ForeignKey("alert_batches.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    alert_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    old_status: Mapped[str] = mapped_column(String(16))
    old_ended_at: Mapped[datetime | None]
    #: The entry of the activity that says so: with a later one, somebody changed the status since.
    note_id: Mapped[int] = mapped_column(BigInteger)


class SavedAlertFilter(Base):
    """The search, filters and order of a list of alerts, under a name."""

    __tablename__ = "saved_alert_filters"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    #: NULL for the list of all projects.
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    #: The arguments of the list's address.
    query: Mapped[str] = mapped_column(Text)
    #: Whether all members who see the project's alerts have it.
    is_shared: Mapped[bool] = mapped_column(default=False, server_default=false())
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_saved_alert_filters_user_id_project_id", "user_id", "project_id"),
        Index("ix_saved_alert_filters_project_id_is_shared", "project_id", "is_shared"),
    )
