"""Requests of a relying party to a provider, and responses that it rejects."""

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, parse_qsl, urlsplit

import orjson
import pytest

from domain.accounts.identity_providers.errors import (
    InvalidProviderResponseError,
    ProviderUnreachableError,
)
from domain.accounts.identity_providers.presets import PRESETS
from domain.accounts.identity_providers.provider_client import (
    ProviderClient,
    ProviderHttpAccess,
    ProviderRegistration,
    ProviderSignInSecrets,
)
from domain.core.keyring import Keyring
from domain.delivery.outgoing.errors import ConnectionFailedError
from domain.delivery.outgoing.urls import OutgoingUrl

ISSUER = "https://login.example"
SECRETS = ProviderSignInSecrets.from_number("a number", Keyring("a key of tests"))
NOW = datetime(2027, 3, 1, tzinfo=UTC)


class Provider:
    """A provider that returns configured responses and records requests."""

    def __init__(self, **metadata: object) -> None:
        self.metadata = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize?tenant=7",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
            **metadata,
        }
        self.asked: list[tuple[str, Mapping[str, list[str]], Mapping[str, str]]] = []
        self.is_away = False

    def fetch(
        self, url: OutgoingUrl, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        self.asked.append((url.target, parse_qs((body or b"").decode()), headers))
        if self.is_away:
            message = "the connection was refused"
            raise ConnectionFailedError(message)
        if body is None:
            return 200, orjson.dumps(self.metadata)
        return 200, b'{"access_token": "a", "refresh_token": "r"}'

    def party(
        self,
        upstream: ProviderHttpAccess | None = None,
        *,
        now: datetime = NOW,
        preset: str = "other",
    ) -> ProviderClient:
        client = ProviderRegistration(
            title="Login",
            preset=preset,
            issuer=ISSUER,
            client_id="gate:bell",
            client_secret="with / and +",
            scopes="openid email",
            redirect_uri="https://gate.example/users/auth/login/callback",
            groups_claim=None,
        )
        return ProviderClient(client, upstream or ProviderHttpAccess(fetch=self.fetch), now=now)


def test_client_id_and_secret_are_encoded_in_the_header() -> None:
    provider = Provider()
    provider.party().redeem_code("the code", SECRETS)
    target, sent, headers = provider.asked[-1]
    both = b64encode(b"gate%3Abell:with%20%2F%20and%20%2B").decode()
    assert (target, headers["Authorization"]) == ("/token", f"Basic {both}")
    assert sent == {
        "grant_type": ["authorization_code"],
        "code": ["the code"],
        "redirect_uri": ["https://gate.example/users/auth/login/callback"],
        "code_verifier": [SECRETS.verifier],
    }


def test_credentials_are_sent_in_the_body_if_the_provider_requires_it() -> None:
    provider = Provider(token_endpoint_auth_methods_supported=["client_secret_post"])
    tokens = provider.party().refresh_tokens("the token")
    _, sent, headers = provider.asked[-1]
    assert "Authorization" not in headers
    assert (sent["client_id"], sent["client_secret"]) == (["gate:bell"], ["with / and +"])
    assert (sent["grant_type"], sent["refresh_token"]) == (["refresh_token"], ["the token"])
    assert (tokens.access_token, tokens.refresh_token, tokens.id_token) == ("a", "r", None)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_may_add_request_parameters_but_not_remove_any(preset: str) -> None:
    url = Provider().party(preset=preset).build_authorization_url(SECRETS, is_again=False)
    asked = dict(parse_qsl(urlsplit(url).query))
    assert asked.pop("code_challenge")
    more = PRESETS[preset].parameters
    assert asked == {
        "tenant": "7",
        "response_type": "code",
        "client_id": "gate:bell",
        "redirect_uri": "https://gate.example/users/auth/login/callback",
        "scope": "openid email",
        "state": SECRETS.state,
        "nonce": SECRETS.nonce,
        "code_challenge_method": "S256",
        **more,
    }


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
def test_a_provider_with_https_cannot_have_endpoints_without_https(name: str) -> None:
    party = Provider(**{name: "http://login.example/x"}).party()
    with pytest.raises(InvalidProviderResponseError) as caught:
        party.build_authorization_url(SECRETS, is_again=False)
    assert caught.value.reason == f"{name} does not use https"


def test_an_unavailable_provider_is_not_requested_for_some_seconds() -> None:
    provider = Provider()
    upstream, provider.is_away = ProviderHttpAccess(fetch=provider.fetch), True
    for seconds, count in ((0, 1), (9, 1), (11, 2)):
        with pytest.raises(ProviderUnreachableError):
            provider.party(upstream, now=NOW + timedelta(seconds=seconds)).fetch_metadata()
        assert len(provider.asked) == count
    provider.is_away = False
    # A test of the connection by an administrator is sent immediately.
    moment = NOW + timedelta(seconds=12)
    assert provider.party(upstream, now=moment).fetch_metadata(refresh=True)["issuer"] == ISSUER
    assert len(provider.asked) == 3
    for hours, count in ((0.9, 3), (1.1, 4)):
        provider.party(upstream, now=moment + timedelta(hours=hours)).fetch_metadata()
        assert len(provider.asked) == count


def test_secrets_are_hidden_in_representations() -> None:
    provider = Provider()
    tokens = provider.party().refresh_tokens("the token")
    written = f"{SECRETS!r} {tokens!r}"
    assert not any(each in written for each in (SECRETS.state, SECRETS.verifier, "'a'", "'r'"))
