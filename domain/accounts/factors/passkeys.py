"""Passkeys of users: a second factor after the password, or a replacement for the password.

`passkey_ceremonies.py` builds the options for the browser and verifies its responses. That module
is imported on first use, because its library is large and only pages need it. The user is looked up
by the credential ID. The user handle is an opaque value that is derived with the secret key.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from urllib.parse import urlsplit

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.attempt_counters import claim_single_use_value
from domain.accounts.factors.second_factors import PasskeyView, build_passkey_view
from domain.core.errors import InvalidError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.types.base import get_column_values
from models import Passkey, User

#: Lifetime of a challenge.
PASSKEY_CHALLENGE_LIFETIME = timedelta(minutes=10)
_DEFAULT_PORTS = {"http": 80, "https": 443}

#: Levels of user verification by the authenticator, for example with a fingerprint or a PIN.
VERIFICATION_PREFERRED, VERIFICATION_REQUIRED = "preferred", "required"

MAX_PASSKEY_NAME_LENGTH = 100
MAX_PASSKEYS = 20


class InvalidPasskeyError(InvalidError):
    """Error for an authenticator response that is not valid."""

    def __init__(self, message: str = "This passkey was not accepted. Try again.") -> None:
        """Store the message. The default hides the reason, which could help attackers."""
        super().__init__(message, field="credential")


@dataclass(frozen=True, kw_only=True)
class PasskeyRelyingParty:
    """The WebAuthn relying party.

    Its ID is the host name of the service.
    """

    id: str
    origin: str
    name: str


@dataclass(frozen=True, kw_only=True)
class CeremonyOptions:
    """Options for the browser, and the challenge that its response must sign."""

    options: dict[str, object]
    challenge: bytes


@dataclass(frozen=True, kw_only=True)
class CeremonyResponse:
    """The browser's response, with the challenge and the relying party that it must match."""

    credential: str = field(repr=False)
    challenge: bytes
    party: PasskeyRelyingParty


@dataclass(frozen=True, kw_only=True)
class PasskeyUser:
    """The user who creates a passkey, with an opaque handle."""

    handle: bytes
    username: str
    name: str


@dataclass(frozen=True, kw_only=True)
class StoredPasskey:
    """The fields of a passkey that are stored in the database."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    #: Transports of the authenticator, separated by spaces.
    transports: str


@dataclass(frozen=True, kw_only=True)
class PasskeyAssertion:
    """The signature counter and the device binding from a verified authentication."""

    sign_count: int
    #: True if the key is bound to its device and not synchronized to other devices.
    is_bound_to_device: bool


def build_passkey_relying_party(base_url: str, name: str) -> PasskeyRelyingParty | None:
    """Return the relying party, or None if browsers do not support passkeys at this URL.

    Browsers require a host name (not an IP address), and HTTPS except for localhost. The host is
    taken from BASE_URL, never from the request.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    is_this_computer = host == "localhost" or host.endswith(".localhost")
    if _is_ip_address(host) or (parts.scheme != "https" and not is_this_computer):
        return None
    is_usual = parts.port in {None, _DEFAULT_PORTS[parts.scheme]}
    port = "" if is_usual else f":{parts.port}"
    return PasskeyRelyingParty(id=host, origin=f"{parts.scheme}://{host}{port}", name=name)


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def build_creation_options(
    user_id: int,
    party: PasskeyRelyingParty,
    *,
    username: str,
    name: str,
    session: Session,
    keyring: Keyring,
) -> CeremonyOptions:
    """Return options to create a passkey for the user."""
    from domain.accounts.factors import passkey_ceremonies  # noqa: PLC0415 - see above

    handle = keyring.compute_digest(f"passkey user {user_id}")
    holder = PasskeyUser(handle=handle, username=username, name=name)
    return passkey_ceremonies.generate_creation_options(
        holder, _list_stored_passkeys(user_id, session), party
    )


def build_second_factor_options(
    user_id: int, party: PasskeyRelyingParty, *, session: Session
) -> CeremonyOptions:
    """Return options to authenticate with one of the user's passkeys as a second factor."""
    from domain.accounts.factors import passkey_ceremonies  # noqa: PLC0415 - see above

    return passkey_ceremonies.generate_request_options(
        _list_stored_passkeys(user_id, session), party, VERIFICATION_PREFERRED
    )


def build_passkey_sign_in_options(party: PasskeyRelyingParty) -> CeremonyOptions:
    """Return options to authenticate with any passkey.

    User verification is required.
    """
    from domain.accounts.factors import passkey_ceremonies  # noqa: PLC0415 - see above

    return passkey_ceremonies.generate_request_options((), party, VERIFICATION_REQUIRED)


def _list_stored_passkeys(user_id: int, session: Session) -> list[StoredPasskey]:
    return [_build_stored_passkey(each) for each in session.scalars(_select_passkeys(user_id))]


def _build_stored_passkey(passkey: Passkey) -> StoredPasskey:
    return StoredPasskey(**get_column_values(passkey, StoredPasskey))


def add_passkey(
    user_id: int,
    reply: CeremonyResponse,
    name: str,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> None:
    """Verify and store a new passkey.

    Raise InvalidPasskeyError if the response is not valid, or if the user has too many passkeys.
    """
    from domain.accounts.factors import passkey_ceremonies  # noqa: PLC0415 - see above

    _consume_challenge(reply, session=session, keyring=keyring, now=now)
    made = passkey_ceremonies.verify_registration(reply)
    _check_passkey_limit(user_id, session)
    if _find_by_credential_id(made.credential_id, session) is not None:
        raise InvalidPasskeyError
    stored = {"user_id": user_id, "name": name, "created_at": now, "last_used_at": None}
    session.add(Passkey(**vars(made), **stored))


def _check_passkey_limit(user_id: int, session: Session) -> None:
    # The lock prevents concurrent requests from exceeding the limit.
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
    count = select(func.count(Passkey.id)).where(Passkey.user_id == user_id)
    if (session.scalar(count) or 0) >= MAX_PASSKEYS:
        message = f"You can have at most {MAX_PASSKEYS} passkeys. Remove a passkey first."
        raise InvalidPasskeyError(message)


def find_passkey_owner_id(reply: CeremonyResponse, *, session: Session) -> int | None:
    """Return the ID of the user who owns the passkey in an unverified response, or None."""
    from domain.accounts.factors import passkey_ceremonies  # noqa: PLC0415 - see above

    try:
        passkey = _find_by_credential_id(passkey_ceremonies.parse_credential_id(reply), session)
    except InvalidPasskeyError:
        return None
    return passkey.user_id if passkey else None


def use_passkey(
    work: UnitOfWork, user_id: int, reply: CeremonyResponse, verification: str
) -> PasskeyAssertion:
    """Verify an authentication response from a passkey of this user.

    Raise InvalidPasskeyError if the response is not valid.
    """
    from domain.accounts.factors import passkey_ceremonies  # noqa: PLC0415 - see above

    session, now = work.session, work.now
    _consume_challenge(reply, session=session, keyring=work.policy(Keyring), now=now)
    passkey = _find_by_credential_id(passkey_ceremonies.parse_credential_id(reply), session)
    if passkey is None or passkey.user_id != user_id:
        raise InvalidPasskeyError
    assertion = passkey_ceremonies.verify_assertion(
        reply, _build_stored_passkey(passkey), verification
    )
    _record_passkey_use(passkey, assertion, session=session, now=now)
    return assertion


def _consume_challenge(
    reply: CeremonyResponse, *, session: Session, keyring: Keyring, now: datetime
) -> None:
    """Record the use of a challenge, so that a response cannot be replayed.

    A signature counter is not sufficient, because many authenticators have none. Raise
    InvalidPasskeyError if the challenge was already used.
    """
    challenge = f"passkey challenge {reply.challenge.hex()}"
    is_first = claim_single_use_value(
        challenge, lifetime=PASSKEY_CHALLENGE_LIFETIME, session=session, keyring=keyring, now=now
    )
    if not is_first:
        raise InvalidPasskeyError


def _record_passkey_use(
    passkey: Passkey, assertion: PasskeyAssertion, *, session: Session, now: datetime
) -> None:
    """Store the signature counter and the time of the last use.

    Raise InvalidPasskeyError if the counter did not increase.
    """
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
        raise InvalidPasskeyError


def get_passkey(passkey_id: int, *, owner_id: int, session: Session) -> PasskeyView:
    """Return a passkey of the user.

    Raise NotFoundError if the user has no passkey with this ID.
    """
    return build_passkey_view(_get_passkey_row(passkey_id, owner_id, session))


def rename_passkey(passkey_id: int, name: str, *, owner_id: int, session: Session) -> None:
    """Rename a passkey of the user.

    Raise NotFoundError if the user has no passkey with this ID.
    """
    _get_passkey_row(passkey_id, owner_id, session).name = name


def _get_passkey_row(passkey_id: int, owner_id: int, session: Session) -> Passkey:
    found = session.scalar(_select_passkeys(owner_id).where(Passkey.id == passkey_id))
    if found is None:
        raise NotFoundError("Passkey not found.")
    return found


def remove_passkey(passkey_id: int, *, owner_id: int, session: Session) -> None:
    """Delete a passkey of the user."""
    session.execute(delete(Passkey).where(Passkey.id == passkey_id, Passkey.user_id == owner_id))


def _select_passkeys(user_id: int) -> Select[Passkey]:
    return select(Passkey).where(Passkey.user_id == user_id).order_by(Passkey.id)


def _find_by_credential_id(credential_id: bytes, session: Session) -> Passkey | None:
    return session.scalar(select(Passkey).where(Passkey.credential_id == credential_id))
