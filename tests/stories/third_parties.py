"""Third-party applications: clients with Authlib and with requests-oauthlib.

They only know the URLs of the service, and a simulated browser submits the real pages.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import requests
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session as OAuthlibSession

from tests.support.accounts.people import ClientCredentials, Person
from tests.support.oauth.oauth_wire import open_and_follow, sign_in_on, submit_decision
from tests.support.service.live import LiveGatebell

_VERIFIER = "the.verifier~of-Authlib_which-does-not-make-its-own-1234567890"


@dataclass(frozen=True)
class Addresses:
    """Endpoints that a client needs."""

    authorize: str
    token: str
    revoke: str
    introspect: str
    userinfo: str

    @classmethod
    def written_down(cls, gatebell: LiveGatebell) -> "Addresses":
        """Return the endpoints of the documentation."""
        base = f"{gatebell.url}/oauth"
        return cls(*(f"{base}/{each.name}" for each in fields(cls)))


class ThirdParty(ABC):
    """A client library, configured for one registered application."""

    #: Values of the application's registration.
    registration: Mapping[str, Any] = {"confidential": True}

    def __init__(self, client: ClientCredentials, addresses: Addresses) -> None:
        self.client = client
        self.addresses = addresses
        self.session = self._new_session()
        self.session.trust_env = False  # Requests to loopback use no proxy.

    @abstractmethod
    def _new_session(self) -> Any:
        """Create the session of the library."""

    @abstractmethod
    def authorization_url(self) -> str:
        """Return the authorization URL for the browser."""

    @abstractmethod
    def take(self, address: str) -> None:
        """Take the URL that the browser returned to, and exchange the code."""

    @abstractmethod
    def refresh(self) -> None:
        """Refresh the tokens."""

    @abstractmethod
    def revoke(self) -> requests.Response:
        """Revoke the tokens."""

    @abstractmethod
    def introspect(self) -> requests.Response:
        """Introspect the access token."""

    @property
    def token(self) -> dict[str, Any]:
        return dict(self.session.token)

    def get(self, url: str) -> requests.Response:
        """Call an API; the session presents the token."""
        answer: requests.Response = self.session.get(url)
        return answer


class AuthlibWithBasic(ThirdParty):
    """Authlib's session with its default, the secret in a header."""

    method = "client_secret_basic"

    def _new_session(self) -> Any:
        return AuthlibSession(
            self.client.client_id,
            self.client.secret if self.registration["confidential"] else None,
            scope=self.client.scopes,
            redirect_uri=self.client.redirect_uri,
            token_endpoint_auth_method=self.method,
            revocation_endpoint_auth_method=self.method,
            **self._pkce(),
        )

    def _pkce(self) -> dict[str, Any]:
        return {}

    def _proof(self) -> dict[str, str]:
        return {"code_verifier": _VERIFIER} if self._pkce() else {}

    def authorization_url(self) -> str:
        url, self._state = self.session.create_authorization_url(
            self.addresses.authorize, **self._proof()
        )
        return str(url)

    def take(self, address: str) -> None:
        self.session.fetch_token(
            self.addresses.token,
            authorization_response=address,
            state=self._state,
            **self._proof(),
        )

    def refresh(self) -> None:
        self.session.refresh_token(self.addresses.token)

    def revoke(self) -> requests.Response:
        token = self.token["access_token"]
        answer: requests.Response = self.session.revoke_token(self.addresses.revoke, token)
        return answer

    def introspect(self) -> requests.Response:
        token = self.token["access_token"]
        answer: requests.Response = self.session.introspect_token(self.addresses.introspect, token)
        return answer


class AuthlibWithPost(AuthlibWithBasic):
    """Authlib's session with the secret in the body."""

    method = "client_secret_post"


class AuthlibWithSecretAndPkce(AuthlibWithBasic):
    """Authlib's session with a secret and PKCE."""

    registration: Mapping[str, Any] = {"confidential": True, "require_pkce": True}

    def _pkce(self) -> dict[str, Any]:
        return {"code_challenge_method": "S256"}


class AuthlibInPublic(AuthlibWithSecretAndPkce):
    """Authlib's session without a secret."""

    registration: Mapping[str, Any] = {"confidential": False}
    method = "none"


class OAuthlibWithBasic(ThirdParty):
    """requests-oauthlib's session with its default, the secret in a header."""

    pkce: str | None = None

    def _new_session(self) -> Any:
        return OAuthlibSession(
            self.client.client_id,
            scope=self.client.scopes.split(),
            redirect_uri=self.client.redirect_uri,
            pkce=self.pkce,
        )

    def authorization_url(self) -> str:
        url, _state = self.session.authorization_url(self.addresses.authorize)
        return str(url)

    def take(self, address: str) -> None:
        self.session.fetch_token(
            self.addresses.token,
            authorization_response=address,
            client_secret=self.client.secret,
        )

    def refresh(self) -> None:
        self.session.refresh_token(self.addresses.token, auth=self._basic())

    def revoke(self) -> requests.Response:
        return self._ask_about(self.addresses.revoke, self.token["refresh_token"])

    def introspect(self) -> requests.Response:
        return self._ask_about(self.addresses.introspect, self.token["access_token"])

    def _ask_about(self, address: str, token: str) -> requests.Response:
        """Post a token, since the library has no method for this."""
        answer: requests.Response = self.session.post(
            address, data={"token": token}, auth=self._basic(), withhold_token=True
        )
        return answer

    def _basic(self) -> HTTPBasicAuth:
        return HTTPBasicAuth(self.client.client_id, self.client.secret)


class OAuthlibWithPost(OAuthlibWithBasic):
    """requests-oauthlib's session with the secret in the body."""

    def take(self, address: str) -> None:
        self.session.fetch_token(
            self.addresses.token,
            authorization_response=address,
            client_secret=self.client.secret,
            include_client_id=True,
        )

    def refresh(self) -> None:
        self.session.refresh_token(
            self.addresses.token,
            client_id=self.client.client_id,
            client_secret=self.client.secret,
        )


class OAuthlibInPublic(OAuthlibWithBasic):
    """requests-oauthlib's session without a secret: it sends Basic with an empty password."""

    registration: Mapping[str, Any] = {"confidential": False}
    pkce = "S256"

    def take(self, address: str) -> None:
        self.session.fetch_token(self.addresses.token, authorization_response=address)

    def _basic(self) -> HTTPBasicAuth:
        return HTTPBasicAuth(self.client.client_id, "")


#: Configurations of the libraries.
KINDS: tuple[type[ThirdParty], ...] = (
    AuthlibWithBasic,
    AuthlibWithPost,
    AuthlibWithSecretAndPkce,
    AuthlibInPublic,
    OAuthlibWithBasic,
    OAuthlibWithPost,
    OAuthlibInPublic,
)


@dataclass
class Browser:
    """A browser with a user, which submits the real pages."""

    session: requests.Session
    person: Person
    #: Pages on the way: "sign in", "consent".
    seen: list[str] = field(default_factory=list)

    def walk(self, url: str, decision: str = "authorize") -> str:
        """Open a URL, submit the pages of the service, and return the redirect out of it."""
        page = open_and_follow(self.session, url)
        if 'name="password"' in page.text:
            self.seen.append("sign in")
            page = sign_in_on(self.session, page, self.person)
        if 'name="decision"' in page.text:
            self.seen.append("consent")
            page = submit_decision(self.session, page, decision)
        assert page.status_code == 302, f"{page.status_code} {page.url}:\n{page.text}"
        return page.headers["Location"]
