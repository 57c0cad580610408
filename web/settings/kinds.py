"""Kinds of settings, which parse text into values and describe the allowed values."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from email.headerregistry import Address
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit

from domain.core.errors import InvalidError
from domain.delivery.outgoing.host_lists import HostList
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.releases.version import (
    InvalidReleaseDatesError,
    Release,
    format_release_dates,
    parse_release,
    parse_release_dates,
)

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

Value = TypeVar("Value")

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_MIN_SECRET_LENGTH = 32


class InvalidSettingValueError(ValueError):
    """Error for an invalid setting value, with a message that explains what is wrong."""


@dataclass(frozen=True)
class SettingKind(Generic[Value]):
    """Function that parses a setting, and a description of the allowed values.

    The function raises ValueError if the text is not allowed.
    """

    read: Callable[[str], Value]
    allowed: str
    #: Choices in a form. If there are none, the form has a text field.
    choices: tuple[str, ...] = ()
    #: Unit of a number, an empty string for a number without a unit, or None for other kinds.
    unit: str | None = None
    is_yes_or_no: bool = False
    #: `True` if an empty text is a valid value.
    may_be_empty: bool = False
    #: `True` if an empty variable means "none" instead of the default.
    empty_turns_off: bool = False
    #: `True` if the value has several lines.
    is_long: bool = False
    #: Function that returns the visible part of a secret value, or None if no part is shown.
    shown: Callable[[Value], str] | None = None
    #: `True` if the value is a path, for which NAME_FILE would be ambiguous.
    is_path: bool = False
    #: `True` if the value contains release dates.
    has_release_dates: bool = False


def build_whole_number_kind(minimum: int, maximum: int, unit: str = "") -> SettingKind[int]:
    """Return a setting kind for an integer from `minimum` to `maximum`."""

    def read(text: str) -> int:
        # int() would also accept "1_000", "+5" and digits from other scripts.
        if not re.fullmatch(r"[0-9]{1,18}", text) or not minimum <= int(text) <= maximum:
            raise ValueError(text)
        return int(text)

    of_what = f" of {unit}" if unit else ""
    return SettingKind(read, f"a whole number{of_what} from {minimum} to {maximum}", unit=unit)


def build_zero_or_whole_number_kind(minimum: int, maximum: int, unit: str) -> SettingKind[int]:
    """Return a setting kind for 0 or an integer from `minimum` to `maximum`."""
    known = build_whole_number_kind(minimum, maximum, unit)
    return replace(
        known,
        read=lambda text: 0 if text == "0" else known.read(text),
        allowed=f"0, or {known.allowed}",
    )


def build_yes_or_no_kind() -> SettingKind[bool]:
    """Return a setting kind for a Boolean value, such as `yes`, `true`, `off` or `0`."""
    words = {"true": True, "1": True, "yes": True, "on": True}
    words |= {"false": False, "0": False, "no": False, "off": False}

    def read(text: str) -> bool:
        if text.lower() not in words:
            raise ValueError(text)
        return words[text.lower()]

    return SettingKind(read, "true or false (also yes, no, on, off, 1, 0)", is_yes_or_no=True)


def build_choice_kind(*choices: str) -> SettingKind[str]:
    """Return a setting kind for one of the given words. Case is ignored."""
    by_folded = {choice.lower(): choice for choice in choices}

    def read(text: str) -> str:
        if text.lower() not in by_folded:
            raise ValueError(text)
        return by_folded[text.lower()]

    return SettingKind(read, "one of " + ", ".join(choices), choices=choices)


def _build_checked_text_kind(is_allowed: Callable[[str], bool], allowed: str) -> SettingKind[str]:
    """Return a setting kind for text that meets a condition. The text is not changed."""

    def read(text: str) -> str:
        if not is_allowed(text):
            raise ValueError(text)
        return text

    return SettingKind(read, allowed)


def build_line_kind(maximum: int) -> SettingKind[str]:
    """Return a setting kind for any printable text on one line."""
    return _build_checked_text_kind(
        lambda text: len(text) <= maximum and text.isprintable(),
        f"one line of at most {maximum} characters",
    )


def build_text_kind(maximum: int) -> SettingKind[str]:
    """Return a setting kind for printable text with any number of lines, or an empty string."""

    def read(text: str) -> str:
        lines = text.replace("\r\n", "\n")
        if len(lines) > maximum or not all(line.isprintable() for line in lines.split("\n")):
            raise ValueError(text)
        return lines

    return SettingKind(
        read, f"a text of at most {maximum} characters", may_be_empty=True, is_long=True
    )


def build_host_kind() -> SettingKind[str]:
    """Return a setting kind for an IP address or a host name."""

    def read(text: str) -> str:
        try:
            return str(ip_address(text.strip("[]")))
        except ValueError:
            if not _HOST_NAME.fullmatch(text):
                raise
            return text

    return SettingKind(read, "an IP address or a host name")


#: Pattern for a path with only one spelling, in which no segment consists of dots.
_BASE_PATH = re.compile(r"(?:/(?!\.+(?:/|$))[A-Za-z0-9._~-]+)*")
#: First segments of the service's own paths. If BASE_URL began with such a segment, it would be
#: unclear whether a proxy removes the path.
OWN_FIRST_SEGMENTS = frozenset(
    {
        *("-", ".well-known", "admin", "api", "groups", "healthz", "help", "metrics"),
        *("jwt", "manifest.webmanifest", "oauth", "projects", "readyz", "service-worker.js"),
        *("static", "users", "v2"),
    }
)


def build_base_url_kind() -> SettingKind[str]:
    """Return a setting kind for an http(s) URL without a query or fragment.

    A trailing slash is removed.
    """

    def read(text: str) -> str:
        parts = urlsplit(text)
        is_plain = not (parts.query or parts.fragment or "?" in text or "#" in text)
        has_userinfo = "@" in parts.netloc
        if parts.scheme not in {"http", "https"} or not parts.hostname or not is_plain:
            raise ValueError(text)
        if has_userinfo or not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError(text)
        _ = parts.port  # raises ValueError if it is not a port number
        path = parts.path.rstrip("/")
        first = path.strip("/").partition("/")[0].lower()
        if not _BASE_PATH.fullmatch(path) or first in OWN_FIRST_SEGMENTS:
            raise ValueError(text)
        return text.rstrip("/")

    return SettingKind(
        read,
        "an http or https URL without username, query or fragment (https://host/path); "
        "the path can contain letters, digits, dots, dashes, underscores and tildes, and must not "
        "begin like a path of the service",
    )


def build_origin_kind() -> SettingKind[str]:
    """Return a setting kind for an http(s) URL without a path.

    A trailing slash is removed.
    """

    def read(text: str) -> str:
        url = build_base_url_kind().read(text)
        if urlsplit(url).path:
            raise ValueError(text)
        return url

    return SettingKind(read, "an http or https URL with only a host and an optional port")


def build_directory_kind() -> SettingKind[Path]:
    """Return a setting kind for the path of a directory. The value is an absolute path."""
    return SettingKind(_make_absolute, "the path of a directory", is_path=True)


def build_file_kind() -> SettingKind[Path | None]:
    """Return a setting kind for the path of a file. The value is an absolute path.

    The file is not checked, so errors are reported when it is opened.
    """
    return SettingKind(_make_absolute, "the path of a file", is_path=True)


def _make_absolute(text: str) -> Path:
    if "\0" in text:
        raise ValueError(text)
    return Path(text).expanduser().absolute()


def build_ca_file_kind() -> SettingKind[Path | None]:
    """Return a setting kind for the path of a PEM file with CA certificates."""

    def read(text: str) -> Path:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - rarely needed
        from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

        from domain.core.tls import UnacceptableKeyError, check_key  # noqa: PLC0415

        path = _make_absolute(text)
        try:
            found = load_pem_x509_certificates(path.read_bytes())
            for each in found:
                check_key(each.public_key())
        except (OSError, UnsupportedAlgorithm, UnacceptableKeyError) as error:
            raise ValueError(text) from error
        return path

    allowed = "the path of a readable PEM file with certificates that have strong keys"
    return SettingKind(read, allowed, is_path=True)


_POSTGRES_PORT = 5432
#: Values of `ssl_min_protocol_version` that permit TLS versions below 1.2. The default is 1.2.
_OLD_TLS_VERSIONS = frozenset({"TLSv1", "TLSv1.1", ""})


def build_database_url_kind() -> SettingKind[str]:
    """Return a setting kind for the SQLAlchemy URL of a SQLite file or a Postgres database."""
    drivers = {"sqlite": "sqlite", "postgres": "postgresql+psycopg"}
    drivers |= {"postgresql": "postgresql+psycopg", "postgresql+psycopg": "postgresql+psycopg"}

    def read(text: str) -> str:
        from sqlalchemy.engine import make_url  # noqa: PLC0415 - the default is not parsed
        from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

        try:
            url = make_url(_move_hosts_to_query(text))
        except (ArgumentError, ValueError) as error:
            raise ValueError(text) from error
        # An in-memory database would be separate in each process.
        is_in_memory = url.drivername == "sqlite" and url.database in {None, "", ":memory:"}
        if url.drivername not in drivers or is_in_memory:
            raise ValueError(text)
        if url.query.get("ssl_min_protocol_version") in _OLD_TLS_VERSIONS:
            raise ValueError(text)
        # Otherwise a part of the password would be parsed as the host and appear in messages.
        if url.drivername != "sqlite" and _has_stray_password(url, text):
            raise ValueError(text)
        return url.set(drivername=drivers[url.drivername]).render_as_string(hide_password=False)

    return SettingKind(
        read,
        "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with @ / : ? # % in user "
        "and password percent-encoded, and several hosts separated by commas",
    )


def _move_hosts_to_query(text: str) -> str:
    """Move the hosts of a URL with several hosts to the query, as SQLAlchemy requires.

    libpq allows several hosts in a URL. Raise ValueError if a host is invalid.
    """
    scheme, separator, rest = text.partition("://")
    place, slash, path = rest.partition("/")
    user, at, hosts = place.rpartition("@")
    if "," not in hosts or "@" in user or "?" in place:
        return text
    found = [urlsplit(f"//{each}") for each in hosts.split(",")]
    names = [build_host_kind().read(each.hostname or "") for each in found]
    ports = [str(each.port or _POSTGRES_PORT) for each in found]
    named = f"host={','.join(names)}&port={','.join(ports)}"
    joint = "&" if "?" in path else "?"
    return f"{scheme}{separator}{user}{at}{slash or '/'}{path}{joint}{named}"


def list_database_hosts(url: "URL") -> tuple[str, ...]:
    """Return the hosts of a database URL, or an empty tuple for a local socket."""
    named = url.query.get("host", "")
    several = named.split(",") if isinstance(named, str) else named
    return tuple(each for each in (url.host or "", *several) if each and not each.startswith("/"))


def _has_stray_password(url: "URL", text: str) -> bool:
    """Return whether a part of the password was parsed as another part of the URL."""
    if "@" in text.partition("@")[2]:
        return True
    try:
        return bool(url.host and not build_host_kind().read(url.host))
    except ValueError:
        return True


def build_long_secret_kind() -> SettingKind[str]:
    """Return a setting kind for a secret of at least 32 characters."""
    return _build_checked_text_kind(
        lambda text: len(text) >= _MIN_SECRET_LENGTH, f"at least {_MIN_SECRET_LENGTH} characters"
    )


def build_long_secret_list_kind() -> SettingKind[tuple[str, ...]]:
    """Return a setting kind for comma-separated secrets of at least 32 characters each."""
    one = build_long_secret_kind()

    def read(text: str) -> tuple[str, ...]:
        found = tuple(one.read(part.strip()) for part in text.split(",") if part.strip())
        # A secret may contain spaces, but not between two parts that are each long enough to be a
        # secret.
        if any(sum(len(each) >= _MIN_SECRET_LENGTH for each in key.split()) > 1 for key in found):
            raise InvalidSettingValueError(
                "Use a comma between two secrets, not a space or a new line."
            )
        return found

    return SettingKind(read, f"a comma-separated list of secrets, {one.allowed} each")


def build_rate_kind() -> SettingKind[str]:
    """Return a setting kind for rates such as `600/minute;10000/hour`, `off`, or no value."""

    def read(text: str) -> str:
        if text.lower() in {"", "off"}:
            return ""
        from limits import parse_many  # noqa: PLC0415 - few set rates, and defaults are not read

        if any(rate.amount < 1 for rate in parse_many(text)):
            raise ValueError(text)
        return text

    return SettingKind(
        read,
        "empty or off for no limit, or a rate such as 600/minute",
        may_be_empty=True,
        empty_turns_off=True,
    )


_FROM_RELEASE = re.compile(r"(.+) from ([0-9]{1,4}\.[0-9]{1,4})")


def build_rate_from_release_kind() -> SettingKind[str]:
    """Return a setting kind for rates, optionally with the first release in which they apply."""

    def read(text: str) -> str:
        found = _FROM_RELEASE.fullmatch(text)
        value = build_rate_kind().read(found[1] if found else text)
        if found and not value:
            raise ValueError(text)
        return text if found else value

    return SettingKind(
        read,
        f"{build_rate_kind().allowed}, optionally with the first release that applies it, such as "
        "600/minute from 18.0",
        may_be_empty=True,
        empty_turns_off=True,
    )


def get_rate_in_release(value: str, running: Release) -> str:
    """Return the rates in a value of `build_rate_from_release_kind`, or an empty string."""
    found = _FROM_RELEASE.fullmatch(value)
    if found is None:
        return value
    return found[1] if running >= parse_release(found[2]) else ""


def build_counter_storage_kind() -> SettingKind[str]:
    """Return a setting kind for the URL of a counter store that the `limits` library supports."""

    def read(text: str) -> str:
        from limits.errors import ConfigurationError  # noqa: PLC0415 - as in `build_rate_kind`
        from limits.storage import storage_from_string  # noqa: PLC0415

        try:
            storage_from_string(text)
        except (ConfigurationError, AssertionError) as error:
            raise ValueError(text) from error
        except Exception as error:
            # Cluster clients connect immediately, and raise errors of various types.
            raise InvalidSettingValueError(
                f"The store is unreachable ({type(error).__name__})."
            ) from error
        return text

    return SettingKind(
        read,
        "memory://, or the URL of a Redis (redis://) or memcached (memcached://) server",
        shown=_remove_credentials,
    )


def _remove_credentials(url: str) -> str:
    """Return scheme, hosts and path of a URL, without parts that may contain a password."""
    scheme, _, rest = url.partition("://")
    place = rest.partition("?")[0].rpartition("@")[2]
    return f"{scheme}://{place}"


def build_proxy_url_kind() -> SettingKind[str]:
    """Return a setting kind for the URL of an HTTP proxy, or an empty string.

    The URL can contain a username and a password.
    """

    def read(text: str) -> str:
        parts = urlsplit(text)
        is_plain = not (parts.query or parts.fragment or parts.path.strip("/"))
        if parts.scheme != "http" or not parts.hostname or not parts.port or not is_plain:
            raise ValueError(text)
        if text.count("@") > 1 or (parts.password and not parts.username):
            raise ValueError(text)
        return text

    return SettingKind(
        read,
        "http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, percent-encoded",
        shown=lambda url: _remove_credentials(url) if url else "",
    )


def build_mail_url_kind() -> SettingKind[str]:
    """Return a setting kind for the URL of a mail server, or an empty string.

    The URL can contain a username and a password.
    """

    def read(text: str) -> str:
        parts = urlsplit(text)
        is_plain = not (parts.query or parts.fragment or parts.path.strip("/"))
        if parts.scheme not in {"smtp", "smtps"} or not parts.hostname or not is_plain:
            raise ValueError(text)
        if bool(parts.username) != bool(parts.password):
            raise ValueError(text)
        _ = parts.port  # raises ValueError if it is not a port number
        return text

    return SettingKind(read, "smtp://USER:PASSWORD@HOST:PORT or smtps://…; the user is optional")


def build_mail_address_kind() -> SettingKind[str]:
    """Return a setting kind for an email address."""

    def read(text: str) -> str:
        address = Address(addr_spec=text)
        if not (address.username and address.domain and text.isascii() and text.isprintable()):
            raise ValueError(text)
        return text

    return SettingKind(read, "an email address such as gatebell@example.com")


def build_email_domains_kind() -> SettingKind[str]:
    """Return a setting kind for domains of email addresses, or an empty list."""

    def read(text: str) -> str:
        # The module loads large tables, as in `normalize_email`.
        from email_validator import validate_email  # noqa: PLC0415

        check = partial(validate_email, check_deliverability=False, test_environment=True)
        named = (part.strip() for part in text.split(",") if part.strip())
        return ", ".join(check(f"somebody@{domain}").domain for domain in named)

    return SettingKind(
        read,
        "a comma-separated list of domains such as example.com, example.org",
        may_be_empty=True,
    )


def build_day_kind() -> SettingKind[str]:
    """Return a setting kind for a date, or an empty string."""

    def read(text: str) -> str:
        return date.fromisoformat(text).isoformat() if text else ""

    return SettingKind(read, "a date such as 2027-01-31", may_be_empty=True)


def build_release_dates_kind() -> SettingKind[str]:
    """Return a setting kind for a list of releases with their dates."""

    def read(text: str) -> str:
        try:
            return format_release_dates(parse_release_dates(text))
        except InvalidReleaseDatesError as error:
            raise InvalidSettingValueError(str(error)) from error

    return SettingKind(
        read,
        "releases with their dates, such as 17.0=2024-05-16 18.0=2025-05-15",
        may_be_empty=True,
        has_release_dates=True,
    )


def build_release_kind() -> SettingKind[str]:
    """Return a setting kind for a release number with two parts, such as `18.0`."""
    is_release = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}").fullmatch
    return _build_checked_text_kind(lambda text: bool(is_release(text)), "a release such as 18.0")


def build_optional_line_kind(maximum: int) -> SettingKind[str]:
    """Return a setting kind for any printable text on one line, or an empty string."""
    known = build_line_kind(maximum)
    return replace(known, allowed=f"empty, or {known.allowed}", may_be_empty=True)


def build_outgoing_url_kind() -> SettingKind[str]:
    """Return a setting kind for a URL to which requests can be sent, or an empty string."""

    def read(text: str) -> str:
        try:
            parse_outgoing_url(text)
        except InvalidError as error:
            raise ValueError(text) from error
        return text

    return SettingKind(read, "an http or https URL without username and fragment")


def build_networks_kind() -> SettingKind[str]:
    """Return a setting kind for networks in CIDR notation, or an empty list."""

    def read(text: str) -> str:
        return ", ".join(str(ip_network(part.strip())) for part in text.split(",") if part.strip())

    return SettingKind(read, "a comma-separated list of networks such as 10.0.0.0/8, fd00::/8")


def build_hosts_with_ports_kind() -> SettingKind[str]:
    """Return a setting kind for a list of hosts, each with a port or a range of ports."""

    def read(text: str) -> str:
        return str(HostList.from_text(text))

    return SettingKind(
        read,
        "a comma-separated list of hosts with ports such as chat.internal:443, 10.1.2.3:8000-8010",
    )
