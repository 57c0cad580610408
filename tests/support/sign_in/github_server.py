"""A fake GitHub Enterprise Server that behaves correctly unless a test changes it.

It is a provider of OAuth 2.0 and no OpenID provider; tests use the same names for both.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from secrets import randbelow
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

from authlib.oauth2.rfc7636 import create_s256_code_challenge

from tests.support.accounts.people import unique
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS
from tests.support.sign_in.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    FakeProvider,
    ProviderHandler,
    add_provider,
    running_provider,
)

USER, EMAILS, ORGS, TEAMS = (f"/api/v3/user{each}" for each in ("", "/emails", "/orgs", "/teams"))
TOKENS = "/login/oauth/access_token"
#: Response with status 403 to suspended users.
SUSPENDED = b'{"message": "Sorry. Your account was suspended."}'
#: Scopes that the lists require.
_SCOPES = {EMAILS: "user:email", ORGS: "read:org", TEAMS: "read:org"}


@dataclass
class FakeGitHub(FakeProvider):
    """Data of users, and deliberate mistakes."""

    authorize: str = "/login/oauth/authorize"
    emails: list[dict[str, Any]] = field(default_factory=list)
    orgs: list[str] = field(default_factory=list)
    #: Teams as `organization/team`.
    teams: list[str] = field(default_factory=list)
    #: Scopes of valid tokens.
    tokens: dict[str, str] = field(default_factory=dict)

    def is_about(self, **person: Any) -> None:
        """Use a new user for the next sign-ins."""
        name = unique("octo")
        number = str(randbelow(2**40) + 1)
        usual = {"sub": number, "preferred_username": name, "name": "Mona"}
        self.person = {**usual, "email": f"{name}@people.example", **person}
        self.emails = [
            {"email": f"{name}@old.example", "primary": False, "verified": True},
            {"email": self.person["email"], "primary": True, "verified": True},
        ]

    def response_to(self, asked: str, **changes: str | None) -> str:
        """Return the URL of the authorization response after a sign-in."""
        return super().response_to(asked, **{"iss": None, **changes})

    def tokens_for(self, sent: Mapping[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Return the response of the token endpoint, which has status 200 even for errors."""
        assert not authorization
        if (sent["client_id"], sent["client_secret"]) != (CLIENT_ID, CLIENT_SECRET):
            return 200, {"error": "incorrect_client_credentials"}
        if sent["grant_type"] == "refresh_token":
            if sent["refresh_token"] != self.refresh_token:
                return 200, {"error": "bad_refresh_token"}
            return 200, self._token("")
        asked = self.codes.pop(sent["code"], None)
        if asked is None:
            return 200, {"error": "bad_verification_code"}
        assert create_s256_code_challenge(sent["code_verifier"]) == asked["code_challenge"]
        assert sent["redirect_uri"] == asked["redirect_uri"]
        return 200, self._token(asked["scope"])

    def _token(self, scope: str) -> dict[str, Any]:
        # A GitHub App has permissions instead of scopes, and tokens that expire.
        is_app = self.refresh_token is not None
        token = unique("ghu_" if is_app else "gho_")
        SECRETS.remember(token)
        self.tokens[token] = " ".join(_SCOPES.values()) if is_app else scope
        given = {"access_token": token, "scope": scope.replace(" ", ","), "token_type": "bearer"}
        if not is_app:
            return given
        self.refresh_token = unique("ghr_")
        SECRETS.remember(self.refresh_token)
        return {**given, "expires_in": 28_800, "refresh_token": self.refresh_token}

    def api(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, Any]:
        """Return a response of the API."""
        if path == "/api/v3":
            return 200, {"current_user_url": f"{self.url}{USER}"}
        scope = self.tokens.get(headers.get("Authorization", "").removeprefix("Bearer "))
        if scope is None:
            return 401, {"message": "Bad credentials", "documentation_url": "https://docs.example"}
        found = self._shown(path) if _SCOPES.get(path, "") in scope else None
        if found is None:
            return 404, {"message": "Not Found"}
        if isinstance(found, list):
            size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
            found = found[(page - 1) * size : page * size]
        return 200, found

    def _shown(self, path: str) -> Any:
        person = self.person
        teams = (each.partition("/") for each in self.teams)
        return {
            USER: {
                "id": int(person["sub"]),
                "login": person["preferred_username"],
                "name": person["name"],
                "email": None,
            },
            EMAILS: self.emails,
            ORGS: [{"login": each, "id": 7} for each in self.orgs],
            TEAMS: [
                {"slug": slug, "name": slug.title(), "organization": {"login": organization}}
                for organization, _, slug in teams
            ],
        }.get(path)


class _Handler(ProviderHandler):
    def document(self, path: str, query: str) -> tuple[int, Any]:
        github = cast("FakeGitHub", self.server.provider)
        return github.api(path, dict(parse_qsl(query)), dict(self.headers))

    def written(self, found: Any) -> bytes:
        if self.path == TOKENS and self.headers.get("Accept") != "application/json":
            return urlencode(found).encode()
        return json.dumps(found).encode()


@contextmanager
def running_github() -> Iterator[FakeGitHub]:
    """Run an Enterprise Server on a port of loopback."""
    running = cast(
        "AbstractContextManager[FakeGitHub]", running_provider(FakeGitHub(), handler=_Handler)
    )
    with running as github:
        yield github


def add_github(gatebell: LiveGatebell, github: FakeGitHub, *more: str) -> str:
    """Add an Enterprise Server as an identity provider, and return the slug of the provider."""
    return add_provider(gatebell, github.url, "--preset", "github", "--creates-accounts", *more)
