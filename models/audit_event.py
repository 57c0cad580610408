"""The audit log."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


def _of_place(column: str) -> Index:
    has_place = text(f"{column} IS NOT NULL")
    name = f"ix_audit_events_{column}_id"
    return Index(name, column, "id", postgresql_where=has_place, sqlite_where=has_place)


class AuditEvent(Base):
    """An audit event: the actor, the action, the account concerned and the source.

    Only changed by the erasure of a person, and only removed for its age.
    """

    __tablename__ = "audit_events"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    created_at: Mapped[datetime] = mapped_column(index=True)
    #: The kind: `sign_in.succeeded`, `token.revoked`, …
    kind: Mapped[str] = mapped_column(String(64))
    #: The actor; the name is kept when the account is deleted. NULL: the service itself.
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    actor_name: Mapped[str] = mapped_column(String(255))
    #: The account that it concerns, whose owner may read it.
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
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
