"""Limits on keys: at least 112 bits of security (NIST SP 800-57), and RSA at most 8192 bits.

Every key that reaches the service passes one of these checks before it is used, so that a huge
key costs no time. RSA and DSA need 2048 bits for that strength, elliptic curves 224. The parameters
of Diffie-Hellman are OpenSSL's to check (`domain/encryption/outgoing.py`).
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
)

from domain.errors import InvalidError

LEAST_RSA_BITS, MOST_RSA_BITS = 2048, 8192
LEAST_CURVE_BITS = 224
#: OpenSSL's limit too: a larger public exponent makes each verification as slow as a signature.
_MOST_EXPONENT_BITS = 64
_LEAST_EXPONENT = 3
#: The curves of RFC 7518, RFC 8037 and RFC 8812, with their bits.
_CURVES = {
    "P-192": 192,
    "P-224": 224,
    "P-256": 256,
    "P-384": 384,
    "P-521": 521,
    "secp256k1": 256,
    "Ed25519": 255,
    "X25519": 255,
    "Ed448": 448,
    "X448": 448,
}

#: Members of a JWK that only its owner may know (RFC 7518 section 6, RFC 8037).
PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
Key = PublicKeyTypes | PrivateKeyTypes


class RefusedKeyError(InvalidError):
    """The key is too weak, too large, or of an unknown kind; the text says which."""


def check_key(key: Key) -> None:
    """Raise RefusedKeyError unless the key has the strength and size of this module."""
    if isinstance(key, rsa.RSAPublicKey):
        check_rsa(key.key_size, key.public_numbers().e)
    elif isinstance(key, rsa.RSAPrivateKey):
        check_key(key.public_key())
    elif isinstance(key, dsa.DSAPublicKey | dsa.DSAPrivateKey):
        _check_modulus("DSA", key.key_size)
    elif isinstance(key, ec.EllipticCurvePublicKey | ec.EllipticCurvePrivateKey):
        _check_curve(key.curve.name, key.curve.key_size)
    # All others are of Edwards and Montgomery curves, or post-quantum, none of which is weak.


def check_rsa(bits: int, exponent: int) -> None:
    """Raise RefusedKeyError for an RSA key that is too weak or too large."""
    _check_modulus("RSA", bits)
    if exponent < _LEAST_EXPONENT or exponent % 2 == 0 or exponent >> _MOST_EXPONENT_BITS:
        raise RefusedKeyError(
            f"The public exponent of the RSA key must be odd, at least {_LEAST_EXPONENT} and of at "
            f"most {_MOST_EXPONENT_BITS} bits."
        )


def _check_modulus(kind: str, bits: int) -> None:
    if bits < LEAST_RSA_BITS:
        raise RefusedKeyError(
            f"The {kind} key has {bits} bits, which is too weak: use at least {LEAST_RSA_BITS}."
        )
    if bits > MOST_RSA_BITS:
        raise RefusedKeyError(
            f"The {kind} key has {bits} bits, which is too large: use at most {MOST_RSA_BITS}."
        )


def _check_curve(name: str, bits: int) -> None:
    if bits < LEAST_CURVE_BITS:
        raise RefusedKeyError(
            f"The curve {name} has {bits} bits, which is too weak: use at least {LEAST_CURVE_BITS}."
        )


def check_jwk(jwk: Mapping[str, object]) -> None:
    """Raise RefusedKeyError for a weak, huge or unknown asymmetric key (RFC 7517).

    Reads the members alone, so that a key can be refused before a library computes with it.
    """
    kind = jwk.get("kty")
    if kind == "RSA":
        modulus, exponent = _number(jwk, "n"), _number(jwk, "e")
        check_rsa(modulus.bit_length(), exponent)
    elif kind == "EC" or kind == "OKP":  # noqa: PLR1714 - it may be unhashable
        curve = jwk.get("crv")
        if not isinstance(curve, str) or curve not in _CURVES:
            raise RefusedKeyError(f"The curve of the key is not one of {', '.join(_CURVES)}.")
        _check_curve(curve, _CURVES[curve])
    else:
        raise RefusedKeyError("The kty of the key must be RSA, EC or OKP.")


#: base64url of as many bytes as the largest modulus has, without padding (RFC 7515 section 2).
_LONGEST_NUMBER = -(-MOST_RSA_BITS // 6)


def _number(jwk: Mapping[str, object], name: str) -> int:
    """Return a Base64urlUInt (RFC 7518 section 2)."""
    text = jwk.get(name)
    if not isinstance(text, str) or not text.isascii():
        raise RefusedKeyError(f"The RSA key needs {name} in base64url.")
    if len(text) > _LONGEST_NUMBER:
        bits = len(text) * 6 // 8 * 8
        raise RefusedKeyError(
            f"The RSA key has a number of {bits} bits, which is too large: use at most "
            f"{MOST_RSA_BITS}."
        )
    try:
        return int.from_bytes(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as error:
        raise RefusedKeyError(f"The RSA key needs {name} in base64url.") from error


def load_private_key(pem: bytes) -> PrivateKeyTypes:
    """Return the checked private key of a PEM text; raise RefusedKeyError.

    The primes of an RSA key are tested only when its size is known to be good: with 16,384 bits
    that takes seconds.
    """
    try:
        unchecked = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        check_key(unchecked)
        return load_pem_private_key(pem, None)
    except TypeError as error:
        raise RefusedKeyError("The private key is encrypted with a password.") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise RefusedKeyError("This is not a valid private key in PEM format.") from error
