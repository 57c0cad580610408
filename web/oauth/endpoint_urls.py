"""URLs of the endpoints: those that an application's pages show, and that of its next request.

An application may ask for authorization by POST (OpenID Connect Core section 3.1.2.1), from its own
origin; the browser leaves our cookie behind then, so that nobody knows who is signed in. The
request goes on as a GET, with which the cookie comes, and which decides nothing without the user.

One that needs a new sign-in comes back after it, and says when it came first: sealed, since who
could choose that moment would get by without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from flask import url_for
from werkzeug.datastructures import MultiDict

from domain.errors import DomainError
from domain.oauth.discovery import openid_provider
from web.sealing.sealer import BrokenSealError, seal, unseal
from web.services import now, oauth_policy

#: By their names in the metadata, in the order in which clients ask for them.
_LABELS = {
    "issuer": "Issuer",
    "authorization_endpoint": "Authorization",
    "token_endpoint": "Token",
    "userinfo_endpoint": "Userinfo",
    "jwks_uri": "Keys (JWKS)",
    "end_session_endpoint": "Logout",
    "introspection_endpoint": "Introspection",
    "revocation_endpoint": "Revocation",
    "device_authorization_endpoint": "Device authorization",
    "pushed_authorization_request_endpoint": "Pushed authorization requests",
}
_METADATA = {
    "openid-configuration": "OpenID Connect metadata",
    "oauth-authorization-server": "OAuth metadata",
}
#: The web server reads a line of 8190 characters, with the method and the version.
_LONGEST = 8000
_ASKED_AT = "asked_at"
_PURPOSE = "authorization request"
#: For signing in, with a second factor or a new password.
_LIFETIME = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class EndpointUrl:
    """A URL that a client is configured with."""

    #: As an id in the page.
    id: str
    label: str
    url: str


def endpoints() -> tuple[EndpointUrl, ...]:
    """Return the issuer, the documents that list everything, and the endpoints that are enabled."""
    policy = oauth_policy()
    provider = openid_provider(policy)
    issuer, *others = (
        EndpointUrl(id=f"url-{name}", label=label, url=str(provider[name]))
        for name, label in _LABELS.items()
        if name in provider
    )
    documents = (
        EndpointUrl(id=f"url-{name}", label=label, url=f"{policy.issuer}/.well-known/{name}")
        for name, label in _METADATA.items()
    )
    info = f"{policy.issuer}/oauth/token/info"
    return (issuer, *documents, *others, EndpointUrl(id="url-info", label="Token info", url=info))


class LongRequestError(DomainError):
    """The parameters do not fit into a URL."""

    def __init__(self) -> None:
        """Set the message."""
        super().__init__("The authorization request of the application is too long.")


def authorization_url(parameters: Mapping[str, Sequence[str]]) -> str:
    """Return the URL, with every value of every parameter, or raise LongRequestError."""
    url = f"{url_for('authorize.consent')}?{urlencode(parameters, doseq=True)}"
    if len(url) > _LONGEST:
        raise LongRequestError
    return url


def with_asked_at(parameters: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Return the parameters with a sealed `asked_at` of now."""
    return {**parameters, _ASKED_AT: [seal(now().isoformat(), purpose=_PURPOSE)]}


def read_asked_at(parameters: MultiDict[str, str]) -> datetime | None:
    """Return the sealed time in `asked_at`, or None if it is absent or invalid."""
    try:
        moment = unseal(parameters.get(_ASKED_AT, ""), purpose=_PURPOSE, lifetime=_LIFETIME)
    except BrokenSealError:
        return None
    return datetime.fromisoformat(moment)
