"""What shows that nobody changed or removed an audit event."""

from datetime import datetime

from sqlalchemy import LargeBinary, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class AuditSeal(Base):
    """A link of the chain: some events of one day, and the seal before it, under one keyed hash."""

    __tablename__ = "audit_seals"

    #: 1, 2, 3 … without a gap.
    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    sealed_at: Mapped[datetime]
    #: When the newest of its events was written: from then on it grows old.
    newest_at: Mapped[datetime] = mapped_column(index=True)
    event_count: Mapped[int]
    #: A keyed hash of the digests of its events, in the order of their ids.
    events_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: A keyed hash of all the above and of the seal before it.
    mac: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: Set by who removed its events because of their age; nobody without the key can make it.
    pruned_mac: Mapped[bytes | None] = mapped_column(LargeBinary(32))


class AuditKey(Base):
    """The key of all seals. It outlives a change of SECRET_KEY, which only encrypts it."""

    __tablename__ = "audit_keys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
