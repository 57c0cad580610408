"""Periodic checks that users' accounts at identity providers still exist."""

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.identity_providers.actions import build_provider_client
from domain.accounts.identity_providers.errors import ProviderTokenRejectedError
from domain.accounts.identity_providers.group_roles import sync_group_roles
from domain.accounts.identity_providers.identities import (
    close_identity_sign_ins,
    has_other_sign_in_method,
)
from domain.accounts.lifecycle.own_account import revoke_access
from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.core.clock import CLOCK_TOLERANCE
from domain.core.database.locks import commit_to_release_locks
from domain.core.keyring import Keyring, UndecryptableError
from models import Identity, IdentityProvider, User

IDENTITY_CHECK_INTERVAL = timedelta(hours=1)


def claim_due_identity(
    *, but: Collection[int], session: Session, now: datetime
) -> tuple[int, int] | None:
    """Claim the identity that has not been checked for the longest time, if a check is due.

    Return the ID of the identity and the ID of its provider, or None. Providers in `but` are
    skipped. The next check of the identity is due after `IDENTITY_CHECK_INTERVAL`.
    """
    found = session.scalar(
        select(Identity)
        .join(IdentityProvider, IdentityProvider.id == Identity.provider_id)
        .join(User, User.id == Identity.user_id)
        .where(
            Identity.refresh_token_ciphertext.is_not(None),
            # A future time was stored while the clock was wrong.
            or_(
                Identity.checked_at <= now - IDENTITY_CHECK_INTERVAL,
                Identity.checked_at > now + CLOCK_TOLERANCE,
            ),
            Identity.provider_id.not_in(but),
            IdentityProvider.active,
            User.state == ACTIVE,
        )
        .order_by(Identity.checked_at)
        .limit(1)
    )
    if found is None:
        return None
    found.checked_at = now
    claimed = found.id, found.provider_id
    commit_to_release_locks(session)
    return claimed


def check_identity_at_provider(work: UnitOfWork, identity_id: int) -> None:
    """Update the details of an identity, or revoke its access if the identity no longer exists.

    Raise ProviderError, without any change, if the provider does not return a valid response.
    """
    session, keyring = work.session, work.policy(Keyring)
    identity = session.get_one(Identity, identity_id)
    kept, subject = identity.refresh_token_ciphertext, identity.subject
    provider = session.get_one(IdentityProvider, identity.provider_id)
    try:
        token = keyring.decrypt(kept or "")
    except UndecryptableError:
        identity.refresh_token_ciphertext = None  # The secret key was replaced in the meantime.
        return
    party = build_provider_client(work, provider)
    commit_to_release_locks(session)  # The following request may be slow.
    try:
        tokens = party.refresh_tokens(token)
        if tokens.refresh_token is not None and tokens.refresh_token != token:
            # The new token is stored immediately, because the previous token might no longer work.
            if (found := _lock_unchanged_identity(identity_id, kept, session=session)) is None:
                return
            kept = found.refresh_token_ciphertext = keyring.encrypt(tokens.refresh_token)
            commit_to_release_locks(session)
        seen = party.fetch_refreshed_user(tokens, subject)
    except ProviderTokenRejectedError:
        if (found := _lock_unchanged_identity(identity_id, kept, session=session)) is not None:
            _revoke_identity_access(work, found)
        return
    found = _lock_unchanged_identity(identity_id, kept, session=session)
    if seen is not None and found is not None:
        found.name, found.email = seen.name or seen.username, seen.email
        provider = session.get_one(IdentityProvider, found.provider_id)
        sync_group_roles(work, provider, found, seen.groups)


def _lock_unchanged_identity(
    identity_id: int, kept: str | None, *, session: Session
) -> Identity | None:
    """Lock and return the identity, unless it was removed or its token was replaced."""
    found = session.get(Identity, identity_id, populate_existing=True, with_for_update=True)
    return found if found is not None and found.refresh_token_ciphertext == kept else None


def _revoke_identity_access(work: UnitOfWork, identity: Identity) -> None:
    """Sign out the user of an identity that no longer exists at its provider.

    If the identity was the user's only way to sign in, the user's tokens and applications are
    revoked as well.
    """
    identity.refresh_token_ciphertext = None
    ended = {"browsers": close_identity_sign_ins(identity, session=work.session)}
    if not has_other_sign_in_method(identity, session=work.session):
        ended |= revoke_access(work, identity.user_id, applications=True, tokens=True)
    provider = work.session.get_one(IdentityProvider, identity.provider_id)
    work.record_audit_event(
        EventKind.IDENTITY_ENDED,
        subject=provider.slug,
        user_id=identity.user_id,
        details=ended,
    )
