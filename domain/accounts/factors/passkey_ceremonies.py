"""Passkey ceremonies (Web Authentication, Level 3), without database access.

The functions build the options for the browser and verify its responses with py_webauthn.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import webauthn
from cryptography.x509 import load_der_x509_certificate
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

from domain.accounts.factors.passkeys import (
    VERIFICATION_REQUIRED,
    CeremonyOptions,
    CeremonyResponse,
    InvalidPasskeyError,
    PasskeyAssertion,
    PasskeyRelyingParty,
    PasskeyUser,
    StoredPasskey,
)
from domain.core.randomness import generate_random_hex
from domain.core.tls import UnacceptableKeyError, check_key, check_rsa_parameters

#: Maximum length of a response in characters; authenticators send shorter responses.
_MAX_RESPONSE_CHARACTERS = 65_536
#: Maximum length of a credential ID in bytes (section 4).
_MAX_CREDENTIAL_ID_BYTES = 1023
_TIMEOUT_MILLISECONDS = 300_000

Result = TypeVar("Result")


def generate_creation_options(
    holder: PasskeyUser, stored_passkeys: Sequence[StoredPasskey], party: PasskeyRelyingParty
) -> CeremonyOptions:
    """Return options to create a passkey on an authenticator that has none of these passkeys."""
    challenge = _generate_challenge()
    options = webauthn.generate_registration_options(
        rp_id=party.id,
        rp_name=party.name,
        user_id=holder.handle,
        user_name=holder.username,
        user_display_name=holder.name,
        challenge=challenge,
        timeout=_TIMEOUT_MILLISECONDS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.PREFERRED,
            user_verification=UserVerificationRequirement.PREFERRED,
        ),
        exclude_credentials=_build_descriptors(stored_passkeys),
    )
    return CeremonyOptions(options=options_to_json_dict(options), challenge=challenge)


def generate_request_options(
    stored_passkeys: Sequence[StoredPasskey], party: PasskeyRelyingParty, verification: str
) -> CeremonyOptions:
    """Return options to authenticate with one of the stored passkeys.

    If `stored_passkeys` is empty, any passkey of the relying party is accepted.
    """
    challenge = _generate_challenge()
    options = webauthn.generate_authentication_options(
        rp_id=party.id,
        challenge=challenge,
        timeout=_TIMEOUT_MILLISECONDS,
        allow_credentials=_build_descriptors(stored_passkeys),
        user_verification=UserVerificationRequirement(verification),
    )
    return CeremonyOptions(options=options_to_json_dict(options), challenge=challenge)


def _generate_challenge() -> bytes:
    return bytes.fromhex(generate_random_hex(32))


def _build_descriptors(
    stored_passkeys: Sequence[StoredPasskey],
) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            id=each.credential_id,
            transports=[AuthenticatorTransport(word) for word in each.transports.split()],
        )
        for each in stored_passkeys
    ]


def verify_registration(reply: CeremonyResponse) -> StoredPasskey:
    """Verify a registration response (section 7.1).

    Raise InvalidPasskeyError if the response is not valid.
    """
    credential = _parse_untrusted_response(
        parse_registration_credential_json, _check_response_length(reply)
    )
    attested = _parse_untrusted_response(
        parse_attestation_object, credential.response.attestation_object
    )
    _parse_untrusted_response(_check_attested_keys, attested)
    made = _parse_untrusted_response(
        webauthn.verify_registration_response,
        credential=credential,
        expected_challenge=reply.challenge,
        expected_rp_id=reply.party.id,
        expected_origin=reply.party.origin,
    )
    if len(made.credential_id) > _MAX_CREDENTIAL_ID_BYTES:
        raise InvalidPasskeyError
    transports = (each.value for each in credential.response.transports or ())
    return StoredPasskey(
        credential_id=made.credential_id,
        public_key=made.credential_public_key,
        sign_count=made.sign_count,
        transports=" ".join(dict.fromkeys(transports)),
    )


def _check_attested_keys(attested: AttestationObject) -> None:
    """Reject a weak or oversized key before it is used for verification.

    Raise UnacceptableKeyError for such a key.
    """
    data, statement = attested.auth_data.attested_credential_data, attested.att_stmt
    if data is not None:
        _check_cose_key(data.credential_public_key)
    if statement.response is not None:
        # SafetyNet, which Google has discontinued, contains its certificates in another format.
        raise InvalidPasskeyError
    for encoded in statement.x5c or ():
        check_key(load_der_x509_certificate(encoded).public_key())


def _check_cose_key(encoded: bytes) -> None:
    """Reject a weak or oversized RSA key (RFC 8230).

    COSE has no weak curves, so other keys are accepted. Raise UnacceptableKeyError for a rejected
    key.
    """
    if encoded[:1] == b"\x04":  # A P-256 point, as sent by security keys that predate FIDO2.
        return
    key = parse_cbor(encoded)
    if key[COSEKey.KTY] == COSEKTY.RSA:
        modulus, exponent = int.from_bytes(key[COSEKey.N]), int.from_bytes(key[COSEKey.E])
        check_rsa_parameters(modulus.bit_length(), exponent)


def parse_credential_id(reply: CeremonyResponse) -> bytes:
    """Return the unverified credential ID of a response.

    Raise InvalidPasskeyError if the response is malformed.
    """
    return _parse_assertion(reply).raw_id


def verify_assertion(
    reply: CeremonyResponse, stored_passkey: StoredPasskey, verification: str
) -> PasskeyAssertion:
    """Verify an authentication response (section 7.2).

    Raise InvalidPasskeyError if the response is not valid, or if its signature counter did not
    increase, which indicates a cloned authenticator. Weak keys that were stored before the strength
    check existed are also rejected.
    """
    _parse_untrusted_response(_check_cose_key, stored_passkey.public_key)
    held = _parse_untrusted_response(
        webauthn.verify_authentication_response,
        credential=_parse_assertion(reply),
        expected_challenge=reply.challenge,
        expected_rp_id=reply.party.id,
        expected_origin=reply.party.origin,
        credential_public_key=stored_passkey.public_key,
        credential_current_sign_count=stored_passkey.sign_count,
        require_user_verification=verification == VERIFICATION_REQUIRED,
    )
    return PasskeyAssertion(
        sign_count=held.new_sign_count,
        is_bound_to_device=held.credential_device_type is CredentialDeviceType.SINGLE_DEVICE,
    )


def _parse_assertion(reply: CeremonyResponse) -> AuthenticationCredential:
    return _parse_untrusted_response(
        parse_authentication_credential_json, _check_response_length(reply)
    )


def _check_response_length(reply: CeremonyResponse) -> str:
    if len(reply.credential) > _MAX_RESPONSE_CHARACTERS:
        raise InvalidPasskeyError
    return reply.credential


def _parse_untrusted_response(
    parse_response: Callable[..., Result], *arguments: object, **more: object
) -> Result:
    """Parse untrusted bytes with the library, and convert any exception to InvalidPasskeyError."""
    try:
        return parse_response(*arguments, **more)
    except UnacceptableKeyError as error:
        raise InvalidPasskeyError(str(error)) from error
    except Exception as error:
        # The parsers for JSON, CBOR and keys raise exceptions of many classes.
        raise InvalidPasskeyError from error
