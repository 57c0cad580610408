"""Which question about passkeys a browser was asked last, sealed in its session.

The purpose is part of the seal: an answer to one question is none to another.
"""

from typing import Any

from flask import session

from domain.accounts.factors.passkey_ceremonies import (
    CHALLENGE_LIFETIME,
    PasskeyRefusedError,
    Question,
    RelyingParty,
    Reply,
    relying_party,
)
from domain.errors import NotFoundError
from web.sealing.sealer import BrokenSealError, seal, unseal
from web.services import settings

_PLACE = "passkey_question"


def find_party() -> RelyingParty | None:
    """Return who we are to authenticators, or None where passkeys cannot work."""
    current = settings()
    return relying_party(current.base_url, current.instance_name)


def get_party() -> RelyingParty:
    """Return who we are to authenticators, or raise NotFoundError."""
    party = find_party()
    if party is None:
        message = "Passkeys need an address with https and a name, and this service has none."
        raise NotFoundError(message)
    return party


def ask(question: Question, *, purpose: str) -> dict[str, Any]:
    """Remember what is asked, and return it as the browser takes it."""
    session[_PLACE] = seal(question.challenge.hex(), purpose=_sealed_for(purpose))
    return question.options


def take_reply(credential: str, *, purpose: str) -> Reply:
    """Return what the browser answered, or raise PasskeyRefusedError if it was not asked."""
    try:
        challenge = unseal(
            session.pop(_PLACE, ""), purpose=_sealed_for(purpose), lifetime=CHALLENGE_LIFETIME
        )
    except BrokenSealError as error:
        message = "This took too long, or you went on in another window. Try again."
        raise PasskeyRefusedError(message) from error
    return Reply(credential=credential, challenge=bytes.fromhex(challenge), party=get_party())


def _sealed_for(purpose: str) -> str:
    return f"passkey {purpose}"
