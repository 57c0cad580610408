"""The audit log, its seals, and where its events are sent."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Integer, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId, Numbered, partial_index, refers_to
from models.destination import Destination


def _of_place(column: str) -> Index:
    name = f"ix_audit_events_{column}_id"
    return partial_index(name, column, "id", where=f"{column} IS NOT NULL")


class AuditEvent(Numbered):
    """An audit event: the actor, the action, the account concerned and the source.

    Only changed by the erasure of a person, and only removed for its age.
    """

    __tablename__ = "audit_events"

    created_at: Mapped[datetime] = mapped_column(index=True)
    #: The kind: `sign_in.succeeded`, `token.revoked`, …
    kind: Mapped[str] = mapped_column(String(64))
    #: The actor; the name is kept when the account is deleted. NULL: the service itself.
    actor_id: Mapped[int | None] = refers_to("users")
    actor_name: Mapped[str] = mapped_column(String(255))
    #: The account that it concerns, whose owner may read it.
    user_id: Mapped[int | None] = refers_to("users")
    #: The project or the group that it concerns, which may be deleted; found by its path.
    project_id: Mapped[int | None] = mapped_column(BigId)
    group_id: Mapped[int | None] = mapped_column(BigId)
    #: The object: the name of an application, a token, a setting.
    subject: Mapped[str] = mapped_column(String(255))
    details: Mapped[dict[str, Any]] = mapped_column(JSON)
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    request_id: Mapped[str | None] = mapped_column(String(64))
    #: Its seal, set within a minute after it was written, and its keyed hash.
    seal_id: Mapped[int | None] = mapped_column(BigId, index=True)
    digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    #: The keyed hash after the erasure of a person, which includes the former digest.
    erased_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))

    __table_args__ = (
        Index("ix_audit_events_user_id_id", "user_id", "id"),
        Index("ix_audit_events_actor_id_id", "actor_id", "id"),
        Index("ix_audit_events_kind_id", "kind", "id"),
        Index("ix_audit_events_subject_id", "subject", "id"),
        Index("ix_audit_events_address_id", "address", "id"),
        _of_place("project_id"),
        _of_place("group_id"),
    )


class AuditSeal(Base):
    """A seal: a keyed hash of some events of one day and of the seal before it."""

    __tablename__ = "audit_seals"

    #: 1, 2, 3 … without gaps.
    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    sealed_at: Mapped[datetime]
    #: The time of its newest event, which determines its age.
    newest_at: Mapped[datetime] = mapped_column(index=True)
    event_count: Mapped[int]
    #: A keyed hash of the digests of its events, in the order of their ids.
    events_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: A keyed hash of all the above and of the seal before it.
    mac: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: Set when its events were pruned for their age; it cannot be forged without the key.
    pruned_mac: Mapped[bytes | None] = mapped_column(LargeBinary(32))


class AuditKey(Base):
    """The key of all seals, encrypted with SECRET_KEY and kept when that changes."""

    __tablename__ = "audit_keys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class AuditStream(Destination):
    """A destination that gets every audit event by HTTP, and the state of its delivery."""

    __tablename__ = "audit_streams"
    # SQLite would use the number of a deleted destination again, and its events with it.
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - SQLAlchemy's declared name

    #: Events that waited too long and were given up.
    dropped: Mapped[int] = mapped_column(BigId, default=0)
    last_dropped_at: Mapped[datetime | None]


class AuditStreamEntry(Numbered):
    """An event that waits for one destination; deleted when it was delivered.

    A trigger on `audit_events` adds one for each destination in the event's own transaction. There
    are no foreign keys: deleting a destination must not fail an event that is stored meanwhile.
    """

    __tablename__ = "audit_stream_entries"

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
