"""TLS of the web server: its certificate, which is renewed while it runs, and handshakes."""

import logging
import ssl
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from socket import SHUT_RD, socket
from urllib.parse import urlsplit

from domain.clock import system_clock
from domain.encryption.certificates import ServerCertificate, check_server_certificate
from domain.encryption.outgoing import SECURITY_LEVEL
from domain.errors import InvalidError
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.tls")
#: Forward secrecy and authenticated encryption for TLS 1.2; all suites of 1.3 have both.
_SUITES = f"{SECURITY_LEVEL}:ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:!aNULL:!aDSS"
_DAY_SECONDS = 86_400


class CertificateFilesError(Exception):
    """TLS_CERTIFICATE and TLS_KEY cannot be used; the text is a sentence that names them."""


class _ServerSocket(ssl.SSLSocket):
    """A TLS connection that says goodbye, so that clients notice a response that was cut off."""

    def shutdown(self, how: int) -> None:
        """End a direction; the standard library would drop TLS for both."""
        if how == SHUT_RD:
            # What is left to be written is still encrypted.
            socket.shutdown(self, how)
            return
        self._say_goodbye()
        super().shutdown(how)

    def close(self) -> None:
        """Close the connection, without waiting for the client."""
        self._say_goodbye()
        super().close()

    def _say_goodbye(self) -> None:
        """Send close_notify (RFC 8446 section 6.1) if it can be sent at once."""
        with suppress(OSError, ValueError):
            patience = self.gettimeout()
            self.settimeout(0.0)
            try:
                self.unwrap()
            finally:
                self.settimeout(patience)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_SUITES)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    context.load_cert_chain(certificate, key)
    context.sslsocket_class = _ServerSocket
    return context


class ServedCertificate:
    """The certificate that this process shows, read again when its files have changed."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read and check the files; raise CertificateFilesError."""
        self._files = (certificate, key)
        self._seen = self._signature()
        self.facts, self.context = self._read()
        self._next_warning = 0.0

    @property
    def expires_at(self) -> datetime:
        """Return the end of the certificate that is shown now."""
        return self.facts.expires_at

    def expiry_warning(self) -> str | None:
        """Return a sentence if it ends soon or has ended, or None."""
        return self.facts.expiry_warning(system_clock())

    def refresh(self) -> None:
        """Take over changed files if they are good; else keep the old ones, and log why."""
        found = self._signature()
        if found == self._seen:
            return
        self._seen = found
        try:
            self.facts, self.context = self._read()
        except CertificateFilesError as error:
            _log.error("the renewed TLS certificate was refused", extra={"reason": str(error)})
        else:
            self._next_warning = 0.0
            fields = {"expires_at": self.expires_at.isoformat()}
            _log.info("the renewed TLS certificate is in use", extra=fields)

    def warn(self) -> None:
        """Log once a day that the certificate ends soon or has ended."""
        moment = system_clock().timestamp()
        if moment >= self._next_warning and (warning := self.expiry_warning()):
            self._next_warning = moment + _DAY_SECONDS
            _log.warning(warning)

    def _signature(self) -> tuple[object, ...]:
        """Return what changes when one of the files does."""
        with suppress(OSError):
            stats = [file.stat() for file in self._files]
            return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in stats)
        return ()

    def _read(self) -> tuple[ServerCertificate, ssl.SSLContext]:
        certificate, key = self._files
        facts = _checked(_content("TLS_CERTIFICATE", certificate), _content("TLS_KEY", key))
        try:
            return facts, _context(certificate, key)
        except OSError as error:  # a change since they were read, or a rule of OpenSSL alone
            reason = getattr(error, "reason", None) or error
            raise CertificateFilesError(f"TLS_CERTIFICATE, TLS_KEY: {reason}.") from error


def _content(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"{setting}: {file} cannot be read ({error.strerror})."
        raise CertificateFilesError(message) from error


def _checked(certificate: bytes, key: bytes) -> ServerCertificate:
    try:
        return check_server_certificate(certificate, key, now=system_clock())
    except InvalidError as error:
        raise CertificateFilesError(f"TLS_CERTIFICATE, TLS_KEY: {error}") from error


def open_certificate(settings: Settings) -> ServedCertificate | None:
    """Return the certificate of the settings, or None without one; raise CertificateFilesError."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    found = ServedCertificate(settings.tls_certificate, settings.tls_key)
    host = urlsplit(settings.base_url).hostname or ""
    if not found.facts.covers(host):
        _log.warning(
            "the TLS certificate is not for the host of BASE_URL",
            extra={"host": host, "hosts": list(found.facts.hosts)},
        )
    return found


class _Served:
    certificate: ServedCertificate | None = None


def serve_certificate(certificate: ServedCertificate | None) -> None:
    """Note the certificate that the processes of this web server show."""
    _Served.certificate = certificate


def served_certificate() -> ServedCertificate | None:
    """Return the certificate that this process shows, or None if it does not end TLS."""
    return _Served.certificate


#: Words for what fails in handshakes, by OpenSSL's reason; alerts come from clients.
_FAILURES = {
    "HTTP_REQUEST": "the client speaks plain HTTP to the TLS port",
    "WRONG_VERSION_NUMBER": "the client does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "the client does not offer TLS 1.2 or higher",
    "VERSION_TOO_LOW": "the client does not offer TLS 1.2 or higher",
    "NO_SHARED_CIPHER": "the client offers no strong cipher suite",
    "UNEXPECTED_EOF_WHILE_READING": "the client closed the connection",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client refuses the certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client refuses the certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client finds the certificate expired",
}


def handshake_failure(error: OSError) -> str:
    """Return in a few words why a handshake with a client failed."""
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        return _FAILURES.get(reason, reason.lower().replace("_", " ") or "TLS error")
    if isinstance(error, TimeoutError):
        return "the client took too long"
    return "the connection was lost"
