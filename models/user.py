"""People who sign in, and the browsers in which they are signed in."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, LargeBinary, String, func
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class User(Base):
    """An account. Names and e-mail addresses are unique whatever their case."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    username: Mapped[str] = mapped_column(String(255))
    email: Mapped[str] = mapped_column(String(255))
    name: Mapped[str] = mapped_column(String(255))
    #: Argon2id, in PHC string form.
    password_hash: Mapped[str] = mapped_column(String(255))
    is_admin: Mapped[bool] = mapped_column(default=False)
    #: active, locked (by an administrator or by guessing) or blocked.
    state: Mapped[str] = mapped_column(String(16), default="active")
    created_at: Mapped[datetime]
    last_sign_in_at: Mapped[datetime | None]
    password_changed_at: Mapped[datetime | None]

    __table_args__ = (
        Index("uq_users_username_lower", func.lower(username), unique=True),
        Index("uq_users_email_lower", func.lower(email), unique=True),
    )


class SignIn(Base):
    """One browser in which a user is signed in; deleting the row signs it out."""

    __tablename__ = "sign_ins"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    token_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    #: When the user proved who they are: OpenID Connect's auth_time.
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
