"""Sign-in through identity providers, and connection of accounts to identity providers.

Failures are recorded in the audit log, and the record is kept when the error is raised.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hmac import compare_digest
from itertools import chain, count

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.accounts.administration import add_account
from domain.accounts.attempt_counters import claim_single_use_value
from domain.accounts.identity_providers.actions import build_provider_client, get_active_provider
from domain.accounts.identity_providers.errors import (
    AccountLockedError,
    ExpiredProviderSignInError,
    IdentityNotConnectedError,
    ProviderError,
    SignInNotRecentError,
)
from domain.accounts.identity_providers.group_roles import sync_group_roles
from domain.accounts.identity_providers.identities import (
    add_identity,
    find_identity,
    store_identity_details,
)
from domain.accounts.identity_providers.provider_client import (
    PROVIDER_CLOCK_LEEWAY,
    ProviderSignInSecrets,
)
from domain.accounts.identity_providers.provider_users import ProviderUser
from domain.accounts.names import MAX_DISPLAY_NAME_LENGTH, check_username
from domain.accounts.passwords import PasswordRules
from domain.accounts.sign_in.sessions import (
    PROVIDER_FACTOR_METHODS,
    PROVIDER_METHODS,
    Authentication,
)
from domain.accounts.users import (
    NewUser,
    check_not_group_name,
    find_sign_in_user,
    find_user,
    lock_account_row,
    normalize_email,
)
from domain.audit.events import EventKind
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import ConflictError, InvalidError
from domain.core.keyring import Keyring
from models import Identity, IdentityProvider

PROVIDER_REQUEST_LIFETIME = timedelta(minutes=10)
#: Values of `amr` (RFC 8176) that indicate more than a password.
_SECOND_FACTOR_METHODS = frozenset({"mfa", "otp", "hwk", "swk", "sc", "sms", "tel", "fpt", "face"})
_INVALID_USERNAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_USERNAME_LENGTH = 60


@dataclass(frozen=True, kw_only=True)
class ProviderRequest:
    """A pending authorization request. It is stored only in the browser's session."""

    #: Random number from which the state, the nonce and the code verifier are derived.
    number: str = field(repr=False)
    slug: str
    asked_at: datetime
    #: True if the user has to sign in at the provider again.
    is_again: bool
    #: ID of the current sign-in if the user is connecting an account, or None for a new sign-in.
    sign_in_id: int | None


@action("signing_in.prove")
def start_provider_request(work: UnitOfWork, asked: ProviderRequest) -> str:
    """Return the provider's URL to which the browser is redirected.

    Raise ProviderError if the provider does not respond correctly.
    """
    provider = get_active_provider(work, asked.slug)
    with _record_failed_sign_in(work, asked):
        party = build_provider_client(work, provider)
        commit_to_release_locks(work.session)  # The following request may be slow.
        secrets = ProviderSignInSecrets.from_number(asked.number, work.policy(Keyring))
        return party.build_authorization_url(secrets, is_again=asked.is_again)


@action("signing_in.prove")
def finish_provider_sign_in(
    work: UnitOfWork, asked: ProviderRequest, response: Mapping[str, str]
) -> Authentication:
    """Authenticate the user that a provider's response identifies.

    An account is created if necessary. Raise ProviderError if the user cannot sign in.
    """
    with _record_failed_sign_in(work, asked):
        seen, refresh_token = _fetch_provider_user(work, asked, response)
        provider = get_active_provider(work, asked.slug)
        identity = find_identity(provider.id, seen.subject, session=work.session)
        if identity is None:
            identity = _create_identity(work, provider, seen)
        lock_account_row(identity.user_id, session=work.session)
        if find_sign_in_user(identity.user_id, session=work.session) is None:
            raise AccountLockedError(provider.title, "the account is locked")
        store_identity_details(work, identity, seen, refresh_token)
        sync_group_roles(work, provider, identity, seen.groups)
        return _build_authentication(work, provider, identity, seen, asked)


@action("own_account.change")
def connect_identity(work: UnitOfWork, asked: ProviderRequest, response: Mapping[str, str]) -> str:
    """Connect the caller's account to an account at a provider.

    Return the title of the provider. Raise ProviderError if the provider does not confirm the
    account. Raise ConflictError if either account is already connected.
    """
    with _record_failed_sign_in(work, asked):
        seen, refresh_token = _fetch_provider_user(work, asked, response)
    provider = get_active_provider(work, asked.slug)
    user_id = work.actor.id or 0
    identity = find_identity(provider.id, seen.subject, session=work.session)
    if identity is None or identity.user_id != user_id:
        identity = add_identity(work, provider, user_id, seen.subject)
    store_identity_details(work, identity, seen, refresh_token)
    sync_group_roles(work, provider, identity, seen.groups)
    return provider.title


@contextmanager
def _record_failed_sign_in(work: UnitOfWork, provider_request: ProviderRequest) -> Iterator[None]:
    """Record the reason for a failed sign-in, and roll back everything else."""
    try:
        yield
    except ProviderError as error:
        work.session.rollback()
        work.record_audit_event(
            EventKind.SIGN_IN_FAILED,
            subject=provider_request.slug,
            user_id=work.actor.id,
            details={"reason": error.reason},
        )
        commit_to_release_locks(work.session)
        raise


def _fetch_provider_user(
    work: UnitOfWork, provider_request: ProviderRequest, response: Mapping[str, str]
) -> tuple[ProviderUser, str | None]:
    """Check a response, and return its user and refresh token."""
    provider = get_active_provider(work, provider_request.slug)
    party, title = build_provider_client(work, provider), provider.title
    secrets = ProviderSignInSecrets.from_number(provider_request.number, work.policy(Keyring))
    # The state binds the response to this browser, and the claim makes it single-use.
    is_ours = compare_digest(response.get("state", "").encode(), secrets.state.encode())
    if (
        not is_ours
        or work.now - provider_request.asked_at > PROVIDER_REQUEST_LIFETIME
        or not _claim_response(work, provider_request)
    ):
        raise ExpiredProviderSignInError(
            title, "the response does not belong to a sign-in of this browser"
        )
    commit_to_release_locks(work.session)  # The following request may be slow.
    tokens = party.redeem_code(party.get_authorization_code(response), secrets)
    seen = party.identify_user(tokens, secrets.nonce)
    if provider_request.is_again and not _is_recent_sign_in(seen, provider_request):
        raise SignInNotRecentError(title, "the provider did not confirm a new sign-in")
    return seen, tokens.refresh_token


def _claim_response(work: UnitOfWork, provider_request: ProviderRequest) -> bool:
    return claim_single_use_value(
        f"sign-in {provider_request.number} at a provider",
        lifetime=PROVIDER_REQUEST_LIFETIME,
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
    )


def _is_recent_sign_in(provider_user: ProviderUser, provider_request: ProviderRequest) -> bool:
    """Return whether the provider confirms a sign-in after the request."""
    return (
        provider_user.authenticated_at is not None
        and provider_user.authenticated_at >= provider_request.asked_at - PROVIDER_CLOCK_LEEWAY
    )


def _build_authentication(
    work: UnitOfWork,
    provider: IdentityProvider,
    identity: Identity,
    provider_user: ProviderUser,
    provider_request: ProviderRequest,
) -> Authentication:
    is_vouched_for = provider.trusts_second_factor and bool(
        provider_user.methods & _SECOND_FACTOR_METHODS
    )
    earlier = (
        provider_user.authenticated_at
        if provider_user.authenticated_at
        and not _is_recent_sign_in(provider_user, provider_request)
        else None
    )
    return Authentication(
        user_id=identity.user_id,
        methods=PROVIDER_FACTOR_METHODS if is_vouched_for else PROVIDER_METHODS,
        identity_id=identity.id,
        authenticated_at=min(earlier, work.now) if earlier else None,
        is_proof=provider_user.authenticated_at is not None,
    )


def _create_identity(
    work: UnitOfWork, provider: IdentityProvider, provider_user: ProviderUser
) -> Identity:
    """Create an account for an unknown user, and return its identity.

    Raise IdentityNotConnectedError if no account may be created.
    """
    # Because of the lock, the second of two concurrent sign-ins finds the account that the first
    # created.
    work.session.refresh(provider, with_for_update={"key_share": True})
    found = find_identity(provider.id, provider_user.subject, session=work.session)
    if found is not None:
        return found
    return add_identity(
        work, provider, _create_account(work, provider, provider_user), provider_user.subject
    )


def _create_account(
    work: UnitOfWork, provider: IdentityProvider, provider_user: ProviderUser
) -> int:
    """Create an account for an unknown user, if the provider allows it, and return its ID.

    An existing account with the same address is not connected. Otherwise, the operator of the
    provider could take it over.
    """
    try:
        email = normalize_email(provider_user.email)
    except InvalidError as error:
        reason = "unknown user without a valid email address"
        raise IdentityNotConnectedError(provider.title, reason) from error
    domains = {each.casefold() for each in provider.email_domains}
    refusals = (
        (not provider.creates_accounts, "unknown user, and the provider does not create accounts"),
        (
            not (provider_user.is_email_verified or provider.vouches_for_email),
            "unknown user, and the email address is not verified",
        ),
        (
            bool(domains) and email.rpartition("@")[2].casefold() not in domains,
            "unknown user, and the domain of the email address is not allowed",
        ),
        (
            find_user(email, session=work.session) is not None,
            "unknown user, and another account has the email address",
        ),
    )
    for is_refused, reason in refusals:
        if is_refused:
            raise IdentityNotConnectedError(provider.title, reason)
    new = NewUser(
        username=_find_free_username(work, provider_user.username or email),
        email=email,
        name=(provider_user.name or provider_user.username)[:MAX_DISPLAY_NAME_LENGTH],
        password=None,
        is_email_confirmed=True,
    )
    try:
        return add_account(work, new, work.policy(PasswordRules)).id
    except InvalidError as error:
        reason = "unknown user, whose names at the provider are not valid for an account"
        raise IdentityNotConnectedError(provider.title, reason) from error


def _find_free_username(work: UnitOfWork, wanted: str) -> str:
    """Return a free username that is similar to the username at the provider."""
    base = (
        _INVALID_USERNAME_CHARACTERS.sub("-", wanted.partition("@")[0])[
            :_MAX_USERNAME_LENGTH
        ].strip("-.")
        or "user"
    )
    numbered = (f"{base}-{number}" for number in count(2))
    return next(each for each in chain([base], numbered) if _is_username_free(work, each))


def _is_username_free(work: UnitOfWork, username: str) -> bool:
    try:
        check_username(username)
        check_not_group_name(username, session=work.session)
    except (ValueError, ConflictError):  # For example, `alice.json` ends like a file name.
        return False
    return find_user(username, session=work.session) is None
