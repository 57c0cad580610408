"""Tokens that act for a user. Only keyed hashes are kept."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class AccessToken(Base):
    """An access token and the refresh token issued with it (RFC 6749 section 1.4, 1.5)."""

    __tablename__ = "access_tokens"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    #: The grant that this pair descends from.
    authorization_id: Mapped[int | None] = mapped_column(
        ForeignKey("authorizations.id", ondelete="CASCADE"), index=True
    )
    application_id: Mapped[int | None] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), index=True
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    refresh_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: Of the access token; the refresh token outlives it. Empty: never.
    expires_at: Mapped[datetime | None] = mapped_column(index=True)
    #: The pair is dead: rotated, revoked, or its family was.
    revoked_at: Mapped[datetime | None] = mapped_column(index=True)
    #: It died by being refreshed, at this moment.
    refreshed_at: Mapped[datetime | None]


class PersonalAccessToken(Base):
    """A token that a user made for their own scripts."""

    __tablename__ = "personal_access_tokens"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(255))
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
