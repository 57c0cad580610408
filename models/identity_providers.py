"""Providers through which people sign in, and who they are there."""

from datetime import datetime

from sqlalchemy import JSON, SmallInteger, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Numbered, belongs_to, partial_index


class IdentityProvider(Numbered):
    """An OpenID Connect provider, or GitHub."""

    __tablename__ = "identity_providers"

    #: Its name in URLs.
    slug: Mapped[str] = mapped_column(String(64), unique=True)
    title: Mapped[str] = mapped_column(String(255))
    #: What it was set up as (`domain/accounts/identity_providers/presets.py`).
    preset: Mapped[str] = mapped_column(String(32))
    issuer: Mapped[str] = mapped_column(Text)
    client_id: Mapped[str] = mapped_column(Text)
    client_secret_ciphertext: Mapped[str] = mapped_column(Text)
    #: Separated by spaces.
    scopes: Mapped[str] = mapped_column(Text)
    active: Mapped[bool]
    creates_accounts: Mapped[bool]
    #: Whose addresses get new accounts; any if it is empty.
    email_domains: Mapped[list[str]] = mapped_column(JSON)
    vouches_for_email: Mapped[bool]
    trusts_second_factor: Mapped[bool]
    groups_claim: Mapped[str] = mapped_column(String(255))
    #: Each as `upstream group = path: Role`.
    group_roles: Mapped[list[str]] = mapped_column(JSON)
    administrators_group: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class Identity(Numbered):
    """An account at a provider that signs in an account here."""

    __tablename__ = "identities"

    provider_id: Mapped[int] = belongs_to("identity_providers")
    #: `sub`, or GitHub's number: it stays the same when names and addresses change.
    subject: Mapped[str] = mapped_column(String(255))
    user_id: Mapped[int] = belongs_to("users")
    #: As the provider last said.
    name: Mapped[str] = mapped_column(String(255), default="")
    email: Mapped[str] = mapped_column(String(255), default="")
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    #: Asks the provider whether the account is still there, as GitHub's access token does; or NULL.
    refresh_token_ciphertext: Mapped[str | None] = mapped_column(Text)
    checked_at: Mapped[datetime | None]
    #: Whether it is why the user is an administrator.
    gave_administrator: Mapped[bool] = mapped_column(default=False)

    __table_args__ = (
        UniqueConstraint("provider_id", "subject"),
        UniqueConstraint("user_id", "provider_id"),
        # Of those that can be asked about, the one that was not for the longest time.
        partial_index(
            "ix_identities_checked_at", "checked_at", where=refresh_token_ciphertext.is_not(None)
        ),
    )


class IdentityRole(Base):
    """A role in a group that a user has because of a group at the provider."""

    __tablename__ = "identity_roles"

    identity_id: Mapped[int] = belongs_to("identities", primary_key=True, autoincrement=False)
    group_id: Mapped[int] = belongs_to("groups", primary_key=True, autoincrement=False, index=True)
    #: As it was given: if the member has another one by now, somebody here has changed it.
    role: Mapped[int] = mapped_column(SmallInteger)
