"""What a user granted to an application: each single grant, and what is remembered."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Authorization(Base):
    """One grant by one user: its code, and the family of all tokens that come from it.

    The code (RFC 6749 section 4.1.2) lives in the row itself, so that redeeming it is one
    UPDATE and revoking what it issued needs nothing but this row's id.
    """

    __tablename__ = "authorizations"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    application_id: Mapped[int] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), index=True
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    scopes: Mapped[str] = mapped_column(Text)
    redirect_uri: Mapped[str | None] = mapped_column(Text)
    #: S256 challenge of RFC 7636, or nothing.
    code_challenge: Mapped[str | None] = mapped_column(String(128))
    #: OpenID Connect: given back in the ID token.
    nonce: Mapped[str | None] = mapped_column(Text)
    #: When the user last proved who they are.
    auth_time: Mapped[datetime]
    code_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    code_expires_at: Mapped[datetime | None] = mapped_column(index=True)
    code_used_at: Mapped[datetime | None]
    #: Thumbprint of the key that must be proved when the code is redeemed (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class Consent(Base):
    """The scopes that a user has approved for an application, remembered for the next time."""

    __tablename__ = "consents"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    application_id: Mapped[int] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), index=True
    )
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("user_id", "application_id"),)
