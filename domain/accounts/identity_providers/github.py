"""GitHub and GitHub Enterprise Server: plain OAuth 2.0 with an API for the user's details.

GitHub supports neither discovery nor ID tokens.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from domain.accounts.identity_providers.errors import ProviderError, ProviderTokenRejectedError
from domain.accounts.identity_providers.provider_client import (
    PARSE_ERRORS,
    JsonDocument,
    ProviderClient,
    ProviderSignInSecrets,
    ProviderTokens,
)
from domain.accounts.identity_providers.provider_users import ProviderUser
from domain.delivery.outgoing.urls import OutgoingUrl

#: Page size and maximum number of pages. Pages are small, because each team includes all details of
#: its organization.
_PAGE_SIZE, _MAX_PAGES = 10, 100


class GitHubClient(ProviderClient):
    """A client that requests user details from GitHub."""

    def fetch_metadata(self, *, refresh: bool = False) -> JsonDocument:
        """Return the URLs of the endpoints.

        With `refresh`, check that the API responds.
        """
        if refresh:
            with suppress(
                ProviderTokenRejectedError
            ):  # An Enterprise Server in private mode requires a token.
                self._fetch_json(self._build_endpoint_url(self._api_url, "its API"), {})
        return {
            "authorization_endpoint": f"{self._oauth_url}/authorize",
            "token_endpoint": f"{self._oauth_url}/access_token",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "userinfo_endpoint": f"{self._api_url}/user",
        }

    def get_authorization_code(self, response: Mapping[str, str]) -> str:
        """Return the code from an authorization response.

        GitHub's own `iss` value is accepted, although it differs from the configured issuer URL. A
        response without `iss` is accepted as well.
        """
        named = {"iss": self._client.issuer} if response.get("iss") == self._oauth_url else {}
        return super().get_authorization_code({**response, **named})

    def redeem_code(self, code: str, secrets: ProviderSignInSecrets) -> ProviderTokens:
        """Exchange a code for tokens.

        An access token that does not expire is also returned as the refresh token.
        """
        tokens = super().redeem_code(code, secrets)
        return tokens.model_copy(
            update={"refresh_token": tokens.refresh_token or tokens.access_token}
        )

    def refresh_tokens(self, refresh_token: str) -> ProviderTokens:
        """Exchange a refresh token for tokens.

        A token that does not expire is returned unchanged.
        """
        expires = refresh_token.startswith("ghr_")
        return (
            super().refresh_tokens(refresh_token)
            if expires
            else ProviderTokens(access_token=refresh_token)
        )

    def identify_user(self, tokens: ProviderTokens, _nonce: str) -> ProviderUser:
        """Return the user that the token from a sign-in identifies."""
        return self._build_provider_user(
            self._fetch_userinfo(tokens.access_token), tokens.access_token
        )

    @property
    def _oauth_url(self) -> str:
        return f"{self._client.issuer.rstrip('/')}/login/oauth"

    @property
    def _api_url(self) -> str:
        scheme, _, host = self._client.issuer.rstrip("/").partition("://")
        is_cloud = host == "github.com" or host.endswith(".ghe.com")
        return f"{scheme}://api.{host}" if is_cloud else f"{scheme}://{host}/api/v3"

    def _fetch_userinfo(self, access_token: str) -> JsonDocument:
        user = super()._fetch_userinfo(access_token)
        try:
            emails = self._fetch_pages("/user/emails", access_token)
            primary: JsonDocument = next((each for each in emails if each["primary"]), {})
            return {
                # This entry comes first, so that the standard entries replace it if its name is the
                # same.
                self._client.groups_claim or "": list(self._fetch_groups(access_token)),
                "sub": f"{user['id']:d}",
                "name": user["name"],
                "preferred_username": user["login"],
                "email": primary.get("email"),
                "email_verified": primary.get("verified"),
            }
        except PARSE_ERRORS as error:
            raise self._build_response_error("its API returned an unexpected response") from error

    def _fetch_groups(self, token: str) -> Iterator[str]:
        if self._client.groups_claim:
            yield from (each["login"] for each in self._fetch_pages("/user/orgs", token))
            for each in self._fetch_pages("/user/teams", token):
                yield f"{each['organization']['login']}/{each['slug']}"

    def _fetch_pages(self, path: str, token: str) -> Iterator[Any]:
        for page in range(1, _MAX_PAGES + 1):
            found = self._fetch_with_token(
                f"{self._api_url}{path}?per_page={_PAGE_SIZE}&page={page}", token, list
            )
            yield from found
            if len(found) < _PAGE_SIZE:
                return
        raise self._build_response_error(f"{path} has too many pages")

    def _build_status_error(self, status: int, body: bytes, url: OutgoingUrl) -> ProviderError:
        # For suspended users, GitHub uses the same status as for rate limits and missing
        # permissions.
        is_suspended = re.search(rb"account (is|was) suspended", body) is not None
        if status == HTTPStatus.UNAUTHORIZED or (status == HTTPStatus.FORBIDDEN and is_suspended):
            return ProviderTokenRejectedError(
                self._client.title, f"{url.redacted} returned {status}"
            )
        return super()._build_status_error(status, body, url)
