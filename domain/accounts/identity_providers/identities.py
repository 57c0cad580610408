"""Identities: the accounts at identity providers that users sign in with.

An identity is looked up only by its subject (`sub`), never by name or email address.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.accounts.administration import get_account
from domain.accounts.identity_providers.group_roles import revoke_group_roles
from domain.accounts.identity_providers.provider_users import ProviderUser
from domain.accounts.lifecycle.actions import show_account
from domain.accounts.types import Account
from domain.accounts.users import lock_account_row
from domain.audit.events import EventKind
from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import Keyring
from models import Identity, IdentityProvider, Passkey, SignIn, User


@dataclass(frozen=True, kw_only=True)
class ProviderConnection:
    """An identity provider, with the user's account at the provider if it is connected."""

    slug: str
    title: str
    identity_id: int | None = None
    #: Name or address that identifies the account at the provider.
    known_as: str = ""
    last_used_at: datetime | None = None


def list_active_providers(session: Session) -> Sequence[ProviderConnection]:
    """Return the providers through which people can sign in, ordered by title."""
    columns = select(IdentityProvider.slug, IdentityProvider.title)
    rows = session.execute(columns.where(IdentityProvider.active).order_by(IdentityProvider.title))
    return tuple(ProviderConnection(**each) for each in rows.mappings())


def list_provider_connections(
    user_id: int, session: Session, *, possible: bool = True
) -> Sequence[ProviderConnection]:
    """Return the providers that a user is connected to, ordered by title.

    If `possible` is True, active providers without a connection are included.
    """
    is_mine = (Identity.provider_id == IdentityProvider.id) & (Identity.user_id == user_id)
    name, email = func.nullif(Identity.name, ""), func.nullif(Identity.email, "")
    rows = session.execute(
        select(
            IdentityProvider.slug,
            IdentityProvider.title,
            Identity.id.label("identity_id"),
            func.coalesce(email, name, Identity.subject, "").label("known_as"),
            Identity.last_used_at,
        )
        .outerjoin(Identity, is_mine)
        .where(or_(IdentityProvider.active & possible, Identity.id.is_not(None)))
        .order_by(IdentityProvider.title)
    )
    return tuple(ProviderConnection(**each) for each in rows.mappings())


def find_identity(provider_id: int, subject: str, *, session: Session) -> Identity | None:
    """Return the identity with this subject at a provider, or None."""
    return session.scalar(
        select(Identity)
        .where(Identity.provider_id == provider_id, Identity.subject == subject)
        .execution_options(populate_existing=True)
    )


def add_identity(
    work: UnitOfWork, provider: IdentityProvider, user_id: int, subject: str
) -> Identity:
    """Connect a user's account to an account at a provider.

    Raise ConflictError if either account is already connected.
    """
    session = work.session
    lock_account_row(user_id, session=session)
    if find_identity(provider.id, subject, session=session) is not None:
        message = f"Another user is already connected with this account at {provider.title}."
        raise ConflictError(message)
    mine = select(Identity.id).where(
        Identity.provider_id == provider.id, Identity.user_id == user_id
    )
    if session.scalar(mine) is not None:
        message = (
            f"Your account is already connected with another account at {provider.title}. "
            "Disconnect that account first."
        )
        raise ConflictError(message)
    made = Identity(provider_id=provider.id, subject=subject, user_id=user_id, created_at=work.now)
    session.add(made)
    session.flush()
    work.record_audit_event(EventKind.IDENTITY_CONNECTED, subject=provider.slug, user_id=user_id)
    return made


def store_identity_details(
    work: UnitOfWork, identity: Identity, provider_user: ProviderUser, refresh_token: str | None
) -> None:
    """Store the user's details from a sign-in, and the refresh token if there is one."""
    identity.name, identity.email = (
        provider_user.name or provider_user.username,
        provider_user.email,
    )
    identity.last_used_at = identity.checked_at = work.now
    if refresh_token is not None:
        identity.refresh_token_ciphertext = work.policy(Keyring).encrypt(refresh_token)


@action("own_account.change")
def disconnect_own_identity(work: UnitOfWork, sign_in_id: int, identity_id: int) -> str:
    """Disconnect an account at a provider, and sign out the other browsers that used it.

    Return the title of the provider. Raise NotFoundError if the account is not connected. Raise
    ConflictError if the account is the only way to sign in.
    """
    session, user_id = work.session, work.actor.id or 0
    lock_account_row(user_id, session=session)
    identity = session.get(Identity, identity_id)
    if identity is None or identity.user_id != user_id:
        raise NotFoundError("This account is no longer connected.")
    if not has_other_sign_in_method(identity, session=session):
        raise ConflictError(
            "This account is your only way to sign in. Set a password or add a passkey before you "
            "disconnect it."
        )
    provider = session.get_one(IdentityProvider, identity.provider_id)
    this = update(SignIn).where(SignIn.id == sign_in_id, SignIn.user_id == user_id)
    session.execute(this.values(identity_id=None))
    _disconnect_identity(work, provider, identity)
    return provider.title


@action("users.disconnect")
def disconnect_user(work: UnitOfWork, user_id: int, provider: str) -> Account:
    """Disconnect a user from an identity provider, even if it is their only way to sign in.

    Browsers that signed in through the provider are signed out, and roles from its groups are
    revoked. `provider` is the slug of the provider.

    Raise NotFoundError if the user is not connected.
    """
    lock_account_row(get_account(user_id, session=work.session).id, session=work.session)
    slug = provider.replace("\x00", "")
    found = work.session.execute(
        select(IdentityProvider, Identity)
        .join(Identity)
        .where(Identity.user_id == user_id, IdentityProvider.slug == slug)
    ).one_or_none()
    if found is None:
        raise NotFoundError("The user's account is not linked to this identity provider.")
    _disconnect_identity(work, *found)
    return show_account(work, user_id)


def _disconnect_identity(work: UnitOfWork, provider: IdentityProvider, identity: Identity) -> None:
    user_id = identity.user_id
    remove_identity(work, provider, identity)
    work.record_audit_event(EventKind.IDENTITY_DISCONNECTED, subject=provider.slug, user_id=user_id)


def remove_identity(work: UnitOfWork, provider: IdentityProvider, identity: Identity) -> None:
    """Delete an identity, its sign-ins, and the roles that came from its groups."""
    revoke_group_roles(work, provider, identity)
    close_identity_sign_ins(identity, session=work.session)
    work.session.delete(identity)
    work.session.flush()


def close_identity_sign_ins(identity: Identity, *, session: Session) -> int:
    """Sign out the browsers that used an identity to sign in, and return their number."""
    mine = SignIn.user_id == identity.user_id, SignIn.identity_id == identity.id
    return len(session.scalars(delete(SignIn).where(*mine).returning(SignIn.id)).all())


def has_other_sign_in_method(identity: Identity, *, session: Session) -> bool:
    """Return whether the user can sign in without this identity."""
    user_id = identity.user_id
    ways: tuple[ColumnElement[bool], ...] = (
        exists().where(User.id == user_id, User.password_hash != ""),
        exists().where(Passkey.user_id == user_id),
        exists().where(
            Identity.user_id == user_id,
            Identity.id != identity.id,
            IdentityProvider.id == Identity.provider_id,
            IdentityProvider.active,
        ),
    )
    return bool(session.scalar(select(or_(*ways))))
