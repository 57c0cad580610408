"""Public keys that applications authenticate with instead of a secret (RFC 7523)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from domain.core.encryption import (
    PRIVATE_MEMBERS,
    RefusedKeyError,
    check_jwk,
    check_key,
)
from domain.oauth.client_jwts import UNREADABLE

_PEM = "-----BEGIN "
_MOST_KEYS = 10
_LONGEST = 100_000
_OF_PEM = (
    (rsa.RSAPublicKey, RSAKey),
    (ec.EllipticCurvePublicKey, ECKey),
    (ed25519.Ed25519PublicKey, OKPKey),
)


def read_keys(text: str) -> dict[str, Any] | None:
    """Return the JWK Set for a JWK Set, a JWK or a PEM public key; None for empty text.

    Keys without a `kid` get their thumbprint as `kid`. Raise RefusedKeyError for invalid keys.
    """
    if not text.strip():
        return None
    if len(text) > _LONGEST:
        raise RefusedKeyError(f"The keys can have at most {_LONGEST:,} characters.")
    keys = [_named(key) for key in _keys_in(text.strip())]
    if not 0 < len(keys) <= _MOST_KEYS:
        raise RefusedKeyError(f"Enter 1 to {_MOST_KEYS} keys.")
    return {"keys": keys}


def _keys_in(text: str) -> Iterator[Key]:
    if text.startswith(_PEM):
        yield _key_of_pem(text)
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedKeyError("Enter a JWK Set, a JWK or a public key in PEM format.") from error
    several = value.get("keys") if isinstance(value, dict) and "keys" in value else [value]
    if not isinstance(several, list) or len(several) > _MOST_KEYS:
        raise RefusedKeyError(f"keys must be a list of at most {_MOST_KEYS} keys.")
    for each in several:
        yield import_public_key(each)


def import_public_key(jwk: object) -> Key:
    """Return the public key in a JWK.

    Raise RefusedKeyError for a private, weak or unsupported key.
    """
    if not isinstance(jwk, dict):
        raise RefusedKeyError("Each key must be a JSON object.")
    if PRIVATE_MEMBERS & jwk.keys():
        raise RefusedKeyError(
            "This is a private key. Enter the public key. If others may have seen the private "
            "key, create a new key pair."
        )
    check_jwk(jwk)
    try:
        return JWKRegistry.import_key(jwk)
    except UNREADABLE as error:
        raise RefusedKeyError("This is not a valid public key.") from error


def _key_of_pem(text: str) -> Key:
    if "PRIVATE KEY" in text:
        import_public_key({"d": ""})
    try:
        public = load_pem_public_key(text.encode())
    except UNREADABLE as error:
        raise RefusedKeyError("This is not a valid public key in PEM format.") from error
    check_key(public)
    for kind, key in _OF_PEM:
        if isinstance(public, kind):
            return key.import_key(text)
    raise RefusedKeyError("The key must be an RSA, elliptic curve or Ed25519 key.")


def _named(key: Key) -> dict[str, Any]:
    public: Mapping[str, Any] = key.as_dict(private=False)
    return {"kid": key.thumbprint(), **public}
