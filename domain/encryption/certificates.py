"""Checks of a server's certificate and its private key, both in PEM."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.hashes import MD5, SHA1
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import (
    Certificate,
    ExtensionNotFound,
    IPAddress,
    SubjectAlternativeName,
    load_pem_x509_certificates,
)

from domain.encryption.key_strength import RefusedKeyError, check_key, load_private_key
from domain.errors import InvalidError

#: Keys that certificates of TLS servers have.
_SIGNING = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)
#: A warning begins so long before the end, or after two thirds of a shorter life.
_NOTICE = timedelta(days=14)


class RefusedCertificateError(InvalidError):
    """The certificate or its key cannot be used; the text is a sentence that says why."""


@dataclass(frozen=True, kw_only=True)
class ServerCertificate:
    """What is known of a good certificate."""

    expires_at: datetime
    #: When its end begins to be announced.
    warning_at: datetime
    #: Host names and IP addresses that it is for.
    hosts: tuple[str, ...]

    def covers(self, host: str) -> bool:
        """Return whether it is for this host name or IP address (RFC 9525)."""
        parent = "*." + host.partition(".")[2]
        return any(each.lower() in {host.lower(), parent.lower()} for each in self.hosts)

    def expiry_warning(self, now: datetime) -> str | None:
        """Return a sentence if it ends soon or has ended, or None."""
        if now < self.warning_at:
            return None
        verb = "expires" if now < self.expires_at else "has expired"
        return f"the TLS certificate {verb} on {self.expires_at:%Y-%m-%d at %H:%M} UTC"


def check_server_certificate(
    certificate_pem: bytes, key_pem: bytes, *, now: datetime
) -> ServerCertificate:
    """Check a certificate with its chain, and the key that belongs to it.

    Raises RefusedCertificateError, or RefusedKeyError for the private key alone.
    """
    leaf, *issuers = _certificates(certificate_pem)
    for each in (leaf, *issuers):
        _check_signed_key(each)
    _check_time(leaf, now)
    key = load_private_key(key_pem)
    if _encoded(leaf.public_key()) != _encoded(key.public_key()):
        raise RefusedCertificateError("The private key does not belong to the certificate.")
    expires_at = leaf.not_valid_after_utc
    life = expires_at - leaf.not_valid_before_utc
    return ServerCertificate(
        expires_at=expires_at,
        warning_at=expires_at - min(_NOTICE, life / 3),
        hosts=_hosts(leaf),
    )


def _certificates(pem: bytes) -> list[Certificate]:
    try:
        return load_pem_x509_certificates(pem)
    except ValueError as error:
        raise RefusedCertificateError("This is not a certificate in PEM format.") from error


def _check_signed_key(certificate: Certificate) -> None:
    try:
        key = certificate.public_key()
        check_key(key)
    except RefusedKeyError as error:
        raise RefusedCertificateError(f"Certificate: {error}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise RefusedCertificateError("The key of the certificate cannot be read.") from error
    if not isinstance(key, (*_SIGNING, ed448.Ed448PublicKey)):
        raise RefusedCertificateError("The key of the certificate must be RSA, EC or Ed25519.")
    is_root = certificate.issuer == certificate.subject  # its signature proves nothing
    if not is_root and isinstance(certificate.signature_hash_algorithm, SHA1 | MD5):
        raise RefusedCertificateError("The certificate is signed with the weak SHA-1 or MD5.")


def _check_time(leaf: Certificate, now: datetime) -> None:
    begin, end = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    if now < begin:
        raise RefusedCertificateError(f"The certificate is not valid before {begin:%Y-%m-%d}.")
    if now >= end:
        raise RefusedCertificateError(f"The certificate expired on {end:%Y-%m-%d}.")


def _encoded(key: object) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return encoded


def _hosts(leaf: Certificate) -> tuple[str, ...]:
    try:
        names = leaf.extensions.get_extension_for_class(SubjectAlternativeName).value
    except (ExtensionNotFound, ValueError):
        return ()
    return tuple(
        str(each.value)
        for each in names
        if isinstance(each, IPAddress) or isinstance(each.value, str)
    )
