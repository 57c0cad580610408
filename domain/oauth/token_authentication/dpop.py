"""DPoP (RFC 9449): each request with a bound token proves possession of its key.

A proof is a small JWT in the `DPoP` header, signed with the key that it contains. It is valid for
the method, the URL and the time of one request, and can be used only once. Tokens that are bound to
a key are only accepted with such a proof (section 7).
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from urllib.parse import unquote, urlsplit

from authlib.oauth2.rfc6749 import InvalidRequestError, OAuth2Error
from joserfc import jwt
from joserfc.jwk import GuestProtocol, JWKRegistry, Key
from sqlalchemy import Executable

from domain.core.database.statements import StatementConnection
from domain.core.keyring import Keyring
from domain.core.tls import PRIVATE_JWK_MEMBERS, UnacceptableKeyError, check_jwk
from domain.oauth.client_jwts import (
    CLIENT_JWT_ALGORITHMS,
    JWS_REGISTRY,
    MAX_JTI_LENGTH,
    UNREADABLE_JWT_ERRORS,
    build_jwt_use_statement,
)
from domain.oauth.context import OAuthContext
from domain.oauth.token_authentication.bearer import Bearer

_PROOF_TYPE = "dpop+jwt"
#: Maximum difference between the clocks of the client and the server, in either direction (section
#: 11.1).
_CLOCK_LEEWAY = timedelta(seconds=60)
#: Pattern of SHA-256 thumbprints (RFC 7638): 32 bytes in base64url without padding.
_THUMBPRINT_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class InvalidProofError(OAuth2Error):
    """Error for a proof that is malformed or does not match the request (section 5)."""

    error = "invalid_dpop_proof"


class ReusedProofError(InvalidProofError):
    """Error for a proof that was already used (section 11.1)."""

    description = "The DPoP proof has already been used."


@dataclass(frozen=True)
class DpopTarget:
    """The method and URL that a proof must match (`htm` and `htu`)."""

    method: str
    #: URL without query and fragment.
    url: str
    #: Access token sent with the proof to a resource (section 7), if any.
    access_token: str | None = None


@dataclass(frozen=True, kw_only=True)
class DpopProof:
    """A proof that matches its request, not yet checked for reuse."""

    #: Thumbprint of the signing key (RFC 7638).
    thumbprint: str
    jti: str


def check_dpop_proof(text: str, target: DpopTarget, *, now: datetime) -> DpopProof:
    """Verify a DPoP proof (section 4.3), and return its key thumbprint and ID.

    This function does not check whether the proof was used before. Raise InvalidProofError if the
    proof is invalid.
    """
    key, claims = _verify_proof(text)
    jti, issued_at = claims.get("jti"), claims.get("iat")
    if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI_LENGTH:
        raise InvalidProofError("The DPoP proof must have a jti.")
    if claims.get("htm") != target.method or not _is_same_url(claims.get("htu"), target.url):
        raise InvalidProofError("The DPoP proof is for another method or URL.")
    if not isinstance(issued_at, int | float) or isinstance(issued_at, bool):
        raise InvalidProofError("The DPoP proof must have an iat claim.")
    # Whole seconds are used, because JSON integers of any size can be compared with integers.
    if not abs(issued_at - int(now.timestamp())) <= _CLOCK_LEEWAY.total_seconds():
        raise InvalidProofError("The DPoP proof is too old, or its iat is in the future.")
    if target.access_token is not None and claims.get("ath") != _hash_access_token(
        target.access_token
    ):
        raise InvalidProofError("The DPoP proof is for another access token.")
    return DpopProof(thumbprint=key.thumbprint(), jti=jti)


def _verify_proof(text: str) -> tuple[Key, Mapping[str, object]]:
    """Return the key and the claims of a proof that is signed with this key."""
    keys: list[Key] = []

    def load_header_key(token: GuestProtocol) -> Key:
        keys.append(_import_header_key(token.headers()))
        return keys[0]

    try:
        token = jwt.decode(text, load_header_key, registry=JWS_REGISTRY)
    except UNREADABLE_JWT_ERRORS as error:
        raise InvalidProofError("The DPoP proof is not a JWT signed with its own key.") from error
    if token.header.get("typ") != _PROOF_TYPE:
        raise InvalidProofError("The DPoP proof must have the typ dpop+jwt.")
    return keys[0], token.claims


def _import_header_key(header: Mapping[str, object]) -> Key:
    """Return the public key in a header (section 4.2).

    Raise InvalidProofError if the header has no acceptable public key.
    """
    jwk = header.get("jwk")
    if not isinstance(jwk, dict):
        raise InvalidProofError("The DPoP proof must have a public key in jwk.")
    if PRIVATE_JWK_MEMBERS & jwk.keys():
        raise InvalidProofError("The jwk of a DPoP proof must not contain a private key.")
    try:
        check_jwk(jwk)
    except UnacceptableKeyError as error:
        raise InvalidProofError(f"The DPoP proof was rejected. {error}") from error
    return JWKRegistry.import_key(jwk)


def _is_same_url(htu: object, url: str) -> bool:
    """Return whether two URLs are equal except for query and fragment (section 4.3)."""
    try:
        return isinstance(htu, str) and _normalize_url(htu) == _normalize_url(url)
    except ValueError:
        return False


def _normalize_url(url: str) -> tuple[str, str, int | None, str]:
    """Return the normal form of a URL (RFC 3986 sections 6.2.2 and 6.2.3)."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port, unquote(parts.path) or "/"


def _hash_access_token(access_token: str) -> str:
    digest = sha256(access_token.encode()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_thumbprint(text: str | None) -> None:
    """Check that a dpop_jkt is a SHA-256 thumbprint (section 10).

    Raise invalid_request if the text has another format.
    """
    if text is not None and not _THUMBPRINT_PATTERN.fullmatch(text):
        raise InvalidRequestError("dpop_jkt must be 43 characters of base64url.")


def consume_dpop_proof(proof: DpopProof, context: OAuthContext) -> None:
    """Record the use of a proof.

    Only one of several concurrent requests with the same proof succeeds. Raise ReusedProofError if
    the proof was used before.
    """
    dialect_name = context.connection.dialect_name
    statement = build_proof_use_statement(
        proof, dialect_name, keyring=context.keyring, now=context.now
    )
    if not list(context.run_write(statement, None)):
        raise ReusedProofError


def build_proof_use_statement(
    proof: DpopProof, dialect: str, *, keyring: Keyring, now: datetime
) -> Executable:
    """Return the statement that records a proof as used.

    The statement returns a row only if the proof was not used before.
    """
    text = f"DPoP proof {proof.jti} of {proof.thumbprint}"
    return build_jwt_use_statement(text, now + 2 * _CLOCK_LEEWAY, dialect, keyring=keyring)


class MissingKeyProofError(OAuth2Error):
    """Error for a valid token without proof of possession of its key (section 7.1)."""

    error = "invalid_token"
    status_code = 401

    def get_headers(self) -> list[tuple[str, str]]:
        """Return the response headers, with the challenge of section 7.1."""
        challenge = (
            f'DPoP realm="Gatebell", error="{self.error}", '
            f'error_description="{self.description}", algs="{" ".join(CLIENT_JWT_ALGORITHMS)}"'
        )
        return [("Content-Type", "application/json"), ("WWW-Authenticate", challenge)]


@dataclass(frozen=True, kw_only=True)
class TokenPresentation:
    """The authentication scheme, DPoP proof and request target of a presented token."""

    target: DpopTarget
    #: True if the token was sent with the DPoP scheme, and not as a bearer token.
    is_with_proof: bool
    proof: str | None = field(repr=False)


def check_token_binding(
    bearer: Bearer,
    presented_token: TokenPresentation,
    *,
    connection: StatementConnection,
    keyring: Keyring,
    now: datetime,
) -> None:
    """Check that a bound token is presented with a proof of its key.

    An unbound token must be presented without a proof. Raise MissingKeyProofError otherwise.
    """
    if bearer.key_thumbprint is None:
        if presented_token.is_with_proof:
            raise MissingKeyProofError("The access token is not bound to a key.")
        return
    if not presented_token.is_with_proof:
        raise MissingKeyProofError(
            "The access token is bound to a key. Send it with the DPoP scheme."
        )
    try:
        proof = _check_token_proof(bearer, presented_token, now)
        if not connection.execute_statement(
            build_proof_use_statement(proof, connection.dialect_name, keyring=keyring, now=now)
        ):
            raise ReusedProofError
    except InvalidProofError as error:
        raise MissingKeyProofError(error.description, error=error.error) from error


def _check_token_proof(
    bearer: Bearer, presented_token: TokenPresentation, now: datetime
) -> DpopProof:
    """Check that a proof is signed with the token's key, and return the proof."""
    if presented_token.proof is None:
        raise InvalidProofError("The request must have a DPoP header with a proof.")
    proof = check_dpop_proof(presented_token.proof, presented_token.target, now=now)
    if proof.thumbprint != bearer.key_thumbprint:
        raise MissingKeyProofError("The access token is bound to another key.")
    return proof
