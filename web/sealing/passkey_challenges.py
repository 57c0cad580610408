"""The last passkey challenge of a browser, sealed in its session.

The purpose is part of the seal, so a challenge cannot be used for another ceremony.
"""

from typing import Any

from flask import session

from domain.accounts.factors.passkey_ceremonies import (
    CHALLENGE_LIFETIME,
    CeremonyOptions,
    CeremonyResponse,
    PasskeyRefusedError,
    RelyingParty,
    relying_party,
)
from domain.errors import NotFoundError
from web.sealing.sealer import BrokenSealError, seal, unseal
from web.services import settings

_SESSION_KEY = "passkey_question"


def find_relying_party() -> RelyingParty | None:
    """Return the relying party, or None where passkeys are not supported."""
    current = settings()
    return relying_party(current.base_url, current.instance_name)


def get_relying_party() -> RelyingParty:
    """Return the relying party, or raise NotFoundError."""
    party = find_relying_party()
    if party is None:
        message = (
            "Passkeys need a URL with https and a host name, which this service does not have."
        )
        raise NotFoundError(message)
    return party


def remember_challenge(ceremony: CeremonyOptions, *, purpose: str) -> dict[str, Any]:
    """Store the challenge in the session and return the options for the browser."""
    session[_SESSION_KEY] = seal(ceremony.challenge.hex(), purpose=_sealed_for(purpose))
    return ceremony.options


def take_response(credential: str, *, purpose: str) -> CeremonyResponse:
    """Return the response with its challenge; raise PasskeyRefusedError without a valid one."""
    try:
        challenge = unseal(
            session.pop(_SESSION_KEY, ""), purpose=_sealed_for(purpose), lifetime=CHALLENGE_LIFETIME
        )
    except BrokenSealError as error:
        message = "This request has expired. Try again."
        raise PasskeyRefusedError(message) from error
    return CeremonyResponse(
        credential=credential, challenge=bytes.fromhex(challenge), party=get_relying_party()
    )


def _sealed_for(purpose: str) -> str:
    return f"passkey {purpose}"
