"""People who sign in, and the browsers in which they are signed in."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, func
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId
from models.folding import folded, keep_folded


class User(Base):
    """An account. Names and e-mail addresses are unique whatever their spelling."""

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
    #: human, or the bot that a project's or group's access token acts as.
    kind: Mapped[str] = mapped_column(String(16), default="human")
    #: Made for them by somebody else: to be changed at the next sign-in.
    must_change_password: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    last_sign_in_at: Mapped[datetime | None]
    password_changed_at: Mapped[datetime | None]
    username_key: Mapped[str | None] = folded()
    #: Empty, too, for who came second with an address when addresses were first folded so.
    email_key: Mapped[str | None] = folded()
    name_key: Mapped[str | None] = folded()

    __table_args__ = (
        Index("uq_users_username_lower", func.lower(username), unique=True),
        Index("uq_users_email_lower", func.lower(email), unique=True),
        Index("uq_users_username_key", username_key, unique=True),
        Index("uq_users_email_key", email_key, unique=True),
    )


keep_folded(User.username, User.username_key)
keep_folded(User.email, User.email_key)
keep_folded(User.name, User.name_key)


class Bot(Base):
    """The place whose access token a user of kind bot stands for; it is a member there."""

    __tablename__ = "bots"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    group_id: Mapped[int | None] = mapped_column(
        ForeignKey("groups.id", ondelete="CASCADE"), index=True
    )
    project_id: Mapped[int | None] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )

    __table_args__ = (
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
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
    #: Space-separated names of RFC 8176 for how the user proved it: OpenID Connect's amr.
    methods: Mapped[str] = mapped_column(String(64), default="pwd")
