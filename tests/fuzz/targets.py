"""Fuzzing targets: parsers of untrusted input, which accept any bytes and may reject them.

An undocumented exception or a broken guarantee is a fault.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import urlsplit

from authlib.oauth2.rfc6749 import OAuth2Error

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.core.errors import DomainError
from domain.oauth.clients.assertions import parse_asserted_client_id
from domain.oauth.clients.authentication import parse_client_credentials
from domain.oauth.clients.redirect_uris import (
    describe_redirect_destination,
    find_redirect_uri_problems,
    is_redirect_uri_registered,
)
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.token_authentication.dpop import DpopTarget, check_dpop_proof
from domain.releases.checker.findings import CheckTimeoutError, UnreadableContentError
from domain.releases.checker.text_checks import check_text
from domain.releases.checker.tokens import CommentSyntax, tokenize_source

_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_TARGET = DpopTarget("POST", "https://gate.example/oauth/token")
_LOOPBACK = "http://127.0.0.1/callback"
_REGISTERED = ["https://client.example/callback", _LOOPBACK, "com.example.app:/callback"]
_NAMES = ("a.har", "access.log", "a.graphql", "a.yml", "a.py", "a.js", "a.sh", "a.php", "notes")


def read_alert(given: bytes) -> None:
    """Read a body in the format that its first byte chooses."""
    body_format = FORMATS[given[0] % len(FORMATS)] if given else FORMATS[0]
    with suppress(DomainError):
        body_format.read(given[1:], now=_NOW, reading=_READING)


def read_proof(given: bytes) -> None:
    """Check a DPoP proof, which cannot have a valid signature for this request."""
    with suppress(OAuth2Error):
        check_dpop_proof(given.decode("latin-1"), _TARGET, now=_NOW)


def read_assertion(given: bytes) -> None:
    """Read the client that a client assertion names."""
    named = parse_asserted_client_id(given.decode("utf-8", "replace"))
    assert named is None or isinstance(named, str)


def read_credentials(given: bytes) -> None:
    """Read an Authorization header and a form."""
    header, _, form = given.decode("latin-1").partition("\n")
    parameters = {"client_id": [form]} if form else {}
    with suppress(OAuth2Error):
        parse_client_credentials(ProtocolRequest("POST", parameters, {"Authorization": header}))


def read_redirect_uri(given: bytes) -> None:
    """Check that only registered redirect URIs pass, apart from ports of loopback addresses."""
    uri = given.decode("utf-8", "replace")
    find_redirect_uri_problems([uri], require_https=False)
    if is_redirect_uri_registered(uri, _REGISTERED):
        describe_redirect_destination(uri)
        assert uri in _REGISTERED or urlsplit(uri).hostname == "127.0.0.1"


def check_source(given: bytes) -> None:
    """Check a text for usage that a release breaks, in a file whose name the first byte selects."""
    name = _NAMES[given[0] % len(_NAMES)] if given else _NAMES[0]
    text = given[1:].decode("utf-8", "replace")
    with suppress(UnreadableContentError, CheckTimeoutError):
        check_text(name, text, seconds=1)


def split_source(given: bytes) -> None:
    """Split a text into tokens with each style of comments."""
    text = given.decode("utf-8", "replace")
    for comments in CommentSyntax:
        for _ in tokenize_source(text, comments):
            pass


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "alerts": read_alert,
    "assertions": read_assertion,
    "checker": check_source,
    "credentials": read_credentials,
    "lexer": split_source,
    "proofs": read_proof,
    "redirect_uris": read_redirect_uri,
}
