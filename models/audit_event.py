"""What happened that somebody may have to answer for."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class AuditEvent(Base):
    """One event: who did what to whose account, from where.

    Never changed but for erasing a person, and only removed for its age.
    """

    __tablename__ = "audit_events"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    created_at: Mapped[datetime] = mapped_column(index=True)
    #: What happened: `sign_in.succeeded`, `token.revoked`, …
    kind: Mapped[str] = mapped_column(String(64))
    #: Who did it; the name stays when the account is gone. Empty: the service itself.
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    actor_name: Mapped[str] = mapped_column(String(255))
    #: Whose account it concerns, and who may therefore read it.
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    #: What it was done to, in words: the name of an application, a token, a setting.
    subject: Mapped[str] = mapped_column(String(255))
    details: Mapped[dict[str, Any]] = mapped_column(JSON)
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    request_id: Mapped[str | None] = mapped_column(String(64))
    #: The seal that it is under, a minute after it was written; and the keyed hash of what it said.
    seal_id: Mapped[int | None] = mapped_column(BigId, index=True)
    digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    #: The keyed hash of what it says since a person was erased from it, and of its former digest.
    erased_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))

    __table_args__ = (
        Index("ix_audit_events_user_id_id", "user_id", "id"),
        Index("ix_audit_events_actor_id_id", "actor_id", "id"),
        Index("ix_audit_events_kind_id", "kind", "id"),
    )
