"""TLS for the web server: handshakes, and a certificate that can be renewed at runtime."""

import logging
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from socket import SHUT_RD, socket
from urllib.parse import urlsplit

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

from domain.core.clock import read_system_clock
from domain.core.errors import InvalidError
from domain.core.tls import SECURITY_LEVEL, UnacceptableKeyError, check_key, load_private_key
from web.settings.environment import Settings

#: Types of public keys that a certificate may have, in addition to Ed448.
_KEY_TYPES = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)
#: Time before expiry at which warnings begin, unless the certificate's lifetime is short.
_EXPIRY_NOTICE = timedelta(days=14)


class InvalidCertificateError(InvalidError):
    """Error for an unusable certificate or key, with a message that explains why."""


@dataclass(frozen=True, kw_only=True)
class ServerCertificate:
    """Expiry time and host names of a valid certificate."""

    expires_at: datetime
    #: Time at which expiry warnings begin.
    warning_at: datetime
    #: Host names and IP addresses that the certificate covers.
    hosts: tuple[str, ...]

    def covers_host(self, host: str) -> bool:
        """Return whether the certificate covers this host name or IP address (RFC 9525)."""
        parent = "*." + host.partition(".")[2]
        return any(each.lower() in {host.lower(), parent.lower()} for each in self.hosts)

    def build_expiry_warning(self, now: datetime) -> str | None:
        """Return a warning about a certificate that expires soon or has expired, or None."""
        if now < self.warning_at:
            return None
        verb = "expires" if now < self.expires_at else "expired"
        return f"The TLS certificate {verb} on {self.expires_at:%Y-%m-%d at %H:%M} UTC."


def check_server_certificate(
    certificate_pem: bytes, key_pem: bytes, *, now: datetime
) -> ServerCertificate:
    """Check a certificate with its chain and its private key.

    Raise InvalidCertificateError, or UnacceptableKeyError if only the private key is invalid.
    """
    leaf, *issuers = _parse_certificates(certificate_pem)
    for each in (leaf, *issuers):
        _check_key_and_signature(each)
    _check_validity_period(leaf, now)
    key = load_private_key(key_pem)
    if _encode_key(leaf.public_key()) != _encode_key(key.public_key()):
        raise InvalidCertificateError("The private key does not match the certificate.")
    expires_at = leaf.not_valid_after_utc
    life = expires_at - leaf.not_valid_before_utc
    return ServerCertificate(
        expires_at=expires_at,
        warning_at=expires_at - min(_EXPIRY_NOTICE, life / 3),
        hosts=_list_hosts(leaf),
    )


def _parse_certificates(pem: bytes) -> list[Certificate]:
    try:
        return load_pem_x509_certificates(pem)
    except ValueError as error:
        raise InvalidCertificateError("This is not a certificate in PEM format.") from error


def _check_key_and_signature(certificate: Certificate) -> None:
    try:
        key = certificate.public_key()
        check_key(key)
    except UnacceptableKeyError as error:
        raise InvalidCertificateError(f"Certificate: {error}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidCertificateError("The key of the certificate cannot be read.") from error
    if not isinstance(key, (*_KEY_TYPES, ed448.Ed448PublicKey)):
        raise InvalidCertificateError("The key of the certificate must be RSA, EC or Ed25519.")
    is_root = certificate.issuer == certificate.subject  # a root's own signature does not matter
    if not is_root and isinstance(certificate.signature_hash_algorithm, SHA1 | MD5):
        raise InvalidCertificateError("The signature of the certificate uses weak SHA-1 or MD5.")


def _check_validity_period(leaf: Certificate, now: datetime) -> None:
    begin, end = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    if now < begin:
        raise InvalidCertificateError(f"The certificate is not valid before {begin:%Y-%m-%d}.")
    if now >= end:
        raise InvalidCertificateError(f"The certificate expired on {end:%Y-%m-%d}.")


def _encode_key(key: object) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return encoded


def _list_hosts(leaf: Certificate) -> tuple[str, ...]:
    try:
        names = leaf.extensions.get_extension_for_class(SubjectAlternativeName).value
    except (ExtensionNotFound, ValueError):
        return ()
    return tuple(
        str(each.value)
        for each in names
        if isinstance(each, IPAddress) or isinstance(each.value, str)
    )


_log = logging.getLogger("gatebell.tls")
#: Cipher suites for TLS 1.2 with forward secrecy and authenticated encryption. All TLS 1.3 suites
#: have both properties.
_CIPHER_SUITES = (
    f"{SECURITY_LEVEL}:ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:!aNULL:!aDSS"
)
_DAY_SECONDS = 86_400


class CertificateFilesError(Exception):
    """Error for unusable TLS_CERTIFICATE or TLS_KEY files, with a message that explains why."""


class _ServerSocket(ssl.SSLSocket):
    """TLS connection that sends close_notify, so that clients detect truncated responses."""

    def shutdown(self, how: int) -> None:
        """Shut down one or both directions of the connection.

        The standard library's method would stop encryption in both directions, even if only reading
        is shut down.
        """
        if how == SHUT_RD:
            # This leaves TLS in use, so that data written later is encrypted.
            socket.shutdown(self, how)
            return
        self._send_close_notify()
        super().shutdown(how)

    def close(self) -> None:
        """Close the connection without waiting for the client."""
        self._send_close_notify()
        super().close()

    def _send_close_notify(self) -> None:
        """Send close_notify (RFC 8446 section 6.1) if that is possible without waiting."""
        with suppress(OSError, ValueError):
            patience = self.gettimeout()
            self.settimeout(0.0)
            try:
                self.unwrap()
            finally:
                self.settimeout(patience)


def _build_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHER_SUITES)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    context.load_cert_chain(certificate, key)
    context.sslsocket_class = _ServerSocket
    return context


class ServedCertificate:
    """Certificate that this process serves, which is read again when its files change."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read and check the files.

        Raise CertificateFilesError if they cannot be used.
        """
        self._files = (certificate, key)
        self._seen = self._compute_file_signature()
        self.facts, self.context = self._read_certificate()
        self._next_warning = 0.0
        #: Reason why the renewed files are not in use, or None if they are in use.
        self.problem: str | None = None

    @property
    def expires_at(self) -> datetime:
        """Expiry time of the certificate in use."""
        return self.facts.expires_at

    def build_expiry_warning(self) -> str | None:
        """Return a warning about a certificate that expires soon or has expired, or None."""
        return self.facts.build_expiry_warning(read_system_clock())

    def build_host_warning(self, base_url: str) -> str | None:
        """Return a warning if the certificate does not cover the host of BASE_URL, or None."""
        host = urlsplit(base_url).hostname or ""
        if self.facts.covers_host(host):
            return None
        named = ", ".join(self.facts.hosts) or "no host"
        return f"The TLS certificate is for {named}, but the host of BASE_URL is {host}."

    def reload_changed_files(self) -> None:
        """Load changed certificate files if they are valid.

        Otherwise, keep the old certificate, log the reason, and store it in `problem`.
        """
        found = self._compute_file_signature()
        if found == self._seen:
            return
        self._seen = found
        try:
            self.facts, self.context = self._read_certificate()
        except CertificateFilesError as error:
            self.problem = str(error)
            _log.error(
                "Renewed TLS certificate was rejected; the old certificate stays in use.",
                extra={"event": "tls.certificate_rejected", "reason": str(error)},
            )
        else:
            self.problem = None
            self._next_warning = 0.0
            expires_at = self.expires_at.isoformat()
            _log.info(
                "Renewed TLS certificate was loaded.",
                extra={"event": "tls.certificate_renewed", "expires_at": expires_at},
            )

    def log_expiry_warning(self) -> None:
        """Log a warning, at most once a day, if the certificate expires soon or has expired."""
        moment = read_system_clock().timestamp()
        if moment >= self._next_warning and (warning := self.build_expiry_warning()):
            self._next_warning = moment + _DAY_SECONDS
            _log.warning(warning, extra={"event": "tls.certificate_expiring"})

    def _compute_file_signature(self) -> tuple[object, ...]:
        """Return a value that changes when one of the files changes."""
        with suppress(OSError):
            stats = [file.stat() for file in self._files]
            return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in stats)
        return ()

    def _read_certificate(self) -> tuple[ServerCertificate, ssl.SSLContext]:
        certificate, key = self._files
        facts = _check_certificate_files(
            _read_file("TLS_CERTIFICATE", certificate), _read_file("TLS_KEY", key)
        )
        try:
            return facts, _build_context(certificate, key)
        except OSError as error:  # the files have changed, or only OpenSSL rejects them
            reason = getattr(error, "reason", None) or error
            raise CertificateFilesError(f"TLS_CERTIFICATE, TLS_KEY: {reason}.") from error


def _read_file(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"{setting}: {file} cannot be read ({error.strerror})."
        raise CertificateFilesError(message) from error


def _check_certificate_files(certificate: bytes, key: bytes) -> ServerCertificate:
    try:
        return check_server_certificate(certificate, key, now=read_system_clock())
    except InvalidError as error:
        raise CertificateFilesError(f"TLS_CERTIFICATE, TLS_KEY: {error}") from error


def load_certificate(settings: Settings) -> ServedCertificate | None:
    """Return the certificate from the settings, or None if no certificate is set.

    Raise CertificateFilesError if it cannot be used.
    """
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    found = ServedCertificate(settings.tls_certificate, settings.tls_key)
    host = urlsplit(settings.base_url).hostname or ""
    if not found.facts.covers_host(host):
        _log.warning(
            "TLS certificate does not cover the host of BASE_URL.",
            extra={
                "event": "tls.certificate_host_mismatch",
                "host": host,
                "hosts": list(found.facts.hosts),
            },
        )
    return found


class _ServerState:
    certificate: ServedCertificate | None = None


def set_served_certificate(certificate: ServedCertificate | None) -> None:
    """Set the certificate that the processes of this web server serve."""
    _ServerState.certificate = certificate


def get_served_certificate() -> ServedCertificate | None:
    """Return the certificate that this process serves, or None if it does not terminate TLS."""
    return _ServerState.certificate


#: Descriptions of failed handshakes by OpenSSL's reason. Reasons with ALERT were sent by the
#: client.
_HANDSHAKE_FAILURES = {
    "HTTP_REQUEST": "the client speaks plain HTTP to the TLS port",
    "WRONG_VERSION_NUMBER": "the client does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "the client does not offer TLS 1.2 or higher",
    "VERSION_TOO_LOW": "the client does not offer TLS 1.2 or higher",
    "NO_SHARED_CIPHER": "the client offers no strong cipher suite",
    "UNEXPECTED_EOF_WHILE_READING": "the client closed the connection",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client rejected the certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client rejected the certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client considers the certificate expired",
}


def describe_handshake_failure(error: OSError) -> str:
    """Return a short reason why a handshake with a client failed."""
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        return _HANDSHAKE_FAILURES.get(reason, reason.lower().replace("_", " ") or "TLS error")
    if isinstance(error, TimeoutError):
        return "the client took too long"
    return "the connection was lost"
