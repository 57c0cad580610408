"""Tokens in requests (RFC 6750 section 2), and proofs of the keys to which tokens are bound."""

from datetime import datetime
from enum import Enum
from urllib.parse import quote

from authlib.oauth2.rfc6749 import InvalidRequestError
from flask import Request, request
from flask.globals import request_ctx

from domain.oauth.token_authentication.bearer import Bearer
from domain.oauth.token_authentication.dpop import (
    DpopTarget,
    TokenPresentation,
    check_token_binding,
)
from web.http.url_converters import decode_reference
from web.services import get_services, get_settings


def check_key_proof(bearer: Bearer, token: str, *, now: datetime) -> None:
    """Check the proof of the key to which a token is bound.

    A proof is required if the token is bound to a key, and not allowed otherwise. Raise
    MissingKeyProofError for a missing, invalid or unexpected proof.
    """
    scheme = request.environ.get(_AUTHORIZATION_KEY, "")[:5].lower()
    is_with_proof = scheme == "dpop "
    if bearer.key_thumbprint is None and not is_with_proof:
        return  # Nearly all tokens are unbound.
    # The URL comes from BASE_URL and never from the Host header.
    url = f"{get_settings().base_url}{quote(decode_reference(request.path))}"
    presented = TokenPresentation(
        target=DpopTarget(request.method, url, token),
        is_with_proof=is_with_proof,
        proof=request.headers.get("DPoP"),
    )
    check_token_binding(
        bearer,
        presented,
        connection=get_services().connections,
        keyring=get_services().keyring,
        now=now,
    )


#: Header in which API clients send personal access tokens.
PRIVATE_TOKEN_HEADER = "PRIVATE-TOKEN"  # noqa: S105 - its name


class TokenLocation(Enum):
    """Part of a request that can contain a token."""

    #: `Authorization: Bearer …` header, or `Authorization: DPoP …` header (RFC 9449 section 7.1).
    HEADER = "header"
    #: `access_token=…` parameter in the form of a POST (section 2.2).
    FORM = "form"
    #: `access_token=…` query parameter.
    QUERY = "query"
    #: `PRIVATE-TOKEN: …` header.
    PRIVATE_HEADER = "private header"
    #: `private_token=…` query parameter.
    PRIVATE_QUERY = "private query"


_AUTHORIZATION_KEY = "HTTP_AUTHORIZATION"
#: Query parameters that contain tokens. Generated links omit them.
TOKEN_QUERY_PARAMETERS = ("access_token", "private_token")
_FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
OAUTH_TOKEN_LOCATIONS = (TokenLocation.HEADER, TokenLocation.QUERY)
USERINFO_TOKEN_LOCATIONS = (TokenLocation.HEADER, TokenLocation.FORM, TokenLocation.QUERY)
API_TOKEN_LOCATIONS = (
    TokenLocation.HEADER,
    TokenLocation.QUERY,
    TokenLocation.PRIVATE_HEADER,
    TokenLocation.PRIVATE_QUERY,
)


class AmbiguousTokenError(InvalidRequestError):  # type: ignore[misc]
    """Error for a request that contains different tokens.

    The response is invalid_request with a challenge (RFC 6750 section 3).
    """

    def get_headers(self) -> list[tuple[str, str]]:
        """Return the response headers, including the challenge."""
        challenge = f'Bearer realm="Gatebell", error="{self.error}"'
        return [("Content-Type", "application/json"), ("WWW-Authenticate", challenge)]


def _find_tokens(location: TokenLocation, request: Request) -> list[str]:
    if location is TokenLocation.QUERY:
        return request.args.getlist("access_token") if request.query_string else []
    if location is TokenLocation.PRIVATE_QUERY:
        return request.args.getlist("private_token") if request.query_string else []
    if location is TokenLocation.FORM:
        is_form = request.method == "POST" and request.mimetype == _FORM_MEDIA_TYPE
        return request.form.getlist("access_token") if is_form else []
    if location is TokenLocation.PRIVATE_HEADER:
        return [request.headers.get(PRIVATE_TOKEN_HEADER, "")]
    scheme, _, rest = request.environ.get(_AUTHORIZATION_KEY, "").partition(" ")
    return [rest.strip()] if scheme.lower() in {"bearer", "dpop"} else []


def find_presented_token(*locations: TokenLocation) -> str | None:
    """Return the token in a request, or None.

    The same token in several places counts as one token. Raise AmbiguousTokenError for different
    tokens.
    """
    asked = request_ctx.request  # Each access through Flask's proxies is slow.
    given = [token for location in locations for token in _find_tokens(location, asked) if token]
    if not given:
        return None
    if len(given) > 1 and len(set(given)) > 1:
        raise AmbiguousTokenError(
            "The request contains two different access tokens. Send only one token."
        )
    return given[0]
