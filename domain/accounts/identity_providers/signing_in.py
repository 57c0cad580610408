"""Sign-in through a provider, and connection of an account with one at a provider.

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
from domain.access.actor import Work
from domain.accounts.administration import add_account
from domain.accounts.attempt_limits import claim_once
from domain.accounts.identity_providers.actions import get_active, relying_party
from domain.accounts.identity_providers.arrivals import Arrived
from domain.accounts.identity_providers.errors import (
    CannotSignInError,
    ExpiredError,
    NoProofError,
    NotConnectedError,
    ProviderError,
)
from domain.accounts.identity_providers.group_roles import follow_groups
from domain.accounts.identity_providers.identities import add_identity, find_identity, note
from domain.accounts.identity_providers.relying_party import LEEWAY, Secrets
from domain.accounts.names import LONGEST_NAME, check_username
from domain.accounts.passwords import PasswordRules
from domain.accounts.signing_in.sessions import (
    BY_PROVIDER,
    BY_PROVIDER_WITH_FACTOR,
    Authentication,
)
from domain.accounts.users import (
    NewUser,
    check_no_group,
    checked_email,
    find_user,
    find_user_to_sign_in,
    lock_account,
)
from domain.audit.events import EventKind
from domain.core.database.locks import release_locks
from domain.core.errors import ConflictError, InvalidError
from domain.core.keyring import Keyring
from models import Identity, IdentityProvider

LIFETIME = timedelta(minutes=10)
#: Values of `amr` (RFC 8176) that indicate more than a password.
_FACTORS = frozenset({"mfa", "otp", "hwk", "swk", "sc", "sms", "tel", "fpt", "face"})
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_USERNAME = 60


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A pending authorization request. It is stored only in the browser's session."""

    #: Random number from which the values sent to the provider are derived.
    number: str = field(repr=False)
    slug: str
    asked_at: datetime
    #: True if the user has to sign in at the provider again.
    is_again: bool
    #: Id of the current sign-in of a user who connects an account. None for a sign-in.
    sign_in_id: int | None


@action("signing_in.prove")
def begin(work: Work, asked: Asked) -> str:
    """Return the URL of the provider to which the browser is redirected.

    Raise ProviderError if the provider does not respond correctly.
    """
    provider = get_active(work, asked.slug)
    with _recorded(work, asked):
        party = relying_party(work, provider)
        release_locks(work.session)  # The following request may be slow.
        secrets = Secrets.of(asked.number, work.policy(Keyring))
        return party.authorization_url(secrets, is_again=asked.is_again)


@action("signing_in.prove")
def finish(work: Work, asked: Asked, response: Mapping[str, str]) -> Authentication:
    """Authenticate the user of a response, with a connected or a new account.

    Raise ProviderError if the user cannot sign in.
    """
    with _recorded(work, asked):
        seen, refresh_token = _arrived(work, asked, response)
        provider = get_active(work, asked.slug)
        identity = find_identity(provider.id, seen.subject, session=work.session)
        if identity is None:
            identity = _newcomer(work, provider, seen)
        lock_account(identity.user_id, session=work.session)
        if find_user_to_sign_in(identity.user_id, session=work.session) is None:
            raise CannotSignInError(provider.title, "the account is locked")
        note(work, identity, seen, refresh_token)
        follow_groups(work, provider, identity, seen.groups)
        return _authentication(work, provider, identity, seen, asked)


@action("own_account.change")
def connect(work: Work, asked: Asked, response: Mapping[str, str]) -> str:
    """Connect the caller's account with an account at a provider.

    Return the title of the provider. Raise ProviderError if the provider does not confirm the
    account. Raise ConflictError if either account is already connected.
    """
    with _recorded(work, asked):
        seen, refresh_token = _arrived(work, asked, response)
    provider = get_active(work, asked.slug)
    user_id = work.actor.id or 0
    identity = find_identity(provider.id, seen.subject, session=work.session)
    if identity is None or identity.user_id != user_id:
        identity = add_identity(work, provider, user_id, seen.subject)
    note(work, identity, seen, refresh_token)
    follow_groups(work, provider, identity, seen.groups)
    return provider.title


@contextmanager
def _recorded(work: Work, asked: Asked) -> Iterator[None]:
    """Record the reason of a failed sign-in, and roll back everything else."""
    try:
        yield
    except ProviderError as error:
        work.session.rollback()
        work.record(
            EventKind.SIGN_IN_FAILED,
            subject=asked.slug,
            user_id=work.actor.id,
            details={"reason": error.reason},
        )
        release_locks(work.session)
        raise


def _arrived(work: Work, asked: Asked, response: Mapping[str, str]) -> tuple[Arrived, str | None]:
    """Return the user and the refresh token of a response after all checks."""
    provider = get_active(work, asked.slug)
    party, title = relying_party(work, provider), provider.title
    secrets = Secrets.of(asked.number, work.policy(Keyring))
    # The state binds the response to this browser, and the claim makes it single-use.
    is_ours = compare_digest(response.get("state", "").encode(), secrets.state.encode())
    if not is_ours or work.now - asked.asked_at > LIFETIME or not _claim(work, asked):
        raise ExpiredError(title, "the response does not belong to a sign-in of this browser")
    release_locks(work.session)  # The following request may be slow.
    tokens = party.redeem(party.code_in(response), secrets)
    seen = party.arrival(tokens, secrets.nonce)
    if asked.is_again and not _is_recent(seen, asked):
        raise NoProofError(title, "the provider did not confirm a new sign-in")
    return seen, tokens.refresh_token


def _claim(work: Work, asked: Asked) -> bool:
    return claim_once(
        f"sign-in {asked.number} at a provider",
        lifetime=LIFETIME,
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
    )


def _is_recent(seen: Arrived, asked: Asked) -> bool:
    """Return whether the provider confirms a sign-in after the request."""
    return seen.authenticated_at is not None and seen.authenticated_at >= asked.asked_at - LEEWAY


def _authentication(
    work: Work, provider: IdentityProvider, identity: Identity, seen: Arrived, asked: Asked
) -> Authentication:
    is_vouched_for = provider.trusts_second_factor and bool(seen.methods & _FACTORS)
    earlier = (
        seen.authenticated_at if seen.authenticated_at and not _is_recent(seen, asked) else None
    )
    return Authentication(
        user_id=identity.user_id,
        methods=BY_PROVIDER_WITH_FACTOR if is_vouched_for else BY_PROVIDER,
        identity_id=identity.id,
        authenticated_at=min(earlier, work.now) if earlier else None,
        is_proof=seen.authenticated_at is not None,
    )


def _newcomer(work: Work, provider: IdentityProvider, seen: Arrived) -> Identity:
    """Return the identity of a user who gets a new account.

    Raise NotConnectedError if no account may be created.
    """
    # The lock makes the second of two concurrent sign-ins find the account of the first.
    work.session.refresh(provider, with_for_update={"key_share": True})
    found = find_identity(provider.id, seen.subject, session=work.session)
    if found is not None:
        return found
    return add_identity(work, provider, _new_account(work, provider, seen), seen.subject)


def _new_account(work: Work, provider: IdentityProvider, seen: Arrived) -> int:
    """Create an account for an unknown user, if the provider allows it, and return its id.

    An existing account with the same address is not connected. Otherwise, the operator of the
    provider could take it over.
    """
    try:
        email = checked_email(seen.email)
    except InvalidError as error:
        reason = "unknown user without a valid email address"
        raise NotConnectedError(provider.title, reason) from error
    domains = {each.casefold() for each in provider.email_domains}
    refusals = (
        (not provider.creates_accounts, "unknown user, and the provider does not create accounts"),
        (
            not (seen.is_email_verified or provider.vouches_for_email),
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
            raise NotConnectedError(provider.title, reason)
    new = NewUser(
        username=_free_username(work, seen.username or email),
        email=email,
        name=(seen.name or seen.username)[:LONGEST_NAME],
        password=None,
        is_email_confirmed=True,
    )
    try:
        return add_account(work, new, work.policy(PasswordRules)).id
    except InvalidError as error:
        reason = "unknown user, and the names are not valid for an account"
        raise NotConnectedError(provider.title, reason) from error


def _free_username(work: Work, wanted: str) -> str:
    """Return a user name that is similar to the one at the provider and not taken here."""
    base = _NO_NAME.sub("-", wanted.partition("@")[0])[:_LONGEST_USERNAME].strip("-.") or "user"
    numbered = (f"{base}-{number}" for number in count(2))
    return next(each for each in chain([base], numbered) if _is_free(work, each))


def _is_free(work: Work, username: str) -> bool:
    try:
        check_username(username)
        check_no_group(username, session=work.session)
    except (ValueError, ConflictError):  # For example, `alice.json` ends like a file name.
        return False
    return find_user(username, session=work.session) is None
