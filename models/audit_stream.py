"""Destinations of the audit log and the events that wait for each of them."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId
from models.destination import Destination


class AuditStream(Destination):
    """A destination that gets every audit event by HTTP, and the state of its delivery."""

    __tablename__ = "audit_streams"
    # SQLite would use the number of a deleted destination again, and its events with it.
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - SQLAlchemy's declared name

    #: Events that waited too long and were given up.
    dropped: Mapped[int] = mapped_column(BigId, default=0)
    last_dropped_at: Mapped[datetime | None]


class AuditStreamEntry(Base):
    """An event that waits for one destination; deleted when it was delivered.

    A trigger on `audit_events` adds one for each destination in the event's own transaction. There
    are no foreign keys: deleting a destination must not fail an event that is stored meanwhile.
    """

    __tablename__ = "audit_stream_entries"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    stream_id: Mapped[int] = mapped_column(BigId)
    #: The stored event; NULL for one that is streamed only, whose content is in `payload`.
    event_id: Mapped[int | None] = mapped_column(BigId)
    payload: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    #: The actor of an event that is streamed only.
    actor_id: Mapped[int | None] = mapped_column(BigId)
    #: Random; the same at each attempt, so that a receiver can drop duplicates.
    message_id: Mapped[str] = mapped_column(String(32))
    created_at: Mapped[datetime]
    #: Failed attempts.
    tries: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: When the receiver had refused it so often that later ones go before it.
    set_aside_at: Mapped[datetime | None]

    __table_args__ = (Index("ix_audit_stream_entries_stream_id_id", "stream_id", "id"),)
