"""Public keys that applications authenticate with instead of a secret (RFC 7523)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from domain.core.tls import (
    PRIVATE_JWK_MEMBERS,
    UnacceptableKeyError,
    check_jwk,
    check_key,
)
from domain.oauth.client_jwts import UNREADABLE_JWT_ERRORS

_PEM_PREFIX = "-----BEGIN "
_MAX_KEYS = 10
_MAX_TEXT_LENGTH = 100_000
_PEM_KEY_TYPES = (
    (rsa.RSAPublicKey, RSAKey),
    (ec.EllipticCurvePublicKey, ECKey),
    (ed25519.Ed25519PublicKey, OKPKey),
)


def parse_public_keys(text: str) -> dict[str, Any] | None:
    """Convert a JWK Set, a JWK or a PEM public key to a JWK Set.

    Return None for an empty string. The thumbprint becomes the `kid` of keys without a `kid`. Raise
    UnacceptableKeyError for invalid keys.
    """
    if not text.strip():
        return None
    if len(text) > _MAX_TEXT_LENGTH:
        raise UnacceptableKeyError(f"The keys can have at most {_MAX_TEXT_LENGTH:,} characters.")
    keys = [_add_key_id(key) for key in _iterate_keys(text.strip())]
    if not 0 < len(keys) <= _MAX_KEYS:
        raise UnacceptableKeyError(f"Enter 1 to {_MAX_KEYS} keys.")
    return {"keys": keys}


def _iterate_keys(text: str) -> Iterator[Key]:
    if text.startswith(_PEM_PREFIX):
        yield _import_pem_key(text)
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnacceptableKeyError(
            "Enter a JWK Set, a JWK or a public key in PEM format."
        ) from error
    several = value.get("keys") if isinstance(value, dict) and "keys" in value else [value]
    if not isinstance(several, list) or len(several) > _MAX_KEYS:
        raise UnacceptableKeyError(f"keys must be a list of at most {_MAX_KEYS} keys.")
    for each in several:
        yield import_public_key(each)


def import_public_key(jwk: object) -> Key:
    """Return the public key in a JWK.

    Raise UnacceptableKeyError for a private, weak or unsupported key.
    """
    if not isinstance(jwk, dict):
        raise UnacceptableKeyError("Each key must be a JSON object.")
    if PRIVATE_JWK_MEMBERS & jwk.keys():
        raise UnacceptableKeyError(
            "This is a private key. Enter the public key. If others may have seen the private "
            "key, create a new key pair."
        )
    check_jwk(jwk)
    try:
        return JWKRegistry.import_key(jwk)
    except UNREADABLE_JWT_ERRORS as error:
        raise UnacceptableKeyError("This is not a valid public key.") from error


def _import_pem_key(text: str) -> Key:
    if "PRIVATE KEY" in text:
        import_public_key({"d": ""})
    try:
        public = load_pem_public_key(text.encode())
    except UNREADABLE_JWT_ERRORS as error:
        raise UnacceptableKeyError("This is not a valid public key in PEM format.") from error
    check_key(public)
    for kind, key in _PEM_KEY_TYPES:
        if isinstance(public, kind):
            return key.import_key(text)
    raise UnacceptableKeyError("The key must be an RSA, elliptic curve or Ed25519 key.")


def _add_key_id(key: Key) -> dict[str, Any]:
    public: Mapping[str, Any] = key.as_dict(private=False)
    return {"kid": key.thumbprint(), **public}
