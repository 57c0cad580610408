"""Passkeys of users, as a second factor after the password or instead of it.

The user is looked up by the credential ID: the user handle is opaque and changes with the secret
key.
"""

from datetime import datetime

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.orm import Session
from webauthn.helpers.structs import UserVerificationRequirement

from domain.accounts.attempt_limits import claim_once
from domain.accounts.factors.passkey_ceremonies import (
    CHALLENGE_LIFETIME,
    PREFERRED,
    REQUIRED,
    Assertion,
    CeremonyOptions,
    CeremonyResponse,
    PasskeyRefusedError,
    PasskeyUser,
    RelyingParty,
    StoredPasskey,
    creation_options,
    credential_id_of,
    request_options,
    verify_assertion,
    verify_registration,
)
from domain.accounts.factors.second_factors import PasskeyView, view_of
from domain.errors import NotFoundError
from domain.keyring import Keyring
from models import Passkey, User

LONGEST_NAME = 100
MOST_PASSKEYS = 20


def creation_options_for(
    user_id: int,
    party: RelyingParty,
    *,
    username: str,
    name: str,
    session: Session,
    keyring: Keyring,
) -> CeremonyOptions:
    """Return options to create a passkey for the user."""
    handle = keyring.digest(f"passkey user {user_id}")
    holder = PasskeyUser(handle=handle, username=username, name=name)
    return creation_options(holder, _known_of(user_id, session), party)


def request_options_for(user_id: int, party: RelyingParty, *, session: Session) -> CeremonyOptions:
    """Return options to authenticate with one of the user's passkeys, after the password."""
    return request_options(_known_of(user_id, session), party, PREFERRED)


def request_options_for_anyone(party: RelyingParty) -> CeremonyOptions:
    """Return options to authenticate with any passkey; user verification is required."""
    return request_options((), party, REQUIRED)


def _known_of(user_id: int, session: Session) -> list[StoredPasskey]:
    return [_known(each) for each in session.scalars(_passkeys_of(user_id))]


def _known(passkey: Passkey) -> StoredPasskey:
    return StoredPasskey(
        credential_id=passkey.credential_id,
        public_key=passkey.public_key,
        sign_count=passkey.sign_count,
        transports=passkey.transports,
    )


def add_passkey(
    user_id: int,
    reply: CeremonyResponse,
    name: str,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> None:
    """Verify and store a new passkey, or raise PasskeyRefusedError."""
    _consume_challenge(reply, session=session, keyring=keyring, now=now)
    made = verify_registration(reply)
    _check_room(user_id, session)
    if _find(made.credential_id, session) is not None:
        raise PasskeyRefusedError
    passkey = Passkey(
        user_id=user_id,
        name=name,
        credential_id=made.credential_id,
        public_key=made.public_key,
        sign_count=made.sign_count,
        transports=made.transports,
        created_at=now,
        last_used_at=None,
    )
    session.add(passkey)


def _check_room(user_id: int, session: Session) -> None:
    # Lock the user, so that two at once cannot both pass the limit.
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
    count = select(func.count(Passkey.id)).where(Passkey.user_id == user_id)
    if (session.scalar(count) or 0) >= MOST_PASSKEYS:
        message = f"You have {MOST_PASSKEYS} passkeys. Remove one that you no longer use."
        raise PasskeyRefusedError(message)


def find_owner(reply: CeremonyResponse, *, session: Session) -> int | None:
    """Return the user id of the passkey that a response names; the response is not verified yet."""
    try:
        passkey = _find(credential_id_of(reply), session)
    except PasskeyRefusedError:
        return None
    return passkey.user_id if passkey else None


def use_passkey(
    user_id: int,
    reply: CeremonyResponse,
    verification: UserVerificationRequirement,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> Assertion:
    """Verify a response by a passkey of this user, or raise PasskeyRefusedError."""
    _consume_challenge(reply, session=session, keyring=keyring, now=now)
    passkey = _find(credential_id_of(reply), session)
    if passkey is None or passkey.user_id != user_id:
        raise PasskeyRefusedError
    assertion = verify_assertion(reply, _known(passkey), verification)
    _count_use(passkey, assertion, session=session, now=now)
    return assertion


def _consume_challenge(
    reply: CeremonyResponse, *, session: Session, keyring: Keyring, now: datetime
) -> None:
    """Accept each challenge once: many authenticators have no signature counter."""
    challenge = f"passkey challenge {reply.challenge.hex()}"
    is_first = claim_once(
        challenge, lifetime=CHALLENGE_LIFETIME, session=session, keyring=keyring, now=now
    )
    if not is_first:
        raise PasskeyRefusedError


def _count_use(passkey: Passkey, assertion: Assertion, *, session: Session, now: datetime) -> None:
    """Store the signature counter; of two responses with the same counter, one is refused."""
    # An authenticator without a counter always sends zero (section 6.1.1).
    grows = (
        Passkey.sign_count == 0
        if assertion.sign_count == 0
        else Passkey.sign_count < assertion.sign_count
    )
    claim = (
        update(Passkey)
        .where(Passkey.id == passkey.id, grows)
        .values(sign_count=assertion.sign_count, last_used_at=now)
        .returning(Passkey.id)
    )
    if session.scalar(claim) is None:
        raise PasskeyRefusedError


def get_passkey(passkey_id: int, *, owner_id: int, session: Session) -> PasskeyView:
    """Return a passkey of the user, or raise NotFoundError."""
    return view_of(_get_row(passkey_id, owner_id, session))


def rename_passkey(passkey_id: int, name: str, *, owner_id: int, session: Session) -> None:
    """Rename a passkey of the user, or raise NotFoundError."""
    _get_row(passkey_id, owner_id, session).name = name


def _get_row(passkey_id: int, owner_id: int, session: Session) -> Passkey:
    found = session.scalar(_passkeys_of(owner_id).where(Passkey.id == passkey_id))
    if found is None:
        message = "Passkey not found."
        raise NotFoundError(message)
    return found


def remove_passkey(passkey_id: int, *, owner_id: int, session: Session) -> None:
    """Delete a passkey of the user."""
    session.execute(delete(Passkey).where(Passkey.id == passkey_id, Passkey.user_id == owner_id))


def _passkeys_of(user_id: int) -> Select[Passkey]:
    return select(Passkey).where(Passkey.user_id == user_id).order_by(Passkey.id)


def _find(credential_id: bytes, session: Session) -> Passkey | None:
    return session.scalar(select(Passkey).where(Passkey.credential_id == credential_id))
