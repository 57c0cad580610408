"""Grants of users to applications, and remembered consents."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class Authorization(Base):
    """A grant of a user: its authorization code, and the family of tokens issued from it.

    The code (RFC 6749 section 4.1.2) is in the row itself, so that its redemption is one UPDATE,
    and the tokens of the grant can be revoked by this row's id.
    """

    __tablename__ = "authorizations"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    application_id: Mapped[int] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), index=True
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    scopes: Mapped[str] = mapped_column(Text)
    redirect_uri: Mapped[str | None] = mapped_column(Text)
    #: S256 code challenge (RFC 7636), or NULL.
    code_challenge: Mapped[str | None] = mapped_column(String(128))
    #: OpenID Connect: returned in the ID token.
    nonce: Mapped[str | None] = mapped_column(Text)
    #: When the user last authenticated.
    auth_time: Mapped[datetime]
    code_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    code_expires_at: Mapped[datetime | None] = mapped_column(index=True)
    code_used_at: Mapped[datetime | None]
    #: Thumbprint of the DPoP key that is required to redeem the code (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class Consent(Base):
    """The scopes that a user has approved for an application before."""

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
