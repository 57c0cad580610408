"""Requests that carried an Idempotency-Key, with their responses."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class IdempotentRequest(Base):
    """A request that is carried out once, however often it is sent."""

    __tablename__ = "idempotent_requests"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    #: SHA-256 of the caller and its key.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    #: Keyed hash of method, URL and body.
    request_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: None while the request is under way.
    status: Mapped[int | None]
    response_ciphertext: Mapped[str | None] = mapped_column(Text)
    claimed_at: Mapped[datetime] = mapped_column(index=True)
