"""Registered OAuth clients and their secrets."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, LargeBinary, String, Text, false
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
    #: Exactly as registered.
    redirect_uris: Mapped[list[str]] = mapped_column(JSON)
    #: Space-separated, in the order of the scope table.
    scopes: Mapped[str] = mapped_column(Text)
    #: Whether it is a confidential client (RFC 6749 section 2.1).
    confidential: Mapped[bool] = mapped_column(default=True)
    require_pkce: Mapped[bool] = mapped_column(default=False)
    #: Trusted by an administrator; its users are not asked for consent.
    trusted: Mapped[bool] = mapped_column(default=False)
    #: Belongs to the instance and not to its owner; managed by all administrators.
    is_instance_wide: Mapped[bool] = mapped_column(default=False)
    #: Issue refresh tokens in the device and password grants as well.
    refresh_for_devices: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    #: Client metadata of dynamic registration (RFC 7591); empty for all others.
    client_metadata: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    #: Keyed hash of its registration access token (RFC 7592).
    registration_digest: Mapped[bytes | None] = mapped_column(
        LargeBinary(32), unique=True, index=True
    )
    #: When that hash was made; NULL: with the application.
    keyed_at: Mapped[datetime | None]
    #: Whether its tokens must be DPoP-bound (RFC 9449).
    require_dpop: Mapped[bool] = mapped_column(default=False)
    #: Written for GitLab: `iss` (RFC 9207) in an authorization response would be an error to it.
    omit_iss: Mapped[bool] = mapped_column(default=False, server_default=false())
    name_key: Mapped[str | None] = folded()


keep_folded(Application.name, Application.name_key)


class ApplicationSecret(Base):
    """A valid client secret; only its keyed hash is stored."""

    __tablename__ = "application_secrets"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    application_id: Mapped[int] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), index=True
    )
    digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]
    #: Set when a newer secret was issued; until then both are valid.
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    #: When the keyed hash was made; NULL: with the secret.
    keyed_at: Mapped[datetime | None]
