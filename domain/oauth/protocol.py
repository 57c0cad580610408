"""Requests and responses of the OAuth endpoints, independent of the web framework."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from authlib.oauth2.rfc6749 import InvalidRequestError, OAuth2Error, OAuth2Payload, OAuth2Request

#: Any OAuth error; `redirect_uri` is its destination, if any.
ProtocolError = OAuth2Error

#: Responses with tokens are not cached (RFC 6749 section 5.1).
NO_STORE = (("Cache-Control", "no-store"), ("Pragma", "no-cache"))


@dataclass(frozen=True, kw_only=True)
class OAuthResponse:
    """An HTTP response: JSON when the body is a mapping, empty otherwise."""

    status: int
    body: Mapping[str, object] | str = ""
    headers: Sequence[tuple[str, str]] = field(default=())


_IN_BODY = " Send all parameters in the body: those in the URL are ignored."


class Parameters(OAuth2Payload):
    """The parameters of a query or form."""

    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        """Store all values of each name. An empty value counts as absent (section 3.1)."""
        self._lists = {name: [text for text in texts if text] for name, texts in values.items()}
        #: The first value of each name.
        self.first = {name: texts[0] for name, texts in self._lists.items() if texts}
        #: The names that occur more than once (forbidden by sections 3.1 and 3.2).
        self.repeated = sorted(name for name, texts in self._lists.items() if len(texts) > 1)

    @property
    def data(self) -> dict[str, str]:
        """Authlib's name for the first value of each name."""
        return self.first

    @property
    def datalist(self) -> defaultdict[str, list[str]]:
        """All values of each name."""
        return defaultdict(list, self._lists)


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """The pushed request that the parameters come from (RFC 9126)."""

    id: int


@dataclass(frozen=True, kw_only=True)
class FirstAsked:
    """When the browser brought a request for the first time, and the sign-in that it had then."""

    at: datetime
    #: None for a browser that was not signed in.
    sign_in_id: int | None


class ProtocolRequest(OAuth2Request):
    """A request to an OAuth endpoint.

    Authlib's own constructor refuses plain http by looking at the URI; here the transport is the
    operator's and the address is never taken from the request.
    """

    def __init__(
        self,
        method: str,
        parameters: Mapping[str, Sequence[str]],
        headers: Mapping[str, str],
    ) -> None:
        """Store the method, the parameters and the headers."""
        super().__init__(method=method, uri="https://request.invalid/", headers=dict(headers))
        self.payload = Parameters(parameters)
        #: Set if the parameters were pushed, and not brought by the browser.
        self.pushed: Pushed | None = None
        #: When the application pushed it: a later sign-in was made for this request.
        self.pushed_at: datetime | None = None
        #: Known once the request has led to a sign-in.
        self.first_asked: FirstAsked | None = None
        #: The number of the consent form that decided it; its code is derived from it.
        self.decision: str | None = None
        #: Whether the URL of a POST has a query, whose parameters are not read.
        self.has_query = False
        #: The application that the client credentials name, right or wrong; None if unknown.
        self.named_application_id: int | None = None

    @property
    def args(self) -> dict[str, str]:
        """Authlib's name for the parameters of a query."""
        return self.payload.data

    @property
    def form(self) -> dict[str, str]:
        """Authlib's name for the parameters of a form."""
        return self.payload.data

    def value(self, name: str) -> str | None:
        """Return a parameter, or None if it is absent or empty."""
        return self.payload.first.get(name)

    def required(self, name: str) -> str:
        """Return a parameter, or raise invalid_request naming it (RFC 6749 section 5.2)."""
        value = self.value(name)
        if value is None:
            advice = _IN_BODY if self.has_query else ""
            raise InvalidRequestError(f"Missing required parameter: {name}.{advice}")
        return value

    def refuse_repeated_parameters(self, known: frozenset[str]) -> None:
        """Raise invalid_request if a known parameter is given twice (section 3.2)."""
        for name in self.payload.repeated:
            if name in known:
                raise InvalidRequestError(f"The parameter {name} is given more than once.")


def in_description(names: Sequence[str], *, longest: int = 200) -> str:
    """Return a text from a request in the characters of an error description (section 5.2)."""
    text = ", ".join(names)[:longest]
    return "".join(each if " " <= each <= "~" and each not in '"\\' else "?" for each in text)


#: The parameters of an authorization request; nothing else of a pushed one is stored.
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
#: Parameters that other endpoints than the token endpoint read; RFC 6749 section 3.1 has us ignore
#: all others.
PARAMETERS = AUTHORIZATION_PARAMETERS | {
    "client_assertion",
    "client_assertion_type",
    "client_secret",
    "post_logout_redirect_uri",
    "request",
    "request_uri",
    "token",
    "token_type_hint",
}
