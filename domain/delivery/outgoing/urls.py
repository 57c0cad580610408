"""URLs that users specify and to which the service sends requests."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from domain.core.errors import InvalidError

_MAX_URL_LENGTH = 2_000
_DEFAULT_PORTS = {"http": 80, "https": 443}
_FORBIDDEN_CHARACTERS = re.compile(r"[\s\\\"<>^`{|}]")
#: Host name of letters, digits, dots, hyphens and underscores, or an IPv6 address.
_HOST_PATTERN = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_.])?|[0-9A-Fa-f:.]{2,45}")


@dataclass(frozen=True, kw_only=True)
class OutgoingUrl:
    """The parts of a URL.

    The path and the query may contain a secret, so logs may contain only `redacted`.
    """

    scheme: str
    host: str
    port: int
    #: Path and query, as in a request line.
    target: str

    @property
    def is_encrypted(self) -> bool:
        """True if requests to the URL use TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port for the Host header, without a default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def redacted(self) -> str:
        """The URL without its query and without path segments that look like a secret."""
        segments = self.target.partition("?")[0].split("/")
        path = "/".join("…" if _looks_like_secret(each) else each for each in segments)
        return f"{self.scheme}://{self.authority}{path}"


#: Minimum length at which a path segment without separators is considered a secret.
_MIN_SECRET_LENGTH = 24
_SEPARATOR = re.compile(r"[-_.]")
_DIGIT, _UPPER, _LOWER = re.compile(r"[0-9]"), re.compile(r"[A-Z]"), re.compile(r"[a-z]")


def _looks_like_secret(segment: str) -> bool:
    """Return whether a path segment looks like a random secret, as in many webhook URLs."""
    has_digit, has_upper = _DIGIT.search(segment), _UPPER.search(segment)
    if len(segment) >= _MIN_SECRET_LENGTH and not _SEPARATOR.search(segment):
        return True
    if len(segment) >= 16:  # noqa: PLR2004 - the next line explains it
        return bool(has_digit or (has_upper and _LOWER.search(segment)))
    return len(segment) >= 8 and bool(has_digit and has_upper)  # noqa: PLR2004 - like T0123ABCD


def parse_outgoing_url(text: str, *, field: str = "url") -> OutgoingUrl:
    """Return the parts of an absolute http or https URL.

    Raise InvalidError if the URL is not valid.
    """
    if problem := _find_problem(text):
        raise InvalidError(f"The URL {problem}.", field=field)
    parts = urlsplit(text)
    scheme = parts.scheme.lower()
    path = parts.path or "/"
    return OutgoingUrl(
        scheme=scheme,
        host=(parts.hostname or "").lower(),
        port=parts.port or _DEFAULT_PORTS[scheme],
        target=f"{path}?{parts.query}" if parts.query else path,
    )


def _find_problem(text: str) -> str | None:
    """Return the problem with a URL as a phrase that follows “The URL”, or None."""
    if not 0 < len(text) <= _MAX_URL_LENGTH:
        return f"can have at most {_MAX_URL_LENGTH} characters" if text else "is missing"
    if not text.isascii() or not text.isprintable() or _FORBIDDEN_CHARACTERS.search(text):
        return "has an invalid character. Percent-encode it, and write host names in ASCII"
    parts = _split_url(text)
    if parts is None:
        return "has an invalid host or port"
    if not text.lower().startswith(("http://", "https://")):
        return "must begin with https:// or http://"
    return _find_authority_problem(parts.netloc, parts.hostname or "", has_fragment="#" in text)


def _split_url(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        has_port = parts.port != 0  # `port` raises ValueError for an invalid port number.
    except ValueError:
        return None
    return parts if has_port else None


def _find_authority_problem(netloc: str, host: str, *, has_fragment: bool) -> str | None:
    if "@" in netloc:
        return "must not contain a username or password, which would be visible to anyone"
    if not _HOST_PATTERN.fullmatch(host):
        return "has an invalid host name"
    return "must not have a fragment (#…), because it is never sent" if has_fragment else None
