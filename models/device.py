"""Devices that wait for somebody to approve them (RFC 8628)."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class DeviceAuthorization(Base):
    """One device's request, from its first word until its code is redeemed or forgotten."""

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
    #: Seconds between polls; grows by 5 with each poll that comes too early (section 3.5).
    interval: Mapped[int] = mapped_column(SmallInteger)
    last_polled_at: Mapped[datetime | None]
    #: Where the device asked from: the person who approves it should recognize it.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: Who opened the request; nobody else can decide it from then on.
    user_id: Mapped[int | None] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), index=True
    )
    #: When the approving user had last proved who they are.
    auth_time: Mapped[datetime | None]
    approved_at: Mapped[datetime | None]
    denied_at: Mapped[datetime | None]
    redeemed_at: Mapped[datetime | None]
