"""The endpoint URLs that the pages of an application show."""

from dataclasses import dataclass

from domain.oauth.discovery import openid_provider
from web.services import oauth_policy


@dataclass(frozen=True, kw_only=True)
class EndpointUrl:
    """A URL that a client is configured with."""

    #: As an id in the page.
    id: str
    label: str
    url: str


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
