"""What browser and service say to each other about passkeys (Web Authentication, Level 3).

Nothing here knows a database: questions are made, and answers are checked with py_webauthn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import webauthn
from webauthn.helpers import (
    options_to_json_dict,
    parse_authentication_credential_json,
    parse_registration_credential_json,
)
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from domain.errors import InvalidError
from domain.randomness import random_hex

#: How long a question of ours may be answered.
CHALLENGE_LIFETIME = timedelta(minutes=10)
#: Longer than what any authenticator sends, in characters.
_LONGEST_REPLY = 65_536
#: In bytes (section 4, credential ID).
_LONGEST_CREDENTIAL_ID = 1023
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WAIT_MILLISECONDS = 300_000

#: Whether an authenticator makes sure, by a fingerprint or a PIN, who uses it.
PREFERRED = UserVerificationRequirement.PREFERRED
REQUIRED = UserVerificationRequirement.REQUIRED

Result = TypeVar("Result")


class PasskeyRefusedError(InvalidError):
    """What came from the authenticator proves nothing."""

    def __init__(self, message: str = "This passkey was not accepted. Try again.") -> None:
        """Say so; what exactly was wrong would help nobody who is honest."""
        super().__init__(message, field="credential")


@dataclass(frozen=True, kw_only=True)
class RelyingParty:
    """Who we are to an authenticator: it keeps a key for this name, and browsers compare it."""

    id: str
    origin: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the browser is asked; the answer has to repeat the challenge, signed."""

    options: dict[str, Any]
    challenge: bytes


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the browser answered, and to what."""

    credential: str = field(repr=False)
    challenge: bytes
    party: RelyingParty


@dataclass(frozen=True, kw_only=True)
class Holder:
    """For whom a passkey is made; the handle names nobody."""

    handle: bytes
    username: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is kept of a passkey."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    #: Space-separated hints of how a browser reaches the authenticator.
    transports: str


@dataclass(frozen=True, kw_only=True)
class Assertion:
    """A proof that held."""

    sign_count: int
    #: The key never leaves its device; other passkeys are copied from one device to the next.
    is_bound_to_device: bool


def relying_party(base_url: str, name: str) -> RelyingParty | None:
    """Return who we are, or None where browsers know no passkeys.

    They want a name and not the number of a host, and https unless it is this computer. What a
    request says of its host does not matter: it may be anybody's.
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


def ask_for_new(holder: Holder, known: Sequence[Known], party: RelyingParty) -> Question:
    """Ask a browser to make a passkey on an authenticator that has none of these yet."""
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
    return Question(options=options_to_json_dict(options), challenge=challenge)


def ask_for_one_of(
    known: Sequence[Known], party: RelyingParty, verification: UserVerificationRequirement
) -> Question:
    """Ask for one of these passkeys; without any, for whatever the authenticator has for us."""
    challenge = _new_challenge()
    options = webauthn.generate_authentication_options(
        rp_id=party.id,
        challenge=challenge,
        timeout=_WAIT_MILLISECONDS,
        allow_credentials=_descriptors(known),
        user_verification=verification,
    )
    return Question(options=options_to_json_dict(options), challenge=challenge)


def _new_challenge() -> bytes:
    return bytes.fromhex(random_hex(32))


def _descriptors(known: Sequence[Known]) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            id=each.credential_id,
            transports=[AuthenticatorTransport(word) for word in each.transports.split()],
        )
        for each in known
    ]


def check_new(reply: Reply) -> Known:
    """Return the passkey that a browser made, or raise PasskeyRefusedError (section 7.1)."""
    credential = _understood(parse_registration_credential_json, _text(reply))
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
    return Known(
        credential_id=made.credential_id,
        public_key=made.credential_public_key,
        sign_count=made.sign_count,
        transports=" ".join(dict.fromkeys(transports)),
    )


def credential_id_of(reply: Reply) -> bytes:
    """Return which passkey this claims to be of, or raise PasskeyRefusedError."""
    return _assertion(reply).raw_id


def check_assertion(
    reply: Reply, known: Known, verification: UserVerificationRequirement
) -> Assertion:
    """Check that the passkey signed our challenge (section 7.2), or raise PasskeyRefusedError.

    A count of uses that does not grow means that there are two of a key of which there is one.
    """
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


def _assertion(reply: Reply) -> AuthenticationCredential:
    return _understood(parse_authentication_credential_json, _text(reply))


def _text(reply: Reply) -> str:
    if len(reply.credential) > _LONGEST_REPLY:
        raise PasskeyRefusedError
    return reply.credential


def _understood(read: Callable[..., Result], *arguments: Any, **more: Any) -> Result:
    """Return what the library made of a stranger's bytes, whatever is wrong with them."""
    try:
        return read(*arguments, **more)
    except Exception as error:
        # Its parsers of JSON, CBOR and keys raise whatever they stumble over.
        raise PasskeyRefusedError from error
