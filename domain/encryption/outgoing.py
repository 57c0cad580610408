"""TLS of outgoing connections: 1.2 or higher, verified, and without weak or huge keys."""

import ssl
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from domain.encryption.key_strength import RefusedKeyError, check_key

#: OpenSSL's level 2: RSA, DSA and DH of 2048 bits, curves of 224, no SHA-1 and no MD5.
SECURITY_LEVEL = "@SECLEVEL=2"
OUTGOING_SUITES = (
    f"{SECURITY_LEVEL}:ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
)


class RefusedPeerError(ssl.SSLError):
    """The key of the server's certificate is refused; the text says why."""


class _CheckedSocket(ssl.SSLSocket):
    """A TLS connection that is given up if the key of the server is too large.

    OpenSSL's security level has no upper limit.
    """

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - the standard library's signature
        """Shake hands, then check the server's certificate before anything is sent."""
        # gevent's socket has no `block`.
        super().do_handshake(*([block] if block else []))
        encoded = self.getpeercert(binary_form=True)
        if encoded is not None:
            _check_certificate(encoded)


def _check_certificate(encoded: bytes) -> None:
    try:
        check_key(x509.load_der_x509_certificate(encoded).public_key())
    except RefusedKeyError as error:
        raise RefusedPeerError(ssl.SSL_ERROR_SSL, str(error)) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        message = "the key of the server's certificate cannot be read"
        raise RefusedPeerError(ssl.SSL_ERROR_SSL, message) from error


def outgoing_tls_context(trusted_ca_file: Path | None = None) -> ssl.SSLContext:
    """Return the context for an outgoing connection, which verifies certificate and host name.

    It trusts the certificate authorities of the system, and those of a PEM file if there is one
    (the setting TRUSTED_CA_FILE). Reading them takes some 20 ms, so keep the context for several
    connections. `refusal_reason` (`domain/encryption/refusals.py`) explains its errors.
    """
    context = ssl.create_default_context()
    if trusted_ca_file is not None:
        context.load_verify_locations(trusted_ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(OUTGOING_SUITES)
    context.sslsocket_class = _CheckedSocket
    return context
