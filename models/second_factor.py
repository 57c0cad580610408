"""Second factors of users: authenticator apps, recovery codes, passkeys."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class TotpDevice(Base):
    """The authenticator app of a user (RFC 6238)."""

    __tablename__ = "totp_devices"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    #: Encrypted and not hashed, because the service computes codes from it.
    seed_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: NULL until the user has entered a valid code.
    confirmed_at: Mapped[datetime | None]
    #: Time step of the last accepted code, for single use (RFC 6238 section 5.2).
    last_used_step: Mapped[int | None] = mapped_column(BigInteger)


class RecoveryCode(Base):
    """A single-use recovery code."""

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
    #: COSE key, as received from the authenticator.
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[int] = mapped_column(BigInteger)
    #: Transports of the authenticator, separated by spaces.
    transports: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
