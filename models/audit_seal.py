"""The hash chain that protects the audit log."""

from datetime import datetime

from sqlalchemy import LargeBinary, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


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
