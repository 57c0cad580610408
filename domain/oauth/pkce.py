"""Proof Key for Code Exchange (RFC 7636), S256 only."""

import hmac
import re

from authlib.oauth2.rfc6749 import InvalidGrantError, InvalidRequestError
from authlib.oauth2.rfc7636 import create_s256_code_challenge

#: Section 4.2: the base64url form, without padding, of 32 bytes.
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
#: Section 4.1: 43 to 128 unreserved characters.
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
MISSING_CHALLENGE = "Missing required parameter: code_challenge."
OTHER_METHOD = "code_challenge_method must be S256."
NO_CHALLENGE = "This code was issued without a code_challenge."
MISSING_VERIFIER = "Missing required parameter: code_verifier."
MALFORMED_VERIFIER = "code_verifier must be 43 to 128 unreserved characters."
WRONG_VERIFIER = "code_verifier does not match the code_challenge."


def check_challenge(challenge: str | None, method: str | None, *, is_required: bool) -> None:
    """Raise invalid_request for a missing, plain or malformed challenge (section 4.4.1)."""
    if challenge is None:
        if is_required or method is not None:
            raise InvalidRequestError(MISSING_CHALLENGE)
        return
    if method != "S256":
        raise InvalidRequestError(OTHER_METHOD)
    if not _CHALLENGE.fullmatch(challenge):
        raise InvalidRequestError("code_challenge must be 43 characters of base64url.")


def check_verifier(verifier: str | None, challenge: str | None) -> None:
    """Raise unless the verifier proves the challenge (section 4.6).

    A verifier without a challenge is refused as well: somebody took the challenge away
    (RFC 9700 section 4.8.2).
    """
    if challenge is None:
        if verifier is not None:
            raise InvalidGrantError(NO_CHALLENGE)
        return
    if verifier is None:
        raise InvalidRequestError(MISSING_VERIFIER)
    if not _VERIFIER.fullmatch(verifier):
        raise InvalidGrantError(MALFORMED_VERIFIER)
    if not hmac.compare_digest(create_s256_code_challenge(verifier), challenge):
        raise InvalidGrantError(WRONG_VERIFIER)
