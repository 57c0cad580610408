"""GitHub and GitHub Enterprise Server: plain OAuth 2.0 with an API for the user's details.

There is neither discovery nor an ID token.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from domain.accounts.identity_providers.arrivals import Arrived
from domain.accounts.identity_providers.errors import GoneThereError, ProviderError
from domain.accounts.identity_providers.relying_party import (
    MISREAD,
    Document,
    RelyingParty,
    Secrets,
    Tokens,
)
from domain.delivery.outgoing.urls import OutgoingUrl

#: Pages are small, because each team includes all details of its organization.
_ON_A_PAGE, _MOST_PAGES = 10, 100


class GitHub(RelyingParty):
    """A client that requests user details from GitHub, with a fixed current time."""

    def metadata(self, *, afresh: bool = False) -> Document:
        """Return the URLs of the endpoints; with `afresh`, check that the API responds."""
        if afresh:
            with suppress(GoneThereError):  # An Enterprise Server in private mode requires a token.
                self._json(self._url(self._api, "its API"), {})
        return {
            "authorization_endpoint": f"{self._oauth}/authorize",
            "token_endpoint": f"{self._oauth}/access_token",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "userinfo_endpoint": f"{self._api}/user",
        }

    def code_in(self, response: Mapping[str, str]) -> str:
        """Return the code of an authorization response.

        GitHub sends an `iss` that differs from the URL that users enter, or none.
        """
        named = {"iss": self._client.issuer} if response.get("iss") == self._oauth else {}
        return super().code_in({**response, **named})

    def redeem(self, code: str, secrets: Secrets) -> Tokens:
        """Exchange a code for tokens.

        A token that does not expire is stored as refresh token as well.
        """
        tokens = super().redeem(code, secrets)
        return tokens.model_copy(
            update={"refresh_token": tokens.refresh_token or tokens.access_token}
        )

    def refresh(self, refresh_token: str) -> Tokens:
        """Return tokens for a refresh token; a token that does not expire is returned unchanged."""
        expires = refresh_token.startswith("ghr_")
        return super().refresh(refresh_token) if expires else Tokens(access_token=refresh_token)

    def arrival(self, tokens: Tokens, _nonce: str) -> Arrived:
        """Return the user that the token of a sign-in identifies."""
        return self._described(self._userinfo(tokens.access_token), tokens.access_token)

    @property
    def _oauth(self) -> str:
        return f"{self._client.issuer.rstrip('/')}/login/oauth"

    @property
    def _api(self) -> str:
        scheme, _, host = self._client.issuer.rstrip("/").partition("://")
        is_cloud = host == "github.com" or host.endswith(".ghe.com")
        return f"{scheme}://api.{host}" if is_cloud else f"{scheme}://{host}/api/v3"

    def _userinfo(self, access_token: str) -> Document:
        user = super()._userinfo(access_token)
        try:
            emails = self._listed("/user/emails", access_token)
            primary: Document = next((each for each in emails if each["primary"]), {})
            return {
                # This is the first entry, so that a claim with a standard name does not overwrite
                # that name.
                self._client.groups_claim or "": list(self._groups(access_token)),
                "sub": f"{user['id']:d}",
                "name": user["name"],
                "preferred_username": user["login"],
                "email": primary.get("email"),
                "email_verified": primary.get("verified"),
            }
        except MISREAD as error:
            raise self._wrong("its API returned an unexpected response") from error

    def _groups(self, token: str) -> Iterator[str]:
        if self._client.groups_claim:
            yield from (each["login"] for each in self._listed("/user/orgs", token))
            for each in self._listed("/user/teams", token):
                yield f"{each['organization']['login']}/{each['slug']}"

    def _listed(self, path: str, token: str) -> Iterator[Any]:
        for page in range(1, _MOST_PAGES + 1):
            found = self._said(f"{self._api}{path}?per_page={_ON_A_PAGE}&page={page}", token, list)
            yield from found
            if len(found) < _ON_A_PAGE:
                return
        raise self._wrong(f"{path} has too many pages")

    def _refusal(self, status: int, body: bytes, url: OutgoingUrl) -> ProviderError:
        # For suspended users, GitHub uses the same status as for rate limits and missing
        # permissions.
        is_suspended = re.search(rb"account (is|was) suspended", body) is not None
        if status == HTTPStatus.UNAUTHORIZED or (status == HTTPStatus.FORBIDDEN and is_suspended):
            return GoneThereError(self._client.title, f"{url.shown} returned {status}")
        return super()._refusal(status, body, url)
