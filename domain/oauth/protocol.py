"""Requests to and responses from the OAuth endpoints, independent of the web framework."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from authlib.oauth2.rfc6749 import InvalidRequestError, OAuth2Error, OAuth2Payload, OAuth2Request

#: Base class of all OAuth errors; `redirect_uri` is the URI to return the error to, if any.
ProtocolError = OAuth2Error

#: Headers of responses that must not be cached, since they contain tokens (RFC 6749 5.1).
OAUTH_NO_STORE_HEADERS = (("Cache-Control", "no-store"), ("Pragma", "no-cache"))


@dataclass(frozen=True, kw_only=True)
class OAuthResponse:
    """An HTTP response whose body is either a JSON object or empty."""

    status: int
    body: Mapping[str, object] | str = ""
    headers: Sequence[tuple[str, str]] = field(default=())


_IN_BODY_ADVICE = " Send all parameters in the body. Parameters in the URL are ignored."


class RequestParameters(OAuth2Payload):
    """Request parameters from a query string or a form."""

    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        """Store all values of each parameter.

        An empty value counts as absent (section 3.1).
        """
        self._lists = {name: [text for text in texts if text] for name, texts in values.items()}
        #: First value of each name.
        self.first = {name: texts[0] for name, texts in self._lists.items() if texts}
        #: Names that occur more than once, which sections 3.1 and 3.2 forbid.
        self.repeated = sorted(name for name, texts in self._lists.items() if len(texts) > 1)

    @property
    def data(self) -> dict[str, str]:
        """The first value of each parameter. Authlib expects this property name."""
        return self.first

    @property
    def datalist(self) -> defaultdict[str, list[str]]:
        """All values of each parameter, by name."""
        return defaultdict(list, self._lists)


@dataclass(frozen=True, kw_only=True)
class PushedRequestReference:
    """The ID of the pushed authorization request that contained the parameters (RFC 9126)."""

    id: int


@dataclass(frozen=True, kw_only=True)
class FirstPresentation:
    """The time when a browser first presented a request, and the sign-in that was active then."""

    at: datetime
    #: ID of the sign-in, or None if the browser was not signed in.
    sign_in_id: int | None


class ProtocolRequest(OAuth2Request):
    """A request to an OAuth endpoint.

    Authlib's constructor rejects URIs with plain http. Here the operator configures the transport,
    and the address is never taken from the request. A placeholder URI is used instead.
    """

    def __init__(
        self,
        method: str,
        parameters: Mapping[str, Sequence[str]],
        headers: Mapping[str, str],
    ) -> None:
        """Store the method, the parameters and the headers."""
        super().__init__(method=method, uri="https://request.invalid/", headers=dict(headers))
        self.payload = RequestParameters(parameters)
        #: The pushed request, or None if the browser sent the parameters itself.
        self.pushed: PushedRequestReference | None = None
        #: Time when the application pushed the request. A later sign-in counts as a sign-in for
        #: this request.
        self.pushed_at: datetime | None = None
        #: First presentation of the request; None unless the request has led to a sign-in.
        self.first_asked: FirstPresentation | None = None
        #: Number of the submitted consent form; the code is derived from it.
        self.decision: str | None = None
        #: True if the URL of a POST has a query, whose parameters are ignored.
        self.has_query = False
        #: ID of the application that the client credentials name, even if the credentials are
        #: wrong; None if the application is unknown.
        self.named_application_id: int | None = None

    @property
    def args(self) -> dict[str, str]:
        """The query parameters. Authlib expects this property name."""
        return self.payload.data

    @property
    def form(self) -> dict[str, str]:
        """The form parameters. Authlib expects this property name."""
        return self.payload.data

    def get_parameter(self, name: str) -> str | None:
        """Return a parameter, or None if it is absent or empty."""
        return self.payload.first.get(name)

    def require_parameter(self, name: str) -> str:
        """Return a required parameter.

        Raise invalid_request with the name of the parameter if it is missing (RFC 6749 5.2).
        """
        value = self.get_parameter(name)
        if value is None:
            advice = _IN_BODY_ADVICE if self.has_query else ""
            raise InvalidRequestError(f"Missing required parameter: {name}.{advice}")
        return value

    def check_no_repeated_parameters(self, known_names: frozenset[str]) -> None:
        """Reject a request that repeats a known parameter (section 3.2).

        Raise invalid_request with the name of the parameter.
        """
        for name in self.payload.repeated:
            if name in known_names:
                raise InvalidRequestError(f"The parameter {name} is given more than once.")


def format_error_description(names: Sequence[str], *, max_length: int = 200) -> str:
    """Return names from a request as text for an error description (section 5.2).

    The text is truncated, and characters that are not permitted are replaced with question marks.
    """
    text = ", ".join(names)[:max_length]
    return "".join(each if " " <= each <= "~" and each not in '"\\' else "?" for each in text)


#: Parameters of an authorization request. A pushed request is stored only with these parameters.
AUTHORIZATION_PARAMETERS = frozenset(
    {
        "client_id",
        "code_challenge",
        "code_challenge_method",
        "dpop_jkt",
        "id_token_hint",
        "login_hint",
        "max_age",
        "nonce",
        "prompt",
        "redirect_uri",
        "response_mode",
        "response_type",
        "scope",
        "state",
    }
)
#: Parameters of endpoints other than the token endpoint. RFC 6749 section 3.1 requires unknown
#: parameters to be ignored.
ENDPOINT_PARAMETERS = AUTHORIZATION_PARAMETERS | {
    "client_assertion",
    "client_assertion_type",
    "client_secret",
    "post_logout_redirect_uri",
    "request",
    "request_uri",
    "token",
    "token_type_hint",
}
