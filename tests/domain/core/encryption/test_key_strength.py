"""Strength of imported keys: weak keys are rejected, and so are large ones, which are slow."""

from base64 import urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from domain.core.tls import (
    UnacceptableKeyError,
    check_jwk,
    check_key,
    load_private_key,
)
from tests.support.service.certificates import private_pem, rsa_key

pytestmark = pytest.mark.spec("L5", "L6")


def public(bits: int, exponent: int = 65_537) -> rsa.RSAPublicKey:
    """Return a fake public key, which is only noticed when it is used."""
    return rsa.RSAPublicNumbers(exponent, (1 << bits) - 1).public_key()


def jwk(bits: int, exponent: int = 65_537) -> dict[str, object]:
    return {"kty": "RSA", "n": number((1 << bits) - 1), "e": number(exponent)}


def number(value: int) -> str:
    octets = value.to_bytes((value.bit_length() + 7) // 8)
    return urlsafe_b64encode(octets).rstrip(b"=").decode()


@pytest.mark.parametrize("bits", [2048, 3072, 8192])
def test_rsa_keys_of_2048_to_8192_bits_are_accepted(bits: int) -> None:
    check_key(public(bits))
    check_jwk(jwk(bits))


@pytest.mark.parametrize(
    ("bits", "word"),
    [(1024, "weak"), (2047, "weak"), (8193, "large"), (8200, "large"), (16_384, "large")],
)
def test_rsa_keys_of_other_sizes_are_rejected_with_the_limit(bits: int, word: str) -> None:
    limit = 2048 if word == "weak" else 8192
    with pytest.raises(UnacceptableKeyError, match=f"{bits} bits, which is too {word}.*{limit}"):
        check_key(public(bits))
    with pytest.raises(UnacceptableKeyError, match=f"too {word}.*{limit}"):
        check_jwk(jwk(bits))


@pytest.mark.parametrize("exponent", [1, 2, 65_536, (1 << 64) + 1, (1 << 2000) + 1])
def test_insecure_and_expensive_exponents_are_rejected(exponent: int) -> None:
    with pytest.raises(UnacceptableKeyError, match="exponent"):
        check_jwk(jwk(2048, exponent))


@pytest.mark.parametrize(
    "value",
    [
        {"kty": "RSA"},
        {"kty": "RSA", "n": 5, "e": "AQAB"},
        {"kty": "RSA", "n": "ä" * 342, "e": "AQAB"},
        {"kty": "RSA", "n": "a", "e": "AQAB"},
        {"kty": "RSA", "n": "A" * 10_000_000, "e": "AQAB"},
        {"kty": "EC", "crv": "P-192"},
        {"kty": "EC", "crv": ["P-256"]},
        {"kty": "EC"},
        {"kty": "oct", "k": "AAAA"},
        {"kty": ["RSA"]},
        {},
    ],
)
def test_other_json_keys_are_rejected(value: dict[str, object]) -> None:
    with pytest.raises(UnacceptableKeyError):
        check_jwk(value)


def test_curves_of_224_bits_and_more_are_accepted() -> None:
    for key in (ec.generate_private_key(ec.SECP224R1()), ed25519.Ed25519PrivateKey.generate()):
        check_key(key)
        check_key(key.public_key())
    check_jwk({"kty": "OKP", "crv": "Ed25519"})
    check_jwk({"kty": "EC", "crv": "P-256"})
    with pytest.raises(UnacceptableKeyError, match="192 bits, which is too weak: use at least 224"):
        check_key(ec.generate_private_key(ec.SECP192R1()))
    with pytest.raises(UnacceptableKeyError, match="DSA key has 1024 bits"):
        check_key(dsa.generate_private_key(1024).public_key())  # noqa: S505 - to be rejected


def test_a_file_with_a_private_key_is_read_and_checked() -> None:
    key = rsa_key(2048)
    assert load_private_key(private_pem(key)).public_key() == key.public_key()
    refused = {
        "too weak": private_pem(rsa_key(1024)),
        "8676 bits, which is too large": private_pem(rsa_key(8676)),
        "encrypted with a password": private_pem(rsa_key(2048), password=b"sesame"),
        "not a valid private key": b"junk",
    }
    for reason, pem in refused.items():
        with pytest.raises(UnacceptableKeyError, match=reason):
            load_private_key(pem)
