"""Sealed values in a session between two steps: a passkey challenge and a pending sign-in.

In a pending sign-in, the password or the provider's assertion was valid, and the second factor is
missing. A pending sign-in is sealed with the account and the time of the last password change. It
becomes invalid after ten minutes, after one sign-in, or when the password changes or the account is
locked. This holds even if the cookie was copied.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flask import session
from flask_login import current_user, login_user

from domain.accounts.attempt_counters import claim_single_use_value
from domain.accounts.factors.passkeys import (
    PASSKEY_CHALLENGE_LIFETIME,
    CeremonyOptions,
    CeremonyResponse,
    InvalidPasskeyError,
    PasskeyRelyingParty,
    build_passkey_relying_party,
)
from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.sign_in.sessions import PASSWORD_METHODS, Authentication
from domain.accounts.users import UserView, find_sign_in_user
from domain.core.errors import NotFoundError
from domain.core.randomness import generate_random_hex
from web.access.decorators import get_current_user
from web.extensions import db
from web.sealing.sealed_values import BrokenSealError, seal_value, unseal_text
from web.services import get_current_time, get_services, get_settings

_CHALLENGE_KEY = "passkey_question"
_PENDING_KEY, _PENDING_PURPOSE = "two_factor", "second factor"
_PENDING_LIFETIME = timedelta(minutes=10)


def find_relying_party() -> PasskeyRelyingParty | None:
    """Return the relying party, or None if passkeys are not supported."""
    current = get_settings()
    return build_passkey_relying_party(current.base_url, current.instance_name)


def get_relying_party() -> PasskeyRelyingParty:
    """Return the relying party for passkeys.

    Raise NotFoundError if passkeys are not supported.
    """
    party = find_relying_party()
    if party is None:
        raise NotFoundError(
            "Passkeys are not available, because this service has no https URL with a host name."
        )
    return party


def store_challenge(ceremony: CeremonyOptions, *, purpose: str) -> dict[str, Any]:
    """Store the challenge in the session and return the options for the browser."""
    session[_CHALLENGE_KEY] = seal_value(
        ceremony.challenge.hex(), purpose=_build_passkey_purpose(purpose)
    )
    return ceremony.options


def take_passkey_response(credential: str, *, purpose: str) -> CeremonyResponse:
    """Return the browser's response to a passkey challenge, together with the challenge.

    Raise InvalidPasskeyError if the session has no valid challenge.
    """
    try:
        challenge = unseal_text(
            session.pop(_CHALLENGE_KEY, ""),
            purpose=_build_passkey_purpose(purpose),
            lifetime=PASSKEY_CHALLENGE_LIFETIME,
        )
    except BrokenSealError as error:
        raise InvalidPasskeyError("This request has expired. Try again.") from error
    return CeremonyResponse(
        credential=credential, challenge=bytes.fromhex(challenge), party=get_relying_party()
    )


def _build_passkey_purpose(purpose: str) -> str:
    return f"passkey {purpose}"


@dataclass(frozen=True, kw_only=True)
class PendingSignIn:
    """Sign-in of a user between the first step and the second factor."""

    number: str
    user: UserView
    #: Authentication in the first step.
    first: Authentication


def begin_pending_sign_in(user: UserView, first_authentication: Authentication) -> None:
    """Start a pending sign-in in place of the session's current content.

    A user who is already signed in stays signed in until the new sign-in is complete.
    """
    is_again = current_user.is_authenticated and current_user.id == user.id
    known = get_current_user() if is_again else None
    session.clear()
    if known is not None:
        login_user(known)
        session.permanent = True
    sealed = {
        "number": generate_random_hex(16),
        "user": user.id,
        "password": _get_password_version(user),
        "methods": first_authentication.methods,
        "identity": first_authentication.identity_id,
    }
    session[_PENDING_KEY] = seal_value(sealed, purpose=_PENDING_PURPOSE)


def find_pending_sign_in() -> PendingSignIn | None:
    """Return the valid pending sign-in of this session, or None."""
    try:
        sealed = unseal_text(
            session.get(_PENDING_KEY, ""), purpose=_PENDING_PURPOSE, lifetime=_PENDING_LIFETIME
        )
    except BrokenSealError:
        return None
    user = find_sign_in_user(sealed["user"], session=db.session())
    if user is None or _get_password_version(user) != sealed["password"]:
        return None
    if not has_second_factor(user.id, session=db.session()):
        return None  # the password is sufficient now
    first = Authentication(
        user_id=user.id,
        # Earlier releases supported only passwords.
        methods=tuple(sealed.get("methods", PASSWORD_METHODS)),
        identity_id=sealed.get("identity"),
    )
    return PendingSignIn(number=sealed["number"], user=user, first=first)


def consume_pending_sign_in(pending_sign_in: PendingSignIn) -> bool:
    """Mark the pending sign-in as used and return True, or return False if it was used before."""
    return claim_single_use_value(
        f"second factor ticket {pending_sign_in.number}",
        lifetime=_PENDING_LIFETIME,
        session=db.session(),
        keyring=get_services().keyring,
        now=get_current_time(),
    )


def _get_password_version(user: UserView) -> str:
    """Return a value that changes with the password and does not reveal it."""
    return user.password_changed_at.isoformat() if user.password_changed_at else "the first one"
