"""Proof Key for Code Exchange with S256."""

import pytest
from authlib.oauth2.rfc6749 import InvalidGrantError, InvalidRequestError, OAuth2Error

from domain.oauth.pkce import check_challenge, check_verifier

#: Example of RFC 7636, appendix B.
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.mark.spec("A6")
@pytest.mark.rfc("rfc7636-4.2-a")
def test_the_example_of_the_rfc_is_accepted() -> None:
    check_challenge(CHALLENGE, "S256", is_required=True)
    check_verifier(VERIFIER, CHALLENGE)


@pytest.mark.spec("A6")
@pytest.mark.rfc("rfc7636-4.1-a")
@pytest.mark.parametrize("length", [43, 44, 127, 128])
def test_a_verifier_of_the_right_length_is_compared(length: int) -> None:
    with pytest.raises(InvalidGrantError, match="does not match"):
        check_verifier("a" * length, CHALLENGE)


@pytest.mark.spec("A6")
@pytest.mark.rfc("rfc7636-4.1-a")
@pytest.mark.parametrize(
    "verifier", ["a" * 42, "a" * 129, "a" * 42 + "+", "a" * 42 + "é", "a" * 43 + "\n", "\x00" * 43]
)
def test_a_malformed_verifier_is_rejected(verifier: str) -> None:
    with pytest.raises(InvalidGrantError, match="43 to 128"):
        check_verifier(verifier, CHALLENGE)


def test_a_code_with_a_challenge_needs_a_verifier() -> None:
    with pytest.raises(InvalidRequestError, match="code_verifier"):
        check_verifier(None, CHALLENGE)


def test_a_verifier_for_a_code_without_a_challenge_is_rejected() -> None:
    check_verifier(None, None)
    with pytest.raises(InvalidGrantError):
        check_verifier(VERIFIER, None)


@pytest.mark.spec("A6")
@pytest.mark.parametrize("method", ["plain", "s256", "", None, "S512"])
def test_a_challenge_requires_the_method_s256(method: str | None) -> None:
    with pytest.raises(InvalidRequestError, match="code_challenge_method"):
        check_challenge(CHALLENGE, method, is_required=False)


@pytest.mark.parametrize(
    "challenge", [CHALLENGE[:-1], CHALLENGE + "=", "a" * 44, "+" * 43, "é" * 43]
)
def test_a_challenge_is_the_unpadded_base64url_of_a_hash(challenge: str) -> None:
    with pytest.raises(InvalidRequestError, match="43 characters"):
        check_challenge(challenge, "S256", is_required=False)


@pytest.mark.parametrize(("method", "is_required"), [(None, True), ("S256", True), ("S256", False)])
def test_a_missing_challenge_is_named(method: str | None, is_required: bool) -> None:  # noqa: FBT001 - a column of the table
    with pytest.raises(OAuth2Error, match="code_challenge"):
        check_challenge(None, method, is_required=is_required)
