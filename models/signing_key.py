"""Keys that sign ID tokens."""

from datetime import datetime

from sqlalchemy import JSON, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class SigningKey(Base):
    """An RSA key pair. It is published before it signs and after it has ceased to."""

    __tablename__ = "signing_keys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    #: Thumbprint after RFC 7638.
    kid: Mapped[str] = mapped_column(String(64), unique=True)
    #: The public JWK as it is published (RFC 7517).
    public_jwk: Mapped[dict[str, str]] = mapped_column(JSON)
    #: The private JWK, encrypted.
    private_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: When a newer key took over; it stays published until its last ID tokens have expired.
    retired_at: Mapped[datetime | None]
