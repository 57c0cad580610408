"""Accounts, their sign-ins and second factors, and guesses of passwords."""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    func,
    true,
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Numbered, belongs_to, partial_index
from models.folding import folded, keep_folded


class User(Numbered):
    """An account. Names and e-mail addresses are unique after case folding."""

    __tablename__ = "users"

    username: Mapped[str] = mapped_column(String(255))
    email: Mapped[str] = mapped_column(String(255))
    name: Mapped[str] = mapped_column(String(255))
    #: Argon2id, in PHC string form.
    password_hash: Mapped[str] = mapped_column(String(255))
    is_admin: Mapped[bool] = mapped_column(default=False)
    #: active, pending (an administrator has to approve it), deactivated (nobody used it, or an
    #: administrator said so), locked or blocked.
    state: Mapped[str] = mapped_column(String(16), default="active")
    #: human, bot (of a project or group access token), service (of an application) or erased.
    kind: Mapped[str] = mapped_column(String(16), default="human")
    #: Whether the password was set by an administrator and has to be changed.
    must_change_password: Mapped[bool] = mapped_column(default=False)
    #: By its name in the IANA database: times on their pages and in their messages are in it.
    time_zone: Mapped[str] = mapped_column(String(64), default="UTC", server_default="UTC")
    created_at: Mapped[datetime]
    last_sign_in_at: Mapped[datetime | None]
    #: When the e-mail address was shown to be theirs, by a link or by an administrator's word.
    email_confirmed_at: Mapped[datetime | None]
    password_changed_at: Mapped[datetime | None]
    #: When it was noticed that nobody uses the account; NULL if somebody does.
    idle_noticed_at: Mapped[datetime | None]
    #: The number of rows on a page of lists; NULL for that of the instance.
    page_size: Mapped[int | None] = mapped_column(SmallInteger)
    username_key: Mapped[str | None] = folded()
    #: NULL for accounts whose e-mail address collided with an older one's when folding began.
    email_key: Mapped[str | None] = folded()
    name_key: Mapped[str | None] = folded()

    __table_args__ = (
        Index("uq_users_username_lower", func.lower(username), unique=True),
        Index("uq_users_email_lower", func.lower(email), unique=True),
        Index("uq_users_username_key", username_key, unique=True),
        Index("uq_users_email_key", email_key, unique=True),
        Index("ix_users_kind_state_id", "kind", "state", "id"),
        # The few that administrators look for among many.
        partial_index("ix_users_administrators", "id", where="kind = 'human' AND is_admin"),
        partial_index("ix_users_not_active", "state", "id", where="state <> 'active'"),
        partial_index(
            "ix_users_unconfirmed", "id", where="kind = 'human' AND email_confirmed_at IS NULL"
        ),
    )


keep_folded(User.username, User.username_key)
keep_folded(User.email, User.email_key)
keep_folded(User.name, User.name_key)


class EmailConfirmation(Base):
    """An e-mail address that its user has to confirm: a new one, or that of the account."""

    __tablename__ = "email_confirmations"

    #: One for each user: a later one replaces it, and its link with it.
    user_id: Mapped[int] = belongs_to("users", primary_key=True, autoincrement=False)
    email: Mapped[str] = mapped_column(String(255))
    token_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    created_at: Mapped[datetime] = mapped_column(index=True)


class Bot(Numbered):
    """The group or project of a bot's access token, of which it is a member."""

    __tablename__ = "bots"

    user_id: Mapped[int] = belongs_to("users", unique=True)
    group_id: Mapped[int | None] = belongs_to("groups", index=True)
    project_id: Mapped[int | None] = belongs_to("projects", index=True)

    __table_args__ = (
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )


class SignIn(Numbered):
    """A browser in which a user is signed in; deleting the row signs it out."""

    __tablename__ = "sign_ins"

    token_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    user_id: Mapped[int] = belongs_to("users", index=True)
    #: When the user authenticated: OpenID Connect's auth_time.
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: Authentication methods (RFC 8176, separated by spaces): OpenID Connect's amr.
    methods: Mapped[str] = mapped_column(String(64), default="pwd")
    #: Of the account at a provider that it was made through. No foreign key, so that deleting one
    #: scans no table: what removes an identity ends its sign-ins by their user.
    identity_id: Mapped[int | None] = mapped_column(BigInteger)
    #: Whether the user is known to have authenticated at `created_at`: a provider may not say when.
    is_proof: Mapped[bool] = mapped_column(default=True, server_default=true())


class KeptPage(Numbered):
    """The URL of a page to return to, too long to be a part of another URL."""

    __tablename__ = "kept_pages"

    #: Keyed hash of the handle that the browser carries.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    #: The path with the query.
    path: Mapped[str] = mapped_column(Text)
    expires_at: Mapped[datetime] = mapped_column(index=True)


class TotpDevice(Numbered):
    """The authenticator app of a user (RFC 6238)."""

    __tablename__ = "totp_devices"

    user_id: Mapped[int] = belongs_to("users", unique=True)
    #: Encrypted and not hashed, because the service computes codes from it.
    seed_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: NULL until the user has entered a valid code.
    confirmed_at: Mapped[datetime | None]
    #: Time step of the last accepted code, for single use (RFC 6238 section 5.2).
    last_used_step: Mapped[int | None] = mapped_column(BigInteger)


class RecoveryCode(Numbered):
    """A single-use recovery code."""

    __tablename__ = "recovery_codes"

    user_id: Mapped[int] = belongs_to("users", index=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class Passkey(Numbered):
    """A WebAuthn credential of a user."""

    __tablename__ = "passkeys"

    user_id: Mapped[int] = belongs_to("users", index=True)
    name: Mapped[str] = mapped_column(String(255))
    credential_id: Mapped[bytes] = mapped_column(LargeBinary(1023), unique=True)
    #: COSE key, as received from the authenticator.
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[int] = mapped_column(BigInteger)
    #: Transports of the authenticator, separated by spaces.
    transports: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


class AttemptCount(Base):
    """Attempts for one subject (an account, an IP address) within a window of time.

    In the database, so that all processes share the limit.
    """

    __tablename__ = "attempt_counts"

    #: Keyed hash of the subject, so that the table contains no names.
    subject: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    count: Mapped[int]
    window_ends_at: Mapped[datetime] = mapped_column(index=True)
