"""Pushed authorization requests, and DPoP proofs that were used."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class PushedRequest(Base):
    """The parameters of a request_uri (RFC 9126)."""

    __tablename__ = "pushed_requests"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    application_id: Mapped[int] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), index=True
    )
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class SeenProof(Base):
    """A used DPoP proof, which is not accepted again (RFC 9449 section 11.1)."""

    __tablename__ = "seen_proofs"

    #: Keyed hash of the key's thumbprint and the proof's jti.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(index=True)
