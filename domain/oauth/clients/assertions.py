"""Client assertions (RFC 7523 section 3, OpenID Connect Core section 9: private_key_jwt).

A client signs a small JWT with a private key whose public key is registered. The JWT can be used
once, within a short time, and only at this server.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from math import nan
from typing import Any

from joserfc import jws, jwt
from joserfc.jwk import Key
from sqlalchemy import bindparam, select

from domain.core.tls import UnacceptableKeyError
from domain.oauth.client_jwts import (
    JWS_REGISTRY,
    MAX_JTI_LENGTH,
    UNREADABLE_JWT_ERRORS,
    build_jwt_use_statement,
)
from domain.oauth.clients.public_keys import import_public_key
from domain.oauth.context import OAuthContext
from models import Application

#: Required value of the client_assertion_type parameter (RFC 7523 section 2.2).
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
#: Maximum difference between the clocks of the client and the server.
_CLOCK_LEEWAY = timedelta(seconds=60)
#: Maximum remaining lifetime of an assertion. Its use must be stored until it expires.
_MAX_LIFETIME = timedelta(hours=1)
#: Paths accepted in `aud`: the issuer and the endpoints that authenticate clients.
_AUDIENCE_PATHS = (
    "",
    "/oauth/token",
    "/oauth/authorize_device",
    "/oauth/introspect",
    "/oauth/par",
    "/oauth/revoke",
)
_JWKS_QUERY = select(Application.jwks).where(Application.id == bindparam("application_id"))


class InvalidAssertionError(Exception):
    """Error for an assertion that does not authenticate the client.

    The message is empty if the signature could not be verified.
    """


def parse_asserted_client_id(assertion: str) -> str | None:
    """Return the client_id that an assertion claims, without verifying it (RFC 7521 section 4.2).

    Return None if the assertion is malformed.
    """
    try:
        signed = jws.extract_compact(assertion.encode(), registry=JWS_REGISTRY)
        subject = json.loads(signed.payload)["sub"]
    except UNREADABLE_JWT_ERRORS:
        return None
    return subject if isinstance(subject, str) else None


def consume_assertion(
    assertion: str, application_id: int, client_id: str, context: OAuthContext
) -> None:
    """Check an assertion, and record that it has been used.

    Raise InvalidAssertionError if the assertion is invalid or was used before.
    """
    found = context.connection.fetch_first_row(_JWKS_QUERY, {"application_id": application_id})
    claims = _verify_signature(assertion, (found[0] if found else None) or {})
    expires_at = _check_claims(claims, client_id, context)
    text = f"client assertion {claims['jti']} of {client_id}"
    until, dialect = expires_at + _CLOCK_LEEWAY, context.connection.dialect_name
    if not list(
        context.run_write(
            build_jwt_use_statement(text, until, dialect, keyring=context.keyring), None
        )
    ):
        raise InvalidAssertionError("The client_assertion has already been used.")


def _verify_signature(assertion: str, jwks: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the claims of an assertion that is signed with one of the keys."""
    for key in _iterate_keys(assertion, jwks):
        try:
            return jwt.decode(assertion, key, registry=JWS_REGISTRY).claims
        except UNREADABLE_JWT_ERRORS:
            continue
    raise InvalidAssertionError


def _iterate_keys(assertion: str, jwks: Mapping[str, Any]) -> Iterator[Key]:
    """Yield the possible signing keys: the key that the header names, or else all keys."""
    try:
        named = jws.extract_compact(assertion.encode(), registry=JWS_REGISTRY).headers().get("kid")
    except UNREADABLE_JWT_ERRORS as error:
        raise InvalidAssertionError from error
    for jwk in jwks.get("keys", ()):
        if named is None or named == jwk.get("kid"):
            try:
                yield import_public_key(jwk)
            except UnacceptableKeyError:
                # The key was strong enough at registration, but no longer is.
                continue


def _check_claims(claims: Mapping[str, Any], client_id: str, context: OAuthContext) -> datetime:
    """Check the issuer, the audience and the lifetime, and return the expiry time.

    Raise InvalidAssertionError if a claim is invalid.
    """
    if claims.get("iss") != client_id or claims.get("sub") != client_id:
        raise InvalidAssertionError("iss and sub of the client_assertion must be the client_id.")
    audience = claims.get("aud")
    several = audience if isinstance(audience, list) else [audience]
    ours = {f"{context.policy.issuer}{path}" for path in _AUDIENCE_PATHS}
    # Another server named in `aud` could replay the assertion.
    if not several or not all(isinstance(each, str) and each in ours for each in several):
        raise InvalidAssertionError(
            "The aud of the client_assertion must contain only the issuer of this server."
        )
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI_LENGTH:
        raise InvalidAssertionError("The client_assertion must have a jti.")
    return _check_expiry(claims, context.now)


def _check_expiry(claims: Mapping[str, Any], now: datetime) -> datetime:
    # Whole seconds are used, since JSON integers can have any size, and Python compares integers of
    # any size exactly.
    moment, leeway = int(now.timestamp()), int(_CLOCK_LEEWAY.total_seconds())
    longest = moment + int(_MAX_LIFETIME.total_seconds()) + leeway
    for name in ("iat", "nbf"):
        if name in claims and not _get_number_or_nan(claims[name]) <= moment + leeway:
            raise InvalidAssertionError(f"{name} of the client_assertion is in the future.")
    ends_at = _get_number_or_nan(claims.get("exp"))
    if not moment - leeway < ends_at <= longest:
        raise InvalidAssertionError("exp of the client_assertion must be within the next hour.")
    return now + timedelta(seconds=ends_at - moment)


def _get_number_or_nan(value: object) -> float:
    """Return a number unchanged, and NaN for other values, so that all comparisons fail."""
    return nan if isinstance(value, bool) or not isinstance(value, int | float) else value
