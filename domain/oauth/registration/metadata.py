"""Parses and checks client metadata (RFC 7591 section 2).

A member is what its reader makes of it; members that are not in the table are passed over, as the
section wants. Addresses are kept and shown, and never opened from here.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from authlib.oauth2.rfc7591 import InvalidClientMetadataError, InvalidRedirectURIError

from domain.access.scopes import ADMIN_MODE
from domain.errors import InvalidError
from domain.oauth.clients.applications import check_details
from domain.oauth.clients.authentication import Method
from domain.oauth.clients.redirect_uris import LONGEST_URI
from domain.oauth.clients.types import ApplicationDetails

#: The scopes of a client that names none: enough for sign-in.
DEFAULT_SCOPES = "read_user openid profile email"
UNNAMED = "Application without a name"
_LONGEST_NAME = 100
_LONGEST_TEXT = 255
_MOST_VALUES = 50
#: No user name, no white space, nothing that could end an attribute or a header.
_HTTPS = re.compile(r"https://[A-Za-z0-9.\-:\[\]]+(?:[/?#][!#-;=?-~]*)?")


@dataclass(frozen=True, kw_only=True)
class ClientMetadata:
    """The requested metadata of a client."""

    details: ApplicationDetails
    #: The metadata without a column of its own, as it is stored and returned.
    own_words: Mapping[str, object]


def read_metadata(
    body: Mapping[str, object], *, offered: Sequence[str], require_https: bool
) -> ClientMetadata:
    """Check client metadata, or raise one of the errors of section 3.2.2.

    `offered` are the grant types that clients can register for.
    """
    said = {
        name: read(name, body[name])
        for name, read in _READERS.items()
        if body.get(name) is not None  # null is the same as nothing (RFC 7592 section 2.2)
    }
    method = _method(said.get("token_endpoint_auth_method", Method.BASIC.value))
    grant_types = _grant_types(said.get("grant_types"), offered)
    own_words = {
        **{name: said[name] for name in _KEPT_AS_SAID if name in said},
        "token_endpoint_auth_method": method.value,
        "grant_types": grant_types,
        "response_types": _response_types(said.get("response_types"), grant_types),
    }
    details = ApplicationDetails(
        name=said.get("client_name") or UNNAMED,
        redirect_uris=said.get("redirect_uris", ()),
        scopes=tuple((said.get("scope") or DEFAULT_SCOPES).split()),
        confidential=method is not Method.NONE,
        require_pkce=True,
        require_dpop=said.get("dpop_bound_access_tokens", False),
    )
    if "authorization_code" in grant_types and not details.redirect_uris:
        raise InvalidRedirectURIError("The grant type authorization_code needs redirect_uris.")
    _check(details, require_https=require_https)
    return ClientMetadata(details=details, own_words=own_words)


def _check(details: ApplicationDetails, *, require_https: bool) -> None:
    """Apply the rules that hold for every application."""
    try:
        scopes = check_details(details, require_https=require_https)
    except InvalidError as error:
        is_uri = error.field == "redirect_uris"
        kind = InvalidRedirectURIError if is_uri else InvalidClientMetadataError
        raise kind(_in_ascii(str(error))) from error
    if ADMIN_MODE in scopes:
        raise InvalidClientMetadataError(f"Only administrators register the scope {ADMIN_MODE}.")


def _in_ascii(sentence: str) -> str:
    """Return a sentence in the characters that RFC 6749 lets a description have."""
    plain = sentence.replace("“", "'").replace("”", "'")
    return "".join(each if " " <= each <= "~" and each not in '"\\' else "?" for each in plain)


def _method(text: str) -> Method:
    try:
        return Method(text)
    except ValueError:
        names = ", ".join(Method)
        raise InvalidClientMetadataError(
            f"token_endpoint_auth_method must be one of {names}."
        ) from None


def _grant_types(asked: list[str] | None, offered: Sequence[str]) -> list[str]:
    """Return the supported ones of the requested grant types.

    The server may leave out what it does not have (section 2); the answer tells the client.
    """
    wanted = set(asked or ["authorization_code"]) | {"refresh_token"}
    found = [name for name in offered if name in wanted]
    if found == ["refresh_token"]:
        raise InvalidClientMetadataError("None of the grant_types is available to this client.")
    return found


def _response_types(asked: list[str] | None, grant_types: list[str]) -> list[str]:
    """Return the response types that go with the grant types (the table of section 2.1)."""
    fitting = ["code"] if "authorization_code" in grant_types else []
    if asked is not None and fitting and "code" not in asked:
        raise InvalidClientMetadataError("The only supported response_type is code.")
    return fitting


def _wrong(name: str, must: str) -> InvalidClientMetadataError:
    kind = InvalidRedirectURIError if name == "redirect_uris" else InvalidClientMetadataError
    return kind(f"{name} must be {must}.")


def _text(name: str, value: object, *, longest: int = _LONGEST_TEXT) -> str:
    if not isinstance(value, str) or len(value) > longest or _has_control_characters(value):
        raise _wrong(name, f"a text of at most {longest} characters")
    return value


def _has_control_characters(text: str) -> bool:
    # A lone surrogate is legal JSON, but cannot be stored.
    return any(unicodedata.category(each) in {"Cc", "Cs"} for each in text)


def _texts(name: str, value: object, *, longest: int = _LONGEST_TEXT) -> list[str]:
    if not isinstance(value, list) or len(value) > _MOST_VALUES:
        raise _wrong(name, f"an array of at most {_MOST_VALUES} texts")
    return [_text(name, each, longest=longest) for each in value]


def _https(name: str, value: object) -> str:
    url = _text(name, value, longest=LONGEST_URI)
    try:
        is_fine = _HTTPS.fullmatch(url) and urlsplit(url).port != 0
    except ValueError:  # brackets or a port that are none
        is_fine = False
    if not is_fine:
        raise _wrong(name, "an https address")
    return url


def _yes_or_no(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "true or false")
    return value


_READERS: Mapping[str, Callable[[str, object], Any]] = {
    "redirect_uris": partial(_texts, longest=LONGEST_URI),
    "client_name": partial(_text, longest=_LONGEST_NAME),
    "scope": partial(_text, longest=1000),
    "token_endpoint_auth_method": _text,
    "grant_types": _texts,
    "response_types": _texts,
    "client_uri": _https,
    "logo_uri": _https,
    "tos_uri": _https,
    "policy_uri": _https,
    "contacts": _texts,
    "software_id": _text,
    "software_version": _text,
    # RFC 9449 section 5.2 and RFC 9126 section 6.
    "dpop_bound_access_tokens": _yes_or_no,
    "require_pushed_authorization_requests": _yes_or_no,
}
_KEPT_AS_SAID = (
    "client_uri",
    "logo_uri",
    "tos_uri",
    "policy_uri",
    "contacts",
    "software_id",
    "software_version",
    "require_pushed_authorization_requests",
)
