"""What proves who a user is besides the password: codes of an app, recovery codes, passkeys."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class TotpDevice(Base):
    """The authenticator app of a user (RFC 6238)."""

    __tablename__ = "totp_devices"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    #: Encrypted: the service must compute codes itself.
    seed_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: Empty until the user has shown one good code.
    confirmed_at: Mapped[datetime | None]
    #: Time step of the last accepted code: a code is good once (RFC 6238 section 5.2).
    last_used_step: Mapped[int | None] = mapped_column(BigInteger)


class RecoveryCode(Base):
    """A code on paper for the day on which the other factors are lost; good once."""

    __tablename__ = "recovery_codes"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class Passkey(Base):
    """A WebAuthn credential of a user."""

    __tablename__ = "passkeys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(255))
    credential_id: Mapped[bytes] = mapped_column(LargeBinary(1023), unique=True)
    #: In COSE form, as the authenticator gave it.
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[int] = mapped_column(BigInteger)
    #: Space-separated hints of how a browser reaches the authenticator.
    transports: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
