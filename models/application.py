"""Registered OAuth clients and their secrets."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId
from models.folding import folded, keep_folded


class Application(Base):
    """A registered client (RFC 6749 section 2); `uid` is its client_id."""

    __tablename__ = "applications"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    uid: Mapped[str] = mapped_column(String(64), unique=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(255))
    #: Exactly the strings that were registered.
    redirect_uris: Mapped[list[str]] = mapped_column(JSON)
    #: Space-separated, in the order of the scope table.
    scopes: Mapped[str] = mapped_column(Text)
    #: Able to keep a secret (RFC 6749 section 2.1).
    confidential: Mapped[bool] = mapped_column(default=True)
    require_pkce: Mapped[bool] = mapped_column(default=False)
    #: Registered by an administrator; its users are not asked for consent.
    trusted: Mapped[bool] = mapped_column(default=False)
    #: Of the instance rather than of its owner: kept by all administrators.
    is_instance_wide: Mapped[bool] = mapped_column(default=False)
    #: Give refresh tokens to devices and password sign-ins as well.
    refresh_for_devices: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    #: What a client that registered itself said of itself (RFC 7591); empty for all others.
    client_metadata: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    #: Keyed hash of its registration access token (RFC 7592).
    registration_digest: Mapped[bytes | None] = mapped_column(
        LargeBinary(32), unique=True, index=True
    )
    #: When that hash was made; empty: with the application.
    keyed_at: Mapped[datetime | None]
    #: Its tokens must be bound to a key (RFC 9449).
    require_dpop: Mapped[bool] = mapped_column(default=False)
    name_key: Mapped[str | None] = folded()


keep_folded(Application.name, Application.name_key)


class ApplicationSecret(Base):
    """A live client secret; only its keyed hash is kept."""

    __tablename__ = "application_secrets"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    application_id: Mapped[int] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), index=True
    )
    digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]
    #: Set when a newer secret was made: until then both are good.
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    #: When the keyed hash was made; empty: with the secret.
    keyed_at: Mapped[datetime | None]
