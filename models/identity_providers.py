"""Identity providers for sign-in, and users' identities at these providers."""

from datetime import datetime

from sqlalchemy import JSON, SmallInteger, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BaseWithId, build_cascading_foreign_key, build_partial_index


class IdentityProvider(BaseWithId):
    """An identity provider that users can sign in with: an OpenID Connect provider or GitHub."""

    __tablename__ = "identity_providers"

    #: Name in URLs.
    slug: Mapped[str] = mapped_column(String(64), unique=True)
    title: Mapped[str] = mapped_column(String(255))
    #: Preset that was used to create the provider
    #: (`domain/accounts/identity_providers/presets.py`).
    preset: Mapped[str] = mapped_column(String(32))
    issuer: Mapped[str] = mapped_column(Text)
    client_id: Mapped[str] = mapped_column(Text)
    client_secret_ciphertext: Mapped[str] = mapped_column(Text)
    #: Scopes, separated by spaces.
    scopes: Mapped[str] = mapped_column(Text)
    active: Mapped[bool]
    creates_accounts: Mapped[bool]
    #: Email domains for which new accounts are created. Empty if all domains are allowed.
    email_domains: Mapped[list[str]] = mapped_column(JSON)
    vouches_for_email: Mapped[bool]
    trusts_second_factor: Mapped[bool]
    groups_claim: Mapped[str] = mapped_column(String(255))
    #: Roles by group, each as `upstream group = path: Role`.
    group_roles: Mapped[list[str]] = mapped_column(JSON)
    administrators_group: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class Identity(BaseWithId):
    """A provider account that can be used to sign in to an account of this service."""

    __tablename__ = "identities"

    provider_id: Mapped[int] = build_cascading_foreign_key("identity_providers")
    #: The `sub` claim, or GitHub's user ID, which stays the same when names and addresses change.
    subject: Mapped[str] = mapped_column(String(255))
    user_id: Mapped[int] = build_cascading_foreign_key("users")
    #: Name and email address that the provider last sent.
    name: Mapped[str] = mapped_column(String(255), default="")
    email: Mapped[str] = mapped_column(String(255), default="")
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    #: Token for checking with the provider that the account still exists. For GitHub, it is the
    #: access token. NULL if there is no token.
    refresh_token_ciphertext: Mapped[str | None] = mapped_column(Text)
    checked_at: Mapped[datetime | None]
    #: True if this identity is the reason why the user is an administrator.
    gave_administrator: Mapped[bool] = mapped_column(default=False)

    __table_args__ = (
        UniqueConstraint("provider_id", "subject"),
        UniqueConstraint("user_id", "provider_id"),
        # This index finds the verifiable identity that was checked least recently.
        build_partial_index(
            "ix_identities_checked_at", "checked_at", where=refresh_token_ciphertext.is_not(None)
        ),
    )


class IdentityRole(Base):
    """A group role that a user received because of a group at the identity provider."""

    __tablename__ = "identity_roles"

    identity_id: Mapped[int] = build_cascading_foreign_key(
        "identities", primary_key=True, autoincrement=False
    )
    group_id: Mapped[int] = build_cascading_foreign_key(
        "groups", primary_key=True, autoincrement=False, index=True
    )
    #: Role that was assigned by the provider. If the member's current role differs, a user has
    #: changed it.
    role: Mapped[int] = mapped_column(SmallInteger)
