"""Device authorization requests (RFC 8628)."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class DeviceAuthorization(Base):
    """A device authorization request, until its code is redeemed or pruned."""

    __tablename__ = "device_authorizations"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    application_id: Mapped[int] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), index=True
    )
    scopes: Mapped[str] = mapped_column(Text)
    device_code_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    user_code_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    #: Seconds between polls; raised by 5 with each early poll (section 3.5).
    interval: Mapped[int] = mapped_column(SmallInteger)
    last_polled_at: Mapped[datetime | None]
    #: The device's IP address and user agent, for the user who approves it.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: The user who opened the request; only they can decide it.
    user_id: Mapped[int | None] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), index=True
    )
    #: When the approving user last authenticated.
    auth_time: Mapped[datetime | None]
    approved_at: Mapped[datetime | None]
    denied_at: Mapped[datetime | None]
    redeemed_at: Mapped[datetime | None]
