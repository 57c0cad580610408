"""TLS for outgoing connections, and checks of key strength.

Connections use TLS 1.2 or higher, verify the certificate and reject weak and huge keys. Keys have
at least 112 bits of security (NIST SP 800-57): 2048 bits for RSA and DSA, 224 bits for elliptic
curves. RSA and DSA keys have at most 8192 bits. Every external key is checked before use, so that a
huge key does not consume processor time. OpenSSL checks Diffie-Hellman parameters.
"""

import ssl
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
)

from domain.core.errors import InvalidError

MIN_RSA_BITS, MAX_RSA_BITS = 2048, 8192
MIN_CURVE_BITS = 224
#: Maximum number of bits in a public exponent, as in OpenSSL. A larger exponent makes verifying a
#: signature as slow as signing.
_MAX_EXPONENT_BITS = 64
_MIN_EXPONENT = 3
#: Curves from RFC 7518, RFC 8037 and RFC 8812, with their sizes in bits.
_CURVE_BITS = {
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

#: Private members of a JWK (RFC 7518 section 6, RFC 8037).
PRIVATE_JWK_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
Key: TypeAlias = PublicKeyTypes | PrivateKeyTypes


class UnacceptableKeyError(InvalidError):
    """Error for a key that is too weak, too large or of an unknown type."""


def check_key(key: Key) -> None:
    """Check that a key has the strength and size that this module requires.

    Raise UnacceptableKeyError if it does not.
    """
    if isinstance(key, rsa.RSAPublicKey):
        check_rsa_parameters(key.key_size, key.public_numbers().e)
    elif isinstance(key, rsa.RSAPrivateKey):
        check_key(key.public_key())
    elif isinstance(key, dsa.DSAPublicKey | dsa.DSAPrivateKey):
        _check_modulus("DSA", key.key_size)
    elif isinstance(key, ec.EllipticCurvePublicKey | ec.EllipticCurvePrivateKey):
        _check_curve(key.curve.name, key.curve.key_size)
    # Other keys use Edwards or Montgomery curves or post-quantum algorithms, none of which is weak.


def check_rsa_parameters(bits: int, exponent: int) -> None:
    """Check that an RSA key is neither too weak nor too large.

    Raise UnacceptableKeyError if it is.
    """
    _check_modulus("RSA", bits)
    if exponent < _MIN_EXPONENT or exponent % 2 == 0 or exponent >> _MAX_EXPONENT_BITS:
        raise UnacceptableKeyError(
            f"The public exponent of the RSA key must be odd, at least {_MIN_EXPONENT}, and have "
            f"at most {_MAX_EXPONENT_BITS} bits."
        )


def _check_modulus(kind: str, bits: int) -> None:
    if bits < MIN_RSA_BITS:
        raise UnacceptableKeyError(
            f"The {kind} key has {bits} bits, which is too weak: use at least {MIN_RSA_BITS}."
        )
    if bits > MAX_RSA_BITS:
        raise UnacceptableKeyError(
            f"The {kind} key has {bits} bits, which is too large: use at most {MAX_RSA_BITS}."
        )


def _check_curve(name: str, bits: int) -> None:
    if bits < MIN_CURVE_BITS:
        raise UnacceptableKeyError(
            f"The curve {name} has {bits} bits, which is too weak: use at least {MIN_CURVE_BITS}."
        )


def check_jwk(jwk: Mapping[str, object]) -> None:
    """Check the type, size and strength of an asymmetric JSON Web Key (RFC 7517).

    Only the members are read, so that a key is rejected before a library computes with it. Raise
    UnacceptableKeyError if the key is too weak, too large or of an unknown type.
    """
    kind = jwk.get("kty")
    if kind == "RSA":
        modulus, exponent = _parse_jwk_integer(jwk, "n"), _parse_jwk_integer(jwk, "e")
        check_rsa_parameters(modulus.bit_length(), exponent)
    elif kind == "EC" or kind == "OKP":  # noqa: PLR1714 - it may be unhashable
        curve = jwk.get("crv")
        if not isinstance(curve, str) or curve not in _CURVE_BITS:
            raise UnacceptableKeyError(
                f"The curve of the key must be one of {', '.join(_CURVE_BITS)}."
            )
        _check_curve(curve, _CURVE_BITS[curve])
    else:
        raise UnacceptableKeyError("The kty of the key must be RSA, EC or OKP.")


#: Length of the largest modulus in base64url without padding (RFC 7515 section 2).
_MAX_NUMBER_LENGTH = -(-MAX_RSA_BITS // 6)


def _parse_jwk_integer(jwk: Mapping[str, object], name: str) -> int:
    """Return the number in a Base64urlUInt (RFC 7518 section 2).

    Raise UnacceptableKeyError if the number is invalid or too large.
    """
    text = jwk.get(name)
    if not isinstance(text, str) or not text.isascii():
        raise UnacceptableKeyError(f"The RSA key must have the member {name} in base64url.")
    if len(text) > _MAX_NUMBER_LENGTH:
        bits = len(text) * 6 // 8 * 8
        raise UnacceptableKeyError(
            f"A number in the RSA key has {bits} bits, which is too large: use at most "
            f"{MAX_RSA_BITS} bits."
        )
    try:
        return int.from_bytes(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as error:
        raise UnacceptableKeyError(
            f"The RSA key must have the member {name} in base64url."
        ) from error


def load_private_key(pem: bytes) -> PrivateKeyTypes:
    """Load a private key in PEM format, and check it.

    The primes of an RSA key are tested only after its size is checked, since testing 16,384 bits
    takes seconds. Raise UnacceptableKeyError if the key is not accepted.
    """
    try:
        unchecked = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        check_key(unchecked)
        return load_pem_private_key(pem, None)
    except TypeError as error:
        raise UnacceptableKeyError("The private key is encrypted with a password.") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnacceptableKeyError("This is not a valid private key in PEM format.") from error


#: Security level 2 of OpenSSL. It requires at least 2048 bits for RSA, DSA and DH and 224 bits for
#: curves, and excludes SHA-1 and MD5.
SECURITY_LEVEL = "@SECLEVEL=2"
OUTGOING_CIPHER_SUITES = (
    f"{SECURITY_LEVEL}:ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
)
#: Reasons for OpenSSL's verification errors that occur in practice, by code (X509_V_ERR_… in
#: `openssl verify`).
_VERIFICATION_REASONS = {
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is self-signed and not in TRUSTED_CA_FILE",
    19: "the issuer of the certificate is unknown: add it to TRUSTED_CA_FILE",
    20: "the issuer of the certificate is unknown: add it to TRUSTED_CA_FILE",
    21: "the issuer of the certificate is unknown: add it to TRUSTED_CA_FILE",
    62: "the certificate is for another host name",
    64: "the certificate is for another IP address",
    66: "the key of the certificate is too weak: use RSA 2048 or a curve with 224 bits",
    67: "the key of a certificate authority is too weak: use RSA 2048 or a curve with 224 bits",
    68: "the certificate is signed with a weak digest such as SHA-1",
}
_OLD_TLS_REASON = "the server does not support TLS 1.2 or higher"
_NO_TLS_REASON = "the server does not use TLS"
_NO_SUITE = "the server supports none of the allowed cipher suites"
#: Reasons for failed handshakes, by the name of OpenSSL's reason code or of the server's alert.
_HANDSHAKE_REASONS = {
    "UNSUPPORTED_PROTOCOL": _OLD_TLS_REASON,
    "NO_PROTOCOLS_AVAILABLE": _OLD_TLS_REASON,
    "TLSV1_ALERT_PROTOCOL_VERSION": _OLD_TLS_REASON,
    "WRONG_SSL_VERSION": _OLD_TLS_REASON,
    "WRONG_VERSION_NUMBER": _NO_TLS_REASON,
    "RECORD_LAYER_FAILURE": _NO_TLS_REASON,
    "HTTP_REQUEST": _NO_TLS_REASON,
    "DH_KEY_TOO_SMALL": "the Diffie-Hellman key is too weak: use 2048 bits",
    "EE_KEY_TOO_SMALL": _VERIFICATION_REASONS[66],
    "BAD_SIGNATURE": "the signature of the server is not valid",
    "WRONG_SIGNATURE_TYPE": "the server signs with a weak digest or key",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "the server signs with a weak digest or key",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": _NO_SUITE,
    "SSL/TLS_ALERT_HANDSHAKE_FAILURE": _NO_SUITE,
    "NO_CIPHERS_AVAILABLE": _NO_SUITE,
    "UNEXPECTED_EOF_WHILE_READING": "the server closed the connection during the handshake",
}


class UnacceptablePeerError(ssl.SSLError):
    """Error for a server whose certificate has an unacceptable key."""


class _KeyCheckingSocket(ssl.SSLSocket):
    """A TLS connection that is closed if the server's key is too large.

    OpenSSL's security level has no upper limit.
    """

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - the standard library's signature
        """Perform the handshake, and check the server's certificate before anything is sent."""
        # gevent's socket has no `block` parameter.
        super().do_handshake(*([block] if block else []))
        encoded = self.getpeercert(binary_form=True)
        if encoded is not None:
            _check_certificate(encoded)


def _check_certificate(encoded: bytes) -> None:
    try:
        check_key(x509.load_der_x509_certificate(encoded).public_key())
    except UnacceptableKeyError as error:
        raise UnacceptablePeerError(ssl.SSL_ERROR_SSL, str(error)) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        message = "the key of the server's certificate cannot be read"
        raise UnacceptablePeerError(ssl.SSL_ERROR_SSL, message) from error


def build_outgoing_tls_context(trusted_ca_file: Path | None = None) -> ssl.SSLContext:
    """Return the TLS context for outgoing connections.

    The context verifies certificates and host names, and trusts the certificate authorities of the
    system. If a PEM file is given (the TRUSTED_CA_FILE setting), its authorities are also trusted.
    Reading the authorities takes about 20 ms, so reuse the context for several connections.
    `find_tls_failure_reason` explains connection errors.
    """
    context = ssl.create_default_context()
    if trusted_ca_file is not None:
        context.load_verify_locations(trusted_ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(OUTGOING_CIPHER_SUITES)
    context.sslsocket_class = _KeyCheckingSocket
    return context


def find_tls_failure_reason(error: BaseException) -> str | None:
    """Return a short reason why a TLS connection failed, or None for other errors.

    Clients wrap handshake errors in other errors, so the whole chain of errors is searched. The
    reason contains nothing that the server has sent.
    """
    for each in _iterate_causes(error):
        if isinstance(each, UnacceptablePeerError):
            text = str(each.strerror).rstrip(".")
            return text[:1].lower() + text[1:]
        if isinstance(each, ssl.SSLCertVerificationError):
            return _VERIFICATION_REASONS.get(each.verify_code, "the certificate cannot be verified")
        if isinstance(each, ssl.SSLError):
            return _HANDSHAKE_REASONS.get(each.reason or "", "the TLS handshake failed")
    return None


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all errors that it was raised from, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        linked = (*current.args, getattr(current, "reason", None), current.__cause__)
        links = (*linked, current.__context__)
        waiting += [each for each in links if isinstance(each, BaseException)]
