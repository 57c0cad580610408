"""URLs of GitHub and its Enterprise Servers."""

from datetime import UTC, datetime

import pytest

from domain.accounts.identity_providers.github import GitHubClient
from domain.accounts.identity_providers.provider_client import (
    ProviderHttpAccess,
    ProviderRegistration,
)
from domain.delivery.outgoing.urls import OutgoingUrl


def nobody(url: OutgoingUrl, *_rest: object) -> tuple[int, bytes]:
    """Fail if a request is sent."""
    raise AssertionError(url)


@pytest.mark.parametrize(
    ("issuer", "oauth", "api"),
    [
        ("https://github.com", "https://github.com", "https://api.github.com"),
        ("https://github.com/", "https://github.com", "https://api.github.com"),
        ("https://acme.ghe.com", "https://acme.ghe.com", "https://api.acme.ghe.com"),
        ("https://git.example", "https://git.example", "https://git.example/api/v3"),
        ("https://notgithub.com", "https://notgithub.com", "https://notgithub.com/api/v3"),
    ],
)
def test_urls_depend_on_the_kind_of_github(issuer: str, oauth: str, api: str) -> None:
    client = ProviderRegistration(
        title="GitHub",
        preset="github",
        issuer=issuer,
        client_id="gatebell",
        client_secret="a secret",
        scopes="user:email",
        redirect_uri="https://gate.example/users/auth/github/callback",
        groups_claim=None,
    )
    github = GitHubClient(
        client, ProviderHttpAccess(fetch=nobody), now=datetime(2027, 3, 1, tzinfo=UTC)
    )
    assert github.fetch_metadata() == {
        "authorization_endpoint": f"{oauth}/login/oauth/authorize",
        "token_endpoint": f"{oauth}/login/oauth/access_token",
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
        "userinfo_endpoint": f"{api}/user",
    }
