"""Passkeys of users, as a second factor after the password or instead of it.

The ceremonies (Web Authentication, Level 3) build the options for the browser and verify its
responses with py_webauthn, without a database. The user is looked up by the credential ID: the user
handle is opaque and changes with the secret key.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TypeVar
from urllib.parse import urlsplit

import webauthn
from cryptography.x509 import load_der_x509_certificate
from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.orm import Session
from webauthn.helpers import (
    options_to_json_dict,
    parse_attestation_object,
    parse_authentication_credential_json,
    parse_registration_credential_json,
)
from webauthn.helpers.cose import COSEKTY, COSEKey
from webauthn.helpers.parse_cbor import parse_cbor
from webauthn.helpers.structs import (
    AttestationObject,
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from domain.accounts.attempt_limits import claim_once
from domain.accounts.factors.second_factors import PasskeyView, view_of
from domain.encryption import RefusedKeyError, check_key, check_rsa
from domain.errors import InvalidError, NotFoundError
from domain.keyring import Keyring
from domain.randomness import random_hex
from domain.types.base import columns_of
from models import Passkey, User

#: How long a challenge is valid.
CHALLENGE_LIFETIME = timedelta(minutes=10)
#: The largest accepted response in characters; authenticators send less.
_LONGEST_REPLY = 65_536
#: The longest credential ID in bytes (section 4).
_LONGEST_CREDENTIAL_ID = 1023
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WAIT_MILLISECONDS = 300_000

#: User verification by the authenticator, with a fingerprint or a PIN.
PREFERRED = UserVerificationRequirement.PREFERRED
REQUIRED = UserVerificationRequirement.REQUIRED

Result = TypeVar("Result")
LONGEST_NAME = 100
MOST_PASSKEYS = 20


class PasskeyRefusedError(InvalidError):
    """The authenticator's response is not valid."""

    def __init__(self, message: str = "This passkey was not accepted. Try again.") -> None:
        """Use one general sentence: the exact reason would only help an attacker."""
        super().__init__(message, field="credential")


@dataclass(frozen=True, kw_only=True)
class RelyingParty:
    """The WebAuthn relying party; its ID is the host name of the service."""

    id: str
    origin: str
    name: str


@dataclass(frozen=True, kw_only=True)
class CeremonyOptions:
    """Options for the browser, and the challenge that its response has to sign."""

    options: dict[str, object]
    challenge: bytes


@dataclass(frozen=True, kw_only=True)
class CeremonyResponse:
    """The browser's response, with the challenge and the relying party it has to match."""

    credential: str = field(repr=False)
    challenge: bytes
    party: RelyingParty


@dataclass(frozen=True, kw_only=True)
class PasskeyUser:
    """The user entity of a new passkey; the handle is opaque."""

    handle: bytes
    username: str
    name: str


@dataclass(frozen=True, kw_only=True)
class StoredPasskey:
    """The stored fields of a passkey."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    #: Transports of the authenticator, separated by spaces.
    transports: str


@dataclass(frozen=True, kw_only=True)
class Assertion:
    """A verified assertion."""

    sign_count: int
    #: Whether the key is bound to its device and not synchronized to others.
    is_bound_to_device: bool


def relying_party(base_url: str, name: str) -> RelyingParty | None:
    """Return the relying party, or None where browsers do not support passkeys.

    They require a host name (not an IP address), and https except for localhost. The host comes
    from BASE_URL, never from the request.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    is_this_computer = host == "localhost" or host.endswith(".localhost")
    if _is_number(host) or (parts.scheme != "https" and not is_this_computer):
        return None
    is_usual = parts.port in {None, _DEFAULT_PORTS[parts.scheme]}
    port = "" if is_usual else f":{parts.port}"
    return RelyingParty(id=host, origin=f"{parts.scheme}://{host}{port}", name=name)


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def creation_options(
    holder: PasskeyUser, known: Sequence[StoredPasskey], party: RelyingParty
) -> CeremonyOptions:
    """Return options to create a passkey on an authenticator that has none of the known ones."""
    challenge = _new_challenge()
    options = webauthn.generate_registration_options(
        rp_id=party.id,
        rp_name=party.name,
        user_id=holder.handle,
        user_name=holder.username,
        user_display_name=holder.name,
        challenge=challenge,
        timeout=_WAIT_MILLISECONDS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.PREFERRED, user_verification=PREFERRED
        ),
        exclude_credentials=_descriptors(known),
    )
    return CeremonyOptions(options=options_to_json_dict(options), challenge=challenge)


def request_options(
    known: Sequence[StoredPasskey], party: RelyingParty, verification: UserVerificationRequirement
) -> CeremonyOptions:
    """Return options to authenticate with one of these passkeys; with none given, with any."""
    challenge = _new_challenge()
    options = webauthn.generate_authentication_options(
        rp_id=party.id,
        challenge=challenge,
        timeout=_WAIT_MILLISECONDS,
        allow_credentials=_descriptors(known),
        user_verification=verification,
    )
    return CeremonyOptions(options=options_to_json_dict(options), challenge=challenge)


def _new_challenge() -> bytes:
    return bytes.fromhex(random_hex(32))


def _descriptors(known: Sequence[StoredPasskey]) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            id=each.credential_id,
            transports=[AuthenticatorTransport(word) for word in each.transports.split()],
        )
        for each in known
    ]


def verify_registration(reply: CeremonyResponse) -> StoredPasskey:
    """Verify a registration response (section 7.1), or raise PasskeyRefusedError."""
    credential = _understood(parse_registration_credential_json, _text(reply))
    attested = _understood(parse_attestation_object, credential.response.attestation_object)
    _understood(_check_attested_keys, attested)
    made = _understood(
        webauthn.verify_registration_response,
        credential=credential,
        expected_challenge=reply.challenge,
        expected_rp_id=reply.party.id,
        expected_origin=reply.party.origin,
    )
    if len(made.credential_id) > _LONGEST_CREDENTIAL_ID:
        raise PasskeyRefusedError
    transports = (each.value for each in credential.response.transports or ())
    return StoredPasskey(
        credential_id=made.credential_id,
        public_key=made.credential_public_key,
        sign_count=made.sign_count,
        transports=" ".join(dict.fromkeys(transports)),
    )


def _check_attested_keys(attested: AttestationObject) -> None:
    """Raise RefusedKeyError for a weak or huge key, before anything is verified with it."""
    data, statement = attested.auth_data.attested_credential_data, attested.att_stmt
    if data is not None:
        _check_cose_key(data.credential_public_key)
    if statement.response is not None:
        # SafetyNet, which Google has ended, hides its certificates in another format.
        raise PasskeyRefusedError
    for encoded in statement.x5c or ():
        check_key(load_der_x509_certificate(encoded).public_key())


def _check_cose_key(encoded: bytes) -> None:
    """Raise RefusedKeyError for a weak or huge RSA key (RFC 8230); COSE has no weak curves."""
    if encoded[:1] == b"\x04":  # a point of P-256, as security keys before FIDO2 have it
        return
    key = parse_cbor(encoded)
    if key[COSEKey.KTY] == COSEKTY.RSA:
        modulus, exponent = int.from_bytes(key[COSEKey.N]), int.from_bytes(key[COSEKey.E])
        check_rsa(modulus.bit_length(), exponent)


def credential_id_of(reply: CeremonyResponse) -> bytes:
    """Return the unverified credential ID of a response, or raise PasskeyRefusedError."""
    return _assertion(reply).raw_id


def verify_assertion(
    reply: CeremonyResponse, known: StoredPasskey, verification: UserVerificationRequirement
) -> Assertion:
    """Verify an authentication response (section 7.2), or raise PasskeyRefusedError.

    A signature counter that does not grow indicates a cloned authenticator. A key that was stored
    before its strength was checked is refused here.
    """
    _understood(_check_cose_key, known.public_key)
    held = _understood(
        webauthn.verify_authentication_response,
        credential=_assertion(reply),
        expected_challenge=reply.challenge,
        expected_rp_id=reply.party.id,
        expected_origin=reply.party.origin,
        credential_public_key=known.public_key,
        credential_current_sign_count=known.sign_count,
        require_user_verification=verification is REQUIRED,
    )
    return Assertion(
        sign_count=held.new_sign_count,
        is_bound_to_device=held.credential_device_type is CredentialDeviceType.SINGLE_DEVICE,
    )


def _assertion(reply: CeremonyResponse) -> AuthenticationCredential:
    return _understood(parse_authentication_credential_json, _text(reply))


def _text(reply: CeremonyResponse) -> str:
    if len(reply.credential) > _LONGEST_REPLY:
        raise PasskeyRefusedError
    return reply.credential


def _understood(read: Callable[..., Result], *arguments: object, **more: object) -> Result:
    """Run the library on untrusted bytes; turn every exception into PasskeyRefusedError."""
    try:
        return read(*arguments, **more)
    except RefusedKeyError as error:
        raise PasskeyRefusedError(str(error)) from error
    except Exception as error:
        # Its parsers of JSON, CBOR and keys raise exceptions of many classes.
        raise PasskeyRefusedError from error


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
    return StoredPasskey(**columns_of(passkey, StoredPasskey))


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
    stored = {"user_id": user_id, "name": name, "created_at": now, "last_used_at": None}
    session.add(Passkey(**vars(made), **stored))


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
        raise NotFoundError("Passkey not found.")
    return found


def remove_passkey(passkey_id: int, *, owner_id: int, session: Session) -> None:
    """Delete a passkey of the user."""
    session.execute(delete(Passkey).where(Passkey.id == passkey_id, Passkey.user_id == owner_id))


def _passkeys_of(user_id: int) -> Select[Passkey]:
    return select(Passkey).where(Passkey.user_id == user_id).order_by(Passkey.id)


def _find(credential_id: bytes, session: Session) -> Passkey | None:
    return session.scalar(select(Passkey).where(Passkey.credential_id == credential_id))
