"""Rules and comparison of redirect URIs (RFC 6749 3.1.2, RFC 8252, RFC 9700 2.1)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import islice
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

#: URL schemes that run code or show embedded content in the browser.
_BROWSER_SCHEMES = (
    "about blob brave chrome chrome-error chrome-search chrome-untrusted data devtools edge feed"
    " file filesystem jar javascript livescript mhtml mk mocha moz-icon ms-its opera pcast res"
    " resource vbscript view-source vivaldi wyciwyg"
)
#: Schemes that pass the response to a program unrelated to the application.
_PROGRAM_SCHEMES = (
    "android-app callto content facetime facetime-audio geo intent irc irc6 ircs itms itms-apps"
    " itms-services magnet mailto maps market message mms mmst ms-appinstaller ms-cxh ms-excel"
    " ms-msdt ms-officecmd ms-powerpoint ms-settings ms-windows-store ms-word nntp news search"
    " search-ms shell sip sips skype sms smsto snews ssh tel telnet tn3270 vnc rdp webcal webcals"
    " xmpp"
)
#: Schemes of network protocols, and schemes that do not locate anything. `urn` is allowed, since
#: existing programs still register urn:ietf:wg:oauth:2.0:oob.
_NETWORK_SCHEMES = (
    "acap afp cid cifs coap coaps dav davs dict dns dns-sd ftp ftps git gopher imap imaps info ipp"
    " ipps jdbc ldap ldaps mid mqtt mqtts nfs pop pop3 redis rediss rlogin rsync rtmp rtsp rtsps"
    " sftp smb smtp smtps snmp spdy stun stuns svn tag tftp turn turns uuid wais ws wss"
)

FORBIDDEN_SCHEMES = frozenset(f"{_BROWSER_SCHEMES} {_PROGRAM_SCHEMES} {_NETWORK_SCHEMES}".split())


#: Parameters of the response, which a registered parameter could hide or forge.
RESERVED_PARAMETERS = frozenset({"code", "state", "iss", "error", "error_description"})
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_UNSAFE_CHARACTERS = re.compile(r"[\s\x00-\x1f\x7f\\<>\"`{}|^]")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
#: Pattern of a host name or IP literal, with an optional port.
_AUTHORITY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?")
#: Pattern of URIs with loopback literals, whose port may vary (RFC 8252 section 7.3).
_LOOPBACK = re.compile(
    r"(?P<host>http://(?:127\.0\.0\.1|\[::1\]))(?::(?P<port>[0-9]{1,5}))?(?P<rest>/.*|\?.*)?"
)
_MAX_PORT = 65_535
MAX_REDIRECT_URI_LENGTH = 2000
#: Maximum number of characters stored from a rejected URI.
_MAX_STORED_LENGTH = 500
#: Patterns for the user information in a URI and for the value of a query parameter.
_USER_INFO = re.compile(r"//[^/?#]*@")
_PARAMETER_VALUE = re.compile(r"(?<==)[^&#]+")
#: Maximum number of reported problems; more problems would not be helpful.
_MAX_PROBLEMS = 20


@dataclass(frozen=True, kw_only=True)
class RedirectDestination:
    """The destination of a redirect as a phrase, and whether the redirect is insecure."""

    words: str
    is_insecure: bool


def check_redirect_uri(uri: str) -> None:
    """Check that a URI may be registered.

    Raise ValueError with a description of the problem if the URI is not allowed.
    """
    problem = _find_problem(uri)
    if problem:
        raise ValueError(f'"{uri[:100]}" {problem}')


def find_redirect_uri_problems(uris: Iterable[str], *, require_https: bool) -> tuple[str, ...]:
    """Return an error message for each URI that cannot be registered, up to a limit."""
    sentences = (_describe_problem(uri, require_https=require_https) for uri in uris)
    return tuple(islice((each for each in sentences if each is not None), _MAX_PROBLEMS))


def _describe_problem(uri: str, *, require_https: bool) -> str | None:
    try:
        check_redirect_uri(uri)
    except ValueError as error:
        return str(error)
    if require_https and is_insecure_redirect_uri(uri):
        return f'"{uri[:100]}" must start with https://, which this instance requires.'
    return None


def _find_problem(uri: str) -> str | None:
    if len(uri) > MAX_REDIRECT_URI_LENGTH:
        return f"is longer than {MAX_REDIRECT_URI_LENGTH} characters."
    if _UNSAFE_CHARACTERS.search(uri) or not uri.isascii():
        return "contains characters that are not allowed in a URI. Percent-encode them."
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return "is not a URI."
    return _find_part_problem(parts, uri)


def _find_part_problem(parts: SplitResult, uri: str) -> str | None:
    scheme = parts.scheme.lower()
    parameters = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    checks = (
        (not _SCHEME.fullmatch(scheme), "must have a scheme, such as https://."),
        (scheme in FORBIDDEN_SCHEMES, f"has the scheme {scheme}:, which is forbidden."),
        ("#" in uri, "must not have a fragment (the part after #)."),
        (scheme in {"http", "https"} and not parts.hostname, "has no host."),
        ("@" in parts.netloc, "must not contain a username or password."),
        (bool(parts.netloc) and not _AUTHORITY.fullmatch(parts.netloc), "has an invalid host."),
        (
            bool(parameters & RESERVED_PARAMETERS),
            "must not have a parameter named code, state, iss or error, which responses add.",
        ),
        (
            scheme not in {"http", "https"} and not (parts.path or parts.netloc),
            "must have a host or a path after the scheme.",
        ),
        (scheme == "localhost", "must have a scheme. Use http://localhost…"),
    )
    return next((sentence for is_wrong, sentence in checks if is_wrong), None)


def _is_loopback_literal(host: str | None) -> bool:
    try:
        return host is not None and ip_address(host).is_loopback
    except ValueError:
        return False


def is_insecure_redirect_uri(uri: str) -> bool:
    """Return whether a redirect sends the code unencrypted over a network."""
    parts = urlsplit(uri)
    is_local = _is_loopback_literal(parts.hostname) or parts.hostname == "localhost"
    return parts.scheme == "http" and not is_local


def _split_port(uri: str) -> tuple[str, str] | None:
    """Return the parts of a loopback URI before and after the port, or None for other URIs."""
    found = _LOOPBACK.fullmatch(uri)
    if found is None or int(found["port"] or 0) > _MAX_PORT:
        return None
    return found["host"], found["rest"] or ""


def is_redirect_uri_registered(requested: str, registered: list[str]) -> bool:
    """Return whether a requested redirect URI is registered.

    URIs are compared character by character (RFC 9700 section 2.1). Only the port of 127.0.0.1 and
    [::1] may vary (RFC 8252 section 7.3).
    """
    if requested in registered:
        return True
    if "#" in requested or _UNSAFE_CHARACTERS.search(requested):
        return False
    wanted = _split_port(requested)
    return wanted is not None and any(wanted == _split_port(known) for known in registered)


#: Query characters that need no encoding (RFC 3986 section 3.4) and are common in `state`.
_UNENCODED_CHARACTERS = "/:,"
#: Query length in characters above which only characters that need encoding are encoded, so that
#: encoding does not make a long `state` even longer.
_LONG_QUERY_LENGTH = 4_000


def add_query_parameters(uri: str, parameters: list[tuple[str, str]]) -> str:
    """Add parameters to a URI without changing the registered part."""
    base, mark, query = uri.partition("?")
    added = urlencode(parameters)
    if len(added) > _LONG_QUERY_LENGTH:
        added = urlencode(parameters, safe=_UNENCODED_CHARACTERS)
    return f"{base}?{query}{'&' if mark and query else ''}{added}"


def redact_redirect_uri(uri: str) -> str:
    """Return a redirect URI in storable form, with possible secrets replaced by “…”.

    User information, parameter values and the fragment may be secret.
    """
    cut = uri[:MAX_REDIRECT_URI_LENGTH]
    before, hash_mark, _ = cut.partition("#")
    path, question_mark, query = before.partition("?")
    kept = f"{_USER_INFO.sub('//…@', path)}{question_mark}{_PARAMETER_VALUE.sub('…', query)}"
    text = f"{kept}{hash_mark}{'…' if hash_mark else ''}"
    return "".join(each if each.isprintable() else "?" for each in text)[:_MAX_STORED_LENGTH]


def describe_redirect_destination(uri: str) -> RedirectDestination:
    """Describe the destination of a redirect for the consent page."""
    parts = urlsplit(uri)
    words = f"the app “{parts.scheme}:”"
    if parts.scheme in {"http", "https"}:
        words = parts.netloc
    if _is_loopback_literal(parts.hostname) or parts.hostname == "localhost":
        words = f"this computer ({parts.netloc})"
    return RedirectDestination(words=words, is_insecure=is_insecure_redirect_uri(uri))
