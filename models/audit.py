"""The audit log, its seals, and its streams."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Integer, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BaseWithId, BigId, build_partial_index, build_set_null_foreign_key
from models.destination import Destination


def _build_partial_id_index(column: str) -> Index:
    name = f"ix_audit_events_{column}_id"
    return build_partial_index(name, column, "id", where=f"{column} IS NOT NULL")


class AuditEvent(BaseWithId):
    """An audit event: the actor, the action, the affected account and the source.

    An event is changed only when a user's data is erased, and is removed only after the retention
    period.
    """

    __tablename__ = "audit_events"

    created_at: Mapped[datetime] = mapped_column(index=True)
    #: Kind of the event, such as `sign_in.succeeded` or `token.revoked`.
    kind: Mapped[str] = mapped_column(String(64))
    #: Actor, or NULL for the service itself. The name is kept when the account is deleted.
    actor_id: Mapped[int | None] = build_set_null_foreign_key("users")
    actor_name: Mapped[str] = mapped_column(String(255))
    #: Affected account, whose owner may read the event.
    user_id: Mapped[int | None] = build_set_null_foreign_key("users")
    #: Affected project or group, which may have been deleted.
    project_id: Mapped[int | None] = mapped_column(BigId)
    group_id: Mapped[int | None] = mapped_column(BigId)
    #: Name of the affected object, such as an application, a token or a setting.
    subject: Mapped[str] = mapped_column(String(255))
    details: Mapped[dict[str, Any]] = mapped_column(JSON)
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    request_id: Mapped[str | None] = mapped_column(String(64))
    #: Seal of the event, which is added within a minute, and the keyed hash of the event.
    seal_id: Mapped[int | None] = mapped_column(BigId, index=True)
    digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    #: Keyed hash after the erasure of a user's data. It also covers the previous hash.
    erased_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))

    __table_args__ = (
        Index("ix_audit_events_user_id_id", "user_id", "id"),
        Index("ix_audit_events_actor_id_id", "actor_id", "id"),
        Index("ix_audit_events_kind_id", "kind", "id"),
        Index("ix_audit_events_subject_id", "subject", "id"),
        Index("ix_audit_events_address_id", "address", "id"),
        _build_partial_id_index("project_id"),
        _build_partial_id_index("group_id"),
    )


class AuditSeal(Base):
    """A seal: a keyed hash over some events of one day and the previous seal."""

    __tablename__ = "audit_seals"

    #: Sequence number without gaps.
    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    sealed_at: Mapped[datetime]
    #: Time of the newest event, which determines the age of the seal.
    newest_at: Mapped[datetime] = mapped_column(index=True)
    event_count: Mapped[int]
    #: Keyed hash of the digests of the events, in the order of their IDs.
    events_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: Keyed hash of the columns above and of the previous seal.
    mac: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: Keyed hash that is set when the events are pruned because of their age. It cannot be forged
    #: without the key.
    pruned_mac: Mapped[bytes | None] = mapped_column(LargeBinary(32))


class AuditKey(Base):
    """The key for all seals.

    The key is encrypted with SECRET_KEY, but stays the same when SECRET_KEY changes.
    """

    __tablename__ = "audit_keys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class AuditStream(Destination):
    """A destination that receives every audit event over HTTP, and its delivery status."""

    __tablename__ = "audit_streams"
    # SQLite would reuse the ID of a deleted destination, and the new destination would receive the
    # old destination's events.
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - SQLAlchemy's declared name

    #: Number of events that were dropped because they waited too long.
    dropped: Mapped[int] = mapped_column(BigId, default=0)
    last_dropped_at: Mapped[datetime | None]


class AuditStreamEntry(BaseWithId):
    """An event that is queued for a destination.

    A trigger on `audit_events` adds a row for each destination in the transaction of the event. The
    row is deleted once the event is delivered. There are no foreign keys: deleting a destination
    must not prevent an event from being stored at the same time.
    """

    __tablename__ = "audit_stream_entries"

    stream_id: Mapped[int] = mapped_column(BigId)
    #: Stored event, or NULL for an event that is only streamed. Its content is then in `payload`.
    event_id: Mapped[int | None] = mapped_column(BigId)
    payload: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    #: Actor of an event that is only streamed.
    actor_id: Mapped[int | None] = mapped_column(BigId)
    #: Random ID, which is the same for each attempt, so that receivers can drop duplicates.
    message_id: Mapped[str] = mapped_column(String(32))
    created_at: Mapped[datetime]
    #: Number of failed attempts.
    tries: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: Time from which later events are sent first, because the receiver rejected this event
    #: repeatedly.
    set_aside_at: Mapped[datetime | None]

    __table_args__ = (Index("ix_audit_stream_entries_stream_id_id", "stream_id", "id"),)
