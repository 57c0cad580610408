"""Keys that sign ID tokens."""

from datetime import datetime

from sqlalchemy import JSON, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class SigningKey(Base):
    """An RSA key pair, published from before its first to after its last signature."""

    __tablename__ = "signing_keys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    #: JWK thumbprint (RFC 7638).
    kid: Mapped[str] = mapped_column(String(64), unique=True)
    #: The published public JWK (RFC 7517).
    public_jwk: Mapped[dict[str, str]] = mapped_column(JSON)
    #: The private JWK, encrypted.
    private_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: When a newer key took over; it stays published until its ID tokens have expired.
    retired_at: Mapped[datetime | None]
