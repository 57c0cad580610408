"""Access, refresh and personal access tokens; only keyed hashes are stored."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId, UTCDateTimeOrNever
from models.folding import folded, keep_folded


class AccessToken(Base):
    """An access token and the refresh token issued with it (RFC 6749 section 1.4, 1.5)."""

    __tablename__ = "access_tokens"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    #: The grant that this pair was issued from.
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
    #: Expiry of the access token; the refresh token outlives it. NULL: never.
    expires_at: Mapped[datetime | None] = mapped_column(index=True)
    #: When the pair was rotated or revoked, or its family was.
    revoked_at: Mapped[datetime | None] = mapped_column(index=True)
    #: When it was refreshed.
    refreshed_at: Mapped[datetime | None]
    #: The IP address that requested it.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: Last use of the access token, to the minute.
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    #: Thumbprint of the DPoP key that the token is bound to (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    #: It was an administrator's before there was the scope `admin_mode`, and keeps what it had.
    keeps_admin_mode: Mapped[bool] = mapped_column(default=False, server_default=false())


class PersonalAccessToken(Base):
    """A token for scripts: of a user, or of the bot of a project or a group."""

    __tablename__ = "personal_access_tokens"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(255))
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: None: never, which releases before 16.0 allow.
    expires_at: Mapped[datetime | None] = mapped_column(UTCDateTimeOrNever, nullable=False)
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(Text, default="")
    #: The id of the first token of a chain of rotations.
    family_id: Mapped[int | None] = mapped_column(BigInteger, index=True)
    #: When the keyed hash was made; NULL: with the token.
    keyed_at: Mapped[datetime | None]
    name_key: Mapped[str | None] = folded()
    #: The grant of the application that created it, if any; it ends with the grant.
    authorization_id: Mapped[int | None] = mapped_column(
        ForeignKey("authorizations.id", ondelete="CASCADE"), index=True
    )
    #: Thumbprint of the DPoP key that the token is bound to (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    #: It was an administrator's before there was the scope `admin_mode`, and keeps what it had.
    keeps_admin_mode: Mapped[bool] = mapped_column(default=False, server_default=false())


keep_folded(PersonalAccessToken.name, PersonalAccessToken.name_key)
