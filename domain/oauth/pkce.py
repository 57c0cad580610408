"""Proof Key for Code Exchange (RFC 7636), S256 only."""

import hmac
import re

from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from domain.oauth.rejection_reasons import (
    RejectedGrantError,
    RejectedParameterError,
    Rejection,
    RejectionReason,
)

#: Pattern of code challenges: 32 bytes in base64url without padding (section 4.2).
_CHALLENGE_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}")
#: Pattern of code verifiers: 43 to 128 unreserved characters (section 4.1).
VERIFIER_PATTERN = r"^[A-Za-z0-9\-._~]{43,128}$"
_WRONG_VERIFIER_REASON = RejectionReason(
    name="wrong_verifier",
    title="Wrong code verifier",
    advice=(
        "code_challenge is the SHA-256 hash of code_verifier as base64url without padding. "
        "Keep the verifier of each request with its state: a second tab must not replace it."
    ),
)
MISSING_CHALLENGE = Rejection(
    sentence="Missing required parameter: code_challenge.",
    reason=RejectionReason(
        name="missing_challenge",
        title="No code challenge",
        advice=(
            "The application has to use PKCE: send code_challenge and code_challenge_method=S256 "
            "with the authorization request, and code_verifier with the token request."
        ),
    ),
)
WRONG_CHALLENGE_METHOD = Rejection(
    sentence="code_challenge_method must be S256.",
    reason=RejectionReason(
        name="challenge_method",
        title="Unsupported code challenge method",
        advice=(
            "Send code_challenge_method=S256, with the SHA-256 hash of code_verifier as "
            "base64url without padding. The method plain, which is the default, is not supported."
        ),
    ),
)
UNEXPECTED_VERIFIER = Rejection(
    sentence="This code was issued without a code_challenge.",
    reason=RejectionReason(
        name="unexpected_verifier",
        title="Code verifier without a challenge",
        advice="Send code_challenge and code_challenge_method=S256 with the authorization request.",
    ),
)
MISSING_VERIFIER = Rejection(
    sentence="Missing required parameter: code_verifier.",
    reason=RejectionReason(
        name="missing_verifier",
        title="No code verifier",
        advice="The authorization request had a code_challenge: send its code_verifier.",
    ),
)
MALFORMED_VERIFIER = Rejection(
    sentence="code_verifier must be 43 to 128 unreserved characters.", reason=_WRONG_VERIFIER_REASON
)
WRONG_VERIFIER = Rejection(
    sentence="code_verifier does not match the code_challenge.", reason=_WRONG_VERIFIER_REASON
)
PKCE_REJECTIONS = (
    MISSING_CHALLENGE,
    WRONG_CHALLENGE_METHOD,
    UNEXPECTED_VERIFIER,
    MISSING_VERIFIER,
    MALFORMED_VERIFIER,
    WRONG_VERIFIER,
)


def check_challenge(challenge: str | None, method: str | None, *, is_required: bool) -> None:
    """Reject a missing, plain or malformed challenge (section 4.4.1).

    Raise invalid_request if the challenge is rejected.
    """
    if challenge is None:
        if is_required or method is not None:
            raise RejectedParameterError(MISSING_CHALLENGE)
        return
    if method != "S256":
        raise RejectedParameterError(WRONG_CHALLENGE_METHOD)
    if not _CHALLENGE_PATTERN.fullmatch(challenge):
        raise InvalidRequestError("code_challenge must be 43 characters of base64url.")


def check_verifier(verifier: str | None, challenge: str | None) -> None:
    """Check that the verifier matches the challenge (section 4.6).

    Raise invalid_request for a missing verifier, and invalid_grant for a wrong verifier. A verifier
    without a challenge is also rejected, since an attacker may have removed the challenge (RFC 9700
    section 4.8.2).
    """
    if challenge is None:
        if verifier is not None:
            raise RejectedGrantError(UNEXPECTED_VERIFIER)
        return
    if verifier is None:
        raise RejectedParameterError(MISSING_VERIFIER)
    proved = compute_challenge(verifier)
    if proved is None:
        raise RejectedGrantError(MALFORMED_VERIFIER)
    if not hmac.compare_digest(proved, challenge):
        raise RejectedGrantError(WRONG_VERIFIER)


def compute_challenge(verifier: str) -> str | None:
    """Return the challenge for a verifier, or None if the verifier is malformed."""
    if not re.fullmatch(VERIFIER_PATTERN, verifier):
        return None
    challenge: str = create_s256_code_challenge(verifier)
    return challenge
