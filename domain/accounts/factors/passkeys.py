"""Passkeys of users: a second factor after the password, or all that somebody needs.

A user is found by the number of the credential: the handle that an authenticator keeps for us
names nobody, and changes with the secret key.
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
    Holder,
    Known,
    PasskeyRefusedError,
    Question,
    RelyingParty,
    Reply,
    ask_for_new,
    ask_for_one_of,
    check_assertion,
    check_new,
    credential_id_of,
)
from domain.errors import NotFoundError
from domain.keyring import Keyring
from models import Passkey, User

LONGEST_NAME = 100
MOST_PASSKEYS = 20


def question_for_new(
    user: User, party: RelyingParty, *, session: Session, keyring: Keyring
) -> Question:
    """Ask a browser to make a passkey for the user."""
    handle = keyring.digest(f"passkey user {user.id}")
    holder = Holder(handle=handle, username=user.username, name=user.name)
    return ask_for_new(holder, _known_of(user.id, session), party)


def question_for_user(user_id: int, party: RelyingParty, *, session: Session) -> Question:
    """Ask for one of the user's passkeys, after their password."""
    return ask_for_one_of(_known_of(user_id, session), party, PREFERRED)


def question_for_anyone(party: RelyingParty) -> Question:
    """Ask for whatever passkey there is; the authenticator has to make sure who uses it."""
    return ask_for_one_of((), party, REQUIRED)


def _known_of(user_id: int, session: Session) -> list[Known]:
    return [_known(each) for each in session.scalars(_passkeys_of(user_id))]


def _known(passkey: Passkey) -> Known:
    return Known(
        credential_id=passkey.credential_id,
        public_key=passkey.public_key,
        sign_count=passkey.sign_count,
        transports=passkey.transports,
    )


def add_passkey(
    user_id: int, reply: Reply, name: str, *, session: Session, keyring: Keyring, now: datetime
) -> Passkey:
    """Keep a passkey that the browser made, or raise PasskeyRefusedError."""
    _burn(reply, session=session, keyring=keyring, now=now)
    made = check_new(reply)
    _check_room(user_id, session)
    if _find(made.credential_id, session) is not None:
        raise PasskeyRefusedError
    passkey = Passkey(
        user_id=user_id,
        name=name or "Passkey",
        credential_id=made.credential_id,
        public_key=made.public_key,
        sign_count=made.sign_count,
        transports=made.transports,
        created_at=now,
        last_used_at=None,
    )
    session.add(passkey)
    session.flush()  # to learn the id
    return passkey


def _check_room(user_id: int, session: Session) -> None:
    # Two at once must not both be the last one that there is room for.
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
    count = select(func.count(Passkey.id)).where(Passkey.user_id == user_id)
    if (session.scalar(count) or 0) >= MOST_PASSKEYS:
        message = f"You have {MOST_PASSKEYS} passkeys. Remove one that you no longer use."
        raise PasskeyRefusedError(message)


def find_owner(reply: Reply, *, session: Session) -> int | None:
    """Return whose passkey this claims to be; nothing is proved yet."""
    try:
        passkey = _find(credential_id_of(reply), session)
    except PasskeyRefusedError:
        return None
    return passkey.user_id if passkey else None


def use_passkey(
    user_id: int,
    reply: Reply,
    verification: UserVerificationRequirement,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> Assertion:
    """Check that somebody has a passkey of this user, or raise PasskeyRefusedError."""
    _burn(reply, session=session, keyring=keyring, now=now)
    passkey = _find(credential_id_of(reply), session)
    if passkey is None or passkey.user_id != user_id:
        raise PasskeyRefusedError
    proof = check_assertion(reply, _known(passkey), verification)
    _count_use(passkey, proof, session=session, now=now)
    return proof


def _burn(reply: Reply, *, session: Session, keyring: Keyring, now: datetime) -> None:
    """Take each question's answer once: many authenticators do not count their uses."""
    challenge = f"passkey challenge {reply.challenge.hex()}"
    is_first = claim_once(
        challenge, lifetime=CHALLENGE_LIFETIME, session=session, keyring=keyring, now=now
    )
    if not is_first:
        raise PasskeyRefusedError


def _count_use(passkey: Passkey, proof: Assertion, *, session: Session, now: datetime) -> None:
    """Keep the authenticator's count of uses; of two at once that name the same, one is refused."""
    # An authenticator that does not count says nought each time (section 6.1.1).
    grows = (
        Passkey.sign_count == 0 if proof.sign_count == 0 else Passkey.sign_count < proof.sign_count
    )
    claim = (
        update(Passkey)
        .where(Passkey.id == passkey.id, grows)
        .values(sign_count=proof.sign_count, last_used_at=now)
        .returning(Passkey.id)
    )
    if session.scalar(claim) is None:
        raise PasskeyRefusedError


def get_passkey(passkey_id: int, *, owner_id: int, session: Session) -> Passkey:
    """Return a passkey of the user's, or raise NotFoundError."""
    found = session.scalar(_passkeys_of(owner_id).where(Passkey.id == passkey_id))
    if found is None:
        message = "You have no such passkey."
        raise NotFoundError(message)
    return found


def remove_passkey(passkey_id: int, *, owner_id: int, session: Session) -> None:
    """Forget a passkey of the user's: it opens nothing any more."""
    session.execute(delete(Passkey).where(Passkey.id == passkey_id, Passkey.user_id == owner_id))


def _passkeys_of(user_id: int) -> Select[Passkey]:
    return select(Passkey).where(Passkey.user_id == user_id).order_by(Passkey.id)


def _find(credential_id: bytes, session: Session) -> Passkey | None:
    return session.scalar(select(Passkey).where(Passkey.credential_id == credential_id))
