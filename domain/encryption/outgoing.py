"""TLS of outgoing connections: 1.2 or higher, verified, without weak or huge keys; else why not."""

import ssl
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from domain.encryption.key_strength import RefusedKeyError, check_key

#: OpenSSL's level 2: RSA, DSA and DH of 2048 bits, curves of 224, no SHA-1 and no MD5.
SECURITY_LEVEL = "@SECLEVEL=2"
OUTGOING_SUITES = (
    f"{SECURITY_LEVEL}:ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
)
#: The errors of OpenSSL's verification (`openssl verify`, X509_V_ERR_…) that occur in practice.
_VERIFICATION = {
    9: "its certificate is not valid yet",
    10: "its certificate has expired",
    18: "its certificate is self-signed, and not in TRUSTED_CA_FILE",
    19: "the issuer of its certificate is unknown: add it to TRUSTED_CA_FILE",
    20: "the issuer of its certificate is unknown: add it to TRUSTED_CA_FILE",
    21: "the issuer of its certificate is unknown: add it to TRUSTED_CA_FILE",
    62: "its certificate is for another host name",
    64: "its certificate is for another IP address",
    66: "the key of its certificate is too weak: RSA needs 2048 bits, a curve 224",
    67: "the key of a certificate authority is too weak: RSA needs 2048 bits, a curve 224",
    68: "its certificate is signed with a weak digest such as SHA-1",
}
_OLD = "it does not offer TLS 1.2 or higher"
_NO_TLS = "it does not answer in TLS"
#: The reason codes of OpenSSL and the alerts of servers, by their names.
_REASONS = {
    "UNSUPPORTED_PROTOCOL": _OLD,
    "NO_PROTOCOLS_AVAILABLE": _OLD,
    "TLSV1_ALERT_PROTOCOL_VERSION": _OLD,
    "WRONG_SSL_VERSION": _OLD,
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "HTTP_REQUEST": _NO_TLS,
    "DH_KEY_TOO_SMALL": "its Diffie-Hellman key is too weak: it needs 2048 bits",
    "EE_KEY_TOO_SMALL": _VERIFICATION[66],
    "BAD_SIGNATURE": "its signature is wrong",
    "WRONG_SIGNATURE_TYPE": "it signs with a weak digest or key",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "it signs with a weak digest or key",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it has no strong cipher suite in common with this service",
    "SSL/TLS_ALERT_HANDSHAKE_FAILURE": "it has no strong cipher suite in common with this service",
    "NO_CIPHERS_AVAILABLE": "it has no strong cipher suite in common with this service",
    "UNEXPECTED_EOF_WHILE_READING": "it closed the connection during the handshake",
}


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
    connections. `refusal_reason` (`domain/encryption/outgoing.py`) explains its errors.
    """
    context = ssl.create_default_context()
    if trusted_ca_file is not None:
        context.load_verify_locations(trusted_ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(OUTGOING_SUITES)
    context.sslsocket_class = _CheckedSocket
    return context


def refusal_reason(error: BaseException) -> str | None:
    """Return in a few words why a TLS connection to a server failed; None for other errors.

    Clients wrap the error of the handshake into others, which are searched. The text holds nothing
    that the server has sent.
    """
    for each in _causes(error):
        if isinstance(each, RefusedPeerError):
            text = str(each.strerror).rstrip(".")
            return text[:1].lower() + text[1:]
        if isinstance(each, ssl.SSLCertVerificationError):
            return _VERIFICATION.get(each.verify_code, "its certificate cannot be verified")
        if isinstance(each, ssl.SSLError):
            return _REASONS.get(each.reason or "", "the TLS handshake failed")
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an error and everything that it was raised from, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        linked = (*current.args, getattr(current, "reason", None), current.__cause__)
        waiting += [each for each in (*linked, current.__context__) if _is_error(each)]


def _is_error(value: object) -> bool:
    return isinstance(value, BaseException)
