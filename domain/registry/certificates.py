"""Certificates of the keys that sign registry tokens, in the form that Docker's registry demands.

Its `rootcertbundle` holds self-signed certificates. A token names its key in two ways, of which
either suffices: `x5c` is the certificate itself (RFC 7515 section 4.1.6), `kid` the fingerprint of
libtrust, which registries before version 3 compute from each certificate of the bundle.
"""

import base64
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

#: RFC 5280 section 4.1.2.5: no expiry. Keys end when an operator rotates them, and a registry that
#: refused an expired certificate would refuse every token.
_NO_EXPIRY = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
#: For registries whose clock is slow.
_CLOCK_SKEW = timedelta(days=1)
_FINGERPRINT_BYTES = 30
_GROUP = 4


def self_signed(key: EllipticCurvePrivateKey, *, now: datetime) -> x509.Certificate:
    """Return a certificate for a key, signed with it, that never expires."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Gatebell registry tokens")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(_NO_EXPIRY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )


def pem_of(certificate: x509.Certificate) -> str:
    """Return the certificate in PEM."""
    return certificate.public_bytes(Encoding.PEM).decode()


def x5c_of(certificate: x509.Certificate) -> list[str]:
    """Return the chain of one certificate: base64 of its DER, not base64url."""
    return [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()]


def libtrust_kid(certificate: x509.Certificate) -> str:
    """Return the fingerprint of a certificate's key: 240 bits of SHA-256 in base32, grouped."""
    public = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    text = base64.b32encode(sha256(public).digest()[:_FINGERPRINT_BYTES]).decode()
    groups = (text[start : start + _GROUP] for start in range(0, len(text), _GROUP))
    return ":".join(groups)
