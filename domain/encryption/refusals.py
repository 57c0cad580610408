"""Sentences for failed TLS handshakes: old protocol, weak key, unknown issuer and so on."""

import ssl
from collections.abc import Iterator

from domain.encryption.outgoing import RefusedPeerError

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
