"""Accounts, sign-ins, second factors, and counts of sign-in attempts."""

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

from models.base import Base, BaseWithId, build_cascading_foreign_key, build_partial_index
from models.case_folding import build_folded_column, sync_folded_column


class User(BaseWithId):
    """An account. Names and email addresses are unique after case folding."""

    __tablename__ = "users"

    username: Mapped[str] = mapped_column(String(255))
    email: Mapped[str] = mapped_column(String(255))
    name: Mapped[str] = mapped_column(String(255))
    #: Argon2id hash in PHC string format.
    password_hash: Mapped[str] = mapped_column(String(255))
    is_admin: Mapped[bool] = mapped_column(default=False)
    #: State: active, pending (waiting for approval), deactivated (by an administrator, or because
    #: the account was unused), locked or blocked.
    state: Mapped[str] = mapped_column(String(16), default="active")
    #: Kind: human, bot (for a project or group access token), service (for an application) or
    #: erased.
    kind: Mapped[str] = mapped_column(String(16), default="human")
    #: True if the user has to change the password because an administrator set it.
    must_change_password: Mapped[bool] = mapped_column(default=False)
    #: IANA name of the time zone for times on the user's pages and in messages.
    time_zone: Mapped[str] = mapped_column(String(64), default="UTC", server_default="UTC")
    created_at: Mapped[datetime]
    last_sign_in_at: Mapped[datetime | None]
    #: Time at which the user confirmed the email address, or an administrator vouched for it.
    email_confirmed_at: Mapped[datetime | None]
    password_changed_at: Mapped[datetime | None]
    #: Time at which the account was found to be unused. NULL while it is in use.
    idle_noticed_at: Mapped[datetime | None]
    #: Number of rows on list pages. NULL stands for the instance's default.
    page_size: Mapped[int | None] = mapped_column(SmallInteger)
    username_key: Mapped[str | None] = build_folded_column()
    #: Folded email address. NULL for accounts whose address collided with the address of an older
    #: account when folding was introduced.
    email_key: Mapped[str | None] = build_folded_column()
    name_key: Mapped[str | None] = build_folded_column()

    __table_args__ = (
        Index("uq_users_username_lower", func.lower(username), unique=True),
        Index("uq_users_email_lower", func.lower(email), unique=True),
        Index("uq_users_username_key", username_key, unique=True),
        Index("uq_users_email_key", email_key, unique=True),
        Index("ix_users_kind_state_id", "kind", "state", "id"),
        # Partial indexes: administrators look for these accounts, which are rare.
        build_partial_index("ix_users_administrators", "id", where="kind = 'human' AND is_admin"),
        build_partial_index("ix_users_not_active", "state", "id", where="state <> 'active'"),
        build_partial_index(
            "ix_users_unconfirmed", "id", where="kind = 'human' AND email_confirmed_at IS NULL"
        ),
    )


sync_folded_column(User.username, User.username_key)
sync_folded_column(User.email, User.email_key)
sync_folded_column(User.name, User.name_key)


class EmailConfirmation(Base):
    """An email address that still has to be confirmed: a new address or the account's address."""

    __tablename__ = "email_confirmations"

    #: Primary key: each user has at most one unconfirmed address. A later address replaces it and
    #: its link.
    user_id: Mapped[int] = build_cascading_foreign_key(
        "users", primary_key=True, autoincrement=False
    )
    email: Mapped[str] = mapped_column(String(255))
    token_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    created_at: Mapped[datetime] = mapped_column(index=True)


class Bot(BaseWithId):
    """The bot of an access token, and the group or project of which it is a member."""

    __tablename__ = "bots"

    user_id: Mapped[int] = build_cascading_foreign_key("users", unique=True)
    group_id: Mapped[int | None] = build_cascading_foreign_key("groups", index=True)
    project_id: Mapped[int | None] = build_cascading_foreign_key("projects", index=True)

    __table_args__ = (
        CheckConstraint("(group_id IS NULL) <> (project_id IS NULL)", name="one_place"),
    )


class SignIn(BaseWithId):
    """A browser in which a user is signed in. Deleting the row signs the browser out."""

    __tablename__ = "sign_ins"

    token_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    #: Time at which the user authenticated, which is OpenID Connect's auth_time.
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: Authentication methods (RFC 8176), separated by spaces, which are OpenID Connect's amr.
    methods: Mapped[str] = mapped_column(String(64), default="pwd")
    #: Identity at a provider that was used to sign in. There is no foreign key, so that deleting an
    #: identity does not scan this table. Code that removes an identity ends the user's sign-ins.
    identity_id: Mapped[int | None] = mapped_column(BigInteger)
    #: True if the user is known to have authenticated at `created_at`. Some providers do not report
    #: the time.
    is_proof: Mapped[bool] = mapped_column(default=True, server_default=true())


class ReturnUrl(BaseWithId):
    """A stored return URL that is too long for a query parameter."""

    __tablename__ = "kept_pages"

    #: Keyed hash of the handle that the browser stores.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    #: Path with the query.
    path: Mapped[str] = mapped_column(Text)
    expires_at: Mapped[datetime] = mapped_column(index=True)


class TotpDevice(BaseWithId):
    """The authenticator app of a user (RFC 6238)."""

    __tablename__ = "totp_devices"

    user_id: Mapped[int] = build_cascading_foreign_key("users", unique=True)
    #: Seed, which is encrypted rather than hashed because the service computes codes from it.
    seed_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: Time of the first valid code. NULL until the user has entered a valid code.
    confirmed_at: Mapped[datetime | None]
    #: Time step of the last accepted code, so that each code works once (RFC 6238 section 5.2).
    last_used_step: Mapped[int | None] = mapped_column(BigInteger)


class RecoveryCode(BaseWithId):
    """A single-use recovery code. Only its digest is stored."""

    __tablename__ = "recovery_codes"

    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class Passkey(BaseWithId):
    """A WebAuthn credential of a user."""

    __tablename__ = "passkeys"

    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    name: Mapped[str] = mapped_column(String(255))
    credential_id: Mapped[bytes] = mapped_column(LargeBinary(1023), unique=True)
    #: COSE key as received from the authenticator.
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[int] = mapped_column(BigInteger)
    #: Transports of the authenticator, separated by spaces.
    transports: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


class AttemptCount(Base):
    """The number of attempts for a subject (an account or an IP address) within a time window.

    The counts are in the database so that all processes share the limit.
    """

    __tablename__ = "attempt_counts"

    #: Keyed hash of the subject, so that the table contains no names.
    subject: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    count: Mapped[int]
    window_ends_at: Mapped[datetime] = mapped_column(index=True)
