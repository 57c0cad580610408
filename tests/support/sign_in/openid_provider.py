"""A fake OpenID provider that behaves correctly unless a test changes it."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import sleep, time
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urljoin, urlsplit

import requests
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import RSAKey

from domain.audit.events import EventKind
from tests.support.accounts.people import unique
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS
from tests.support.wire.html_forms import form_to, submit

CLIENT_ID, CLIENT_SECRET = "gatebell", "the secret of a client / with + signs"
Answer = tuple[int, Mapping[str, str], bytes]
#: Ports of all providers of this test run.
_used_ports: set[int] = set()


@dataclass
class FakeProvider:
    """Data of users, and deliberate mistakes."""

    url: str = ""
    authorize: str = "/authorize"
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, auto_kid=True))
    #: Claims of the user who signs in next.
    person: dict[str, Any] = field(default_factory=dict)
    #: Changed claims of the ID token; None removes a claim.
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Functions that return other responses, by path.
    answers: dict[str, Callable[[], Answer]] = field(default_factory=dict)
    #: Function that creates the ID token from its claims.
    sign: Callable[[dict[str, Any]], str] | None = None
    #: Refresh token; None if the provider issues none.
    refresh_token: str | None = None
    #: True if responses to refresh requests contain an ID token.
    gives_id_tokens: bool = True
    #: Additional claims at userinfo.
    userinfo: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    #: PKCE verifiers that the token endpoint received.
    verifiers: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def reset_mistakes(self) -> None:
        """Reset all deliberate mistakes."""
        self.claims, self.metadata, self.answers, self.userinfo = {}, {}, {}, {}
        self.sign = self.refresh_token = None
        self.asked.clear()
        self.verifiers.clear()
        self.is_about()

    def is_about(self, **person: Any) -> None:
        """Use a new user for the next sign-ins."""
        name = unique("dana")
        self.person = {
            "sub": name,
            "preferred_username": name,
            "name": "Dana",
            "email": f"{name}@people.example",
            "email_verified": True,
            **person,
        }

    def signed(self, claims: dict[str, Any]) -> str:
        """Return an ID token."""
        if self.sign is not None:
            return self.sign(claims)
        header = {"alg": "RS256", "kid": str(self.key.kid)}
        return jwt.encode(header, claims, self.key)

    def response_to(self, asked: str, **changes: str | None) -> str:
        """Return the URL of the authorization response after a sign-in."""
        query = dict(parse_qsl(urlsplit(asked).query))
        code = unique("code")
        self.codes[code] = query
        given = {"code": code, "state": query["state"], "iss": self.url, **changes}
        sent = {name: value for name, value in given.items() if value is not None}
        return f"{query['redirect_uri']}?{urlencode(sent)}"

    def tokens_for(self, sent: Mapping[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Return the response of the token endpoint."""
        assert authorization.startswith("Basic "), authorization
        if sent["grant_type"] == "refresh_token":
            if sent["refresh_token"] != self.refresh_token:
                return 400, {"error": "invalid_grant"}
            pair = self._pair({})
            return 200, pair if self.gives_id_tokens else pair | {"id_token": None}
        asked = self.codes.pop(sent["code"], None)
        if asked is None:
            return 400, {"error": "invalid_grant"}
        assert create_s256_code_challenge(sent["code_verifier"]) == asked["code_challenge"]
        self.verifiers.append(sent["code_verifier"])
        assert sent["redirect_uri"] == asked["redirect_uri"]
        return 200, self._pair({"nonce": asked["nonce"]})

    def _pair(self, more: dict[str, Any]) -> dict[str, Any]:
        moment = int(time())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "iat": moment,
            "exp": moment + 300,
            "auth_time": moment,
            **self.person,
            **more,
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.refresh_token is not None:
            self.refresh_token = unique("refresh")
            SECRETS.remember(self.refresh_token)
        pair = {
            "access_token": unique("access"),
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self.signed(claims),
            "refresh_token": self.refresh_token,
        }
        return {name: value for name, value in pair.items() if value is not None}

    def document(self, path: str) -> dict[str, Any] | None:
        """Return the document at a path."""
        if path == "/.well-known/openid-configuration":
            usual = {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "userinfo_endpoint": f"{self.url}/userinfo",
                "jwks_uri": f"{self.url}/keys",
                "authorization_response_iss_parameter_supported": True,
            }
            return {**usual, **self.metadata}
        if path == "/keys":
            return {"keys": [self.key.as_dict(private=False)]}
        if path == "/userinfo":
            return {**self.person, **self.userinfo}
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    provider: FakeProvider

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that have closed the connection."""


class ProviderHandler(BaseHTTPRequestHandler):
    """Passes requests to the provider, and records them."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == self.server.provider.authorize:
            self.send_response(302)
            self.send_header("Location", self.server.provider.response_to(self.path))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._answer(path, *self.document(path, query))

    def document(self, path: str, _query: str) -> tuple[int, Any]:
        """Return the response to a GET request."""
        found = self.server.provider.document(path)
        return (404, {}) if found is None else (200, found)

    def written(self, found: Any) -> bytes:
        """Return a response as bytes."""
        return json.dumps(found).encode()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path in self.server.provider.answers:
            self._answer(self.path, 200, {})
            return
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        given = self.server.provider.tokens_for(sent, self.headers.get("Authorization", ""))
        self._answer(self.path, *given)

    def _answer(self, path: str, status: int, found: Any) -> None:
        self.server.provider.asked.append(path)
        headers: Mapping[str, str] = {"Content-Type": "application/json"}
        body = self.written(found)
        if path in self.server.provider.answers:
            status, headers, body = self.server.provider.answers[path]()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Do not log."""


@contextmanager
def running_provider(
    provider: FakeProvider | None = None, *, handler: type[ProviderHandler] = ProviderHandler
) -> Iterator[FakeProvider]:
    """Run a provider on a port of loopback that no earlier provider had."""
    SECRETS.remember(CLIENT_SECRET)
    server = _start_on_new_port(handler)
    server.provider = provider = provider or FakeProvider()
    provider.url = f"http://127.0.0.1:{server.server_port}"
    provider.is_about()
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _start_on_new_port(handler: type[ProviderHandler]) -> _Server:
    """Listen on a new port, because the service caches the metadata of an issuer's URL."""
    while (server := _Server(("127.0.0.1", 0), handler)).server_port in _used_ports:
        server.server_close()
    _used_ports.add(server.server_port)
    return server


def slowly(seconds: float) -> Answer:
    """Respond after a delay."""
    sleep(seconds)
    return 200, {}, b"{}"


def add_provider(gatebell: LiveGatebell, issuer: str, *more: str, title: str = "") -> str:
    """Add an identity provider, and return its slug."""
    slug = unique("idp")
    arguments = ("--slug", slug, "--title", title or slug, "--issuer", issuer)
    client = ("--client-id", CLIENT_ID, "--client-secret", CLIENT_SECRET)
    gatebell.cli("identity-providers", "create", *arguments, *client, *more)
    return slug


def ask_to_sign_in(
    gatebell: LiveGatebell, browser: requests.Session, slug: str, *, at: str = "/users/sign_in"
) -> requests.Response:
    """Press the button of a provider on the sign-in page."""
    page = browser.get(gatebell.url + at)
    return submit(browser, page, form_to(page, f"/users/auth/{slug}"))


def open_response_url(browser: requests.Session, url: str) -> requests.Response:
    """Open the URL of a response without following redirects."""
    return browser.get(url, allow_redirects=False)


def sign_in_through(
    gatebell: LiveGatebell,
    provider: FakeProvider,
    slug: str,
    browser: requests.Session | None = None,
    *,
    at: str = "/users/sign_in",
    **changes: str | None,
) -> requests.Response:
    """Sign in through a provider, and return the last response of the service."""
    browser = browser or gatebell.http()
    begun = ask_to_sign_in(gatebell, browser, slug, at=at)
    assert begun.status_code == 302, begun.text
    assert begun.headers["Location"].startswith(f"{provider.url}{provider.authorize}?"), (
        begun.headers
    )
    return open_response_url(browser, provider.response_to(begun.headers["Location"], **changes))


def landing_page(browser: requests.Session, answer: requests.Response) -> requests.Response:
    """Follow a redirect within the service."""
    return browser.get(urljoin(answer.url, answer.headers["Location"]))


def last_failure(gatebell: LiveGatebell, slug: str) -> str:
    """Return the reason of the last failed sign-in through a provider, from the audit log."""
    event = list_events_with_subject(gatebell, slug)[0]
    assert event.kind == EventKind.SIGN_IN_FAILED.value, event.kind
    return str(event.details["reason"])


def find_provider_id(gatebell: LiveGatebell, slug: str) -> str:
    """Return the id of a provider."""
    listed = gatebell.cli("identity-providers", "list")["identity_providers"]
    return next(str(each["id"]) for each in listed if each["slug"] == slug)
