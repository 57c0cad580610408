"""Tokens in requests (RFC 6750 section 2), and proofs of the keys that they are bound to."""

from datetime import datetime
from enum import Enum
from urllib.parse import quote

from authlib.oauth2.rfc6749 import InvalidRequestError
from flask import Request, request
from flask.globals import request_ctx

from domain.oauth.presented_tokens.bearer import Bearer
from domain.oauth.presented_tokens.dpop import PresentedToken, ProofTarget, check_bound
from web.http.routes import decoded_reference
from web.services import services, settings


def check_key(found: Bearer, token: str, *, now: datetime) -> None:
    """Raise KeyNotProvedError for a missing, invalid or unexpected proof of the token's key.

    A proof is required if the token is bound to a key, and not allowed otherwise.
    """
    scheme = request.environ.get(_AUTHORIZATION, "")[:5].lower()
    is_with_proof = scheme == "dpop "
    if found.key_thumbprint is None and not is_with_proof:
        return  # nearly all tokens are unbound
    # The URL comes from BASE_URL and never from the Host header.
    url = f"{settings().base_url}{quote(decoded_reference(request.path))}"
    presented = PresentedToken(
        target=ProofTarget(request.method, url, token),
        is_with_proof=is_with_proof,
        proof=request.headers.get("DPoP"),
    )
    check_bound(
        found, presented, connection=services().connections, keyring=services().keyring, now=now
    )


#: Header in which API clients send personal access tokens.
PRIVATE_TOKEN = "PRIVATE-TOKEN"  # noqa: S105 - its name


class TokenLocation(Enum):
    """Part of a request that can contain a token."""

    #: Header `Authorization: Bearer …` or `Authorization: DPoP …` (RFC 9449 section 7.1).
    HEADER = "header"
    #: Parameter `access_token=…` in the form of a POST (section 2.2).
    FORM = "form"
    #: Query parameter `access_token=…`.
    QUERY = "query"
    #: Header `PRIVATE-TOKEN: …`.
    PRIVATE_HEADER = "private header"
    #: Query parameter `private_token=…`.
    PRIVATE_QUERY = "private query"


_AUTHORIZATION = "HTTP_AUTHORIZATION"
#: Query parameters with a token, which links never repeat.
QUERY_TOKENS = ("access_token", "private_token")
_FORM = "application/x-www-form-urlencoded"
OAUTH_LOCATIONS = (TokenLocation.HEADER, TokenLocation.QUERY)
USERINFO_LOCATIONS = (TokenLocation.HEADER, TokenLocation.FORM, TokenLocation.QUERY)
API_LOCATIONS = (
    TokenLocation.HEADER,
    TokenLocation.QUERY,
    TokenLocation.PRIVATE_HEADER,
    TokenLocation.PRIVATE_QUERY,
)


class AmbiguousTokenError(InvalidRequestError):  # type: ignore[misc]
    """Error for different tokens in a request: invalid_request with the challenge of section 3."""

    def get_headers(self) -> list[tuple[str, str]]:
        """Return the headers of the response."""
        challenge = f'Bearer realm="Gatebell", error="{self.error}"'
        return [("Content-Type", "application/json"), ("WWW-Authenticate", challenge)]


def _tokens_in(location: TokenLocation, asked: Request) -> list[str]:
    if location is TokenLocation.QUERY:
        return asked.args.getlist("access_token") if asked.query_string else []
    if location is TokenLocation.PRIVATE_QUERY:
        return asked.args.getlist("private_token") if asked.query_string else []
    if location is TokenLocation.FORM:
        is_form = asked.method == "POST" and asked.mimetype == _FORM
        return asked.form.getlist("access_token") if is_form else []
    if location is TokenLocation.PRIVATE_HEADER:
        return [asked.headers.get(PRIVATE_TOKEN, "")]
    scheme, _, rest = asked.environ.get(_AUTHORIZATION, "").partition(" ")
    return [rest.strip()] if scheme.lower() in {"bearer", "dpop"} else []


def presented_token(*locations: TokenLocation) -> str | None:
    """Return the token of a request, or None.

    The same token in several places counts as one token. Raise AmbiguousTokenError for different
    tokens.
    """
    asked = request_ctx.request  # each access through Flask's proxies is slow
    given = [token for location in locations for token in _tokens_in(location, asked) if token]
    if not given:
        return None
    if len(given) > 1 and len(set(given)) > 1:
        raise AmbiguousTokenError("The request has two different access tokens. Send only one.")
    return given[0]
