"""Checks that a request with a key-bound token proves that key (RFC 9449 section 7)."""

from dataclasses import dataclass, field
from datetime import datetime

from authlib.oauth2.rfc6749 import OAuth2Error

from domain.database.statements import KeptConnection
from domain.keyring import Keyring
from domain.oauth.client_jwts import ALGORITHMS
from domain.oauth.presented_tokens.bearer import Bearer
from domain.oauth.presented_tokens.dpop import (
    InvalidProofError,
    Proof,
    ProofTarget,
    UsedProofError,
    check_proof,
    consuming_statement,
)


class KeyNotProvedError(OAuth2Error):
    """The token is valid, but the request does not prove the key of the token (section 7.1)."""

    error = "invalid_token"
    status_code = 401

    def get_headers(self) -> list[tuple[str, str]]:
        """Return the headers of the response, with the challenge of section 7.1."""
        challenge = (
            f'DPoP realm="Gatebell", error="{self.error}", '
            f'error_description="{self.description}", algs="{" ".join(ALGORITHMS)}"'
        )
        return [("Content-Type", "application/json"), ("WWW-Authenticate", challenge)]


@dataclass(frozen=True, kw_only=True)
class PresentedToken:
    """A presented token with its scheme and its proof."""

    target: ProofTarget
    #: By the scheme DPoP, and not as a bearer token.
    is_with_proof: bool
    proof: str | None = field(repr=False)


def check_bound(
    bearer: Bearer,
    presented: PresentedToken,
    *,
    connection: KeptConnection,
    keyring: Keyring,
    now: datetime,
) -> None:
    """Raise KeyNotProvedError unless an unbound token comes alone and a bound one with its key."""
    if bearer.key_thumbprint is None:
        if presented.is_with_proof:
            raise KeyNotProvedError("The access token is not bound to a key.")
        return
    if not presented.is_with_proof:
        raise KeyNotProvedError("The access token is bound to a key: send it with the scheme DPoP.")
    try:
        proof = _proof_of(bearer, presented, now)
        if not connection.all(
            consuming_statement(proof, connection.dialect_name, keyring=keyring, now=now)
        ):
            raise UsedProofError
    except InvalidProofError as error:
        raise KeyNotProvedError(error.description, error=error.error) from error


def _proof_of(bearer: Bearer, presented: PresentedToken, now: datetime) -> Proof:
    """Return the proof of the token's own key."""
    if presented.proof is None:
        raise InvalidProofError("The request needs the header DPoP with a proof.")
    proof = check_proof(presented.proof, presented.target, now=now)
    if proof.thumbprint != bearer.key_thumbprint:
        raise KeyNotProvedError("The access token is bound to another key.")
    return proof
