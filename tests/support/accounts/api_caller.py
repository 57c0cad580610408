"""A caller of the API with a user's token."""

from dataclasses import dataclass, field
from typing import Any

import requests

from tests.support.accounts.people import Person
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell


@dataclass(frozen=True, kw_only=True)
class ApiCaller:
    """Calls `/api/v4` below a path."""

    url: str
    token: str = field(repr=False)

    def __call__(self, method: str, path: str = "", **sent: Any) -> requests.Response:
        """Send a request with `json`, `data`, `params` and `headers` as in requests."""
        headers = {"PRIVATE-TOKEN": self.token, **sent.pop("headers", {})}
        return requests.request(
            method, f"{self.url}{path}", headers=headers, timeout=30, allow_redirects=False, **sent
        )

    def done(self, method: str, path: str = "", *, status: int = 200, **sent: Any) -> Any:
        """Send a request that has to return this status, and return its JSON."""
        answer = self(method, path, **sent)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def refused(self, method: str, path: str = "", *, status: int = 400, **sent: Any) -> str:
        """Send a request that has to be rejected with this status, and return the error."""
        answer = self(method, path, **sent)
        assert answer.status_code == status, (answer.status_code, answer.text)
        body = answer.json()
        return str(body.get("error") or body["message"])


def api_caller(
    gatebell: LiveGatebell, person: Person, path: str = "", *, scopes: str = "api"
) -> ApiCaller:
    """Return a caller with a new token of a user."""
    token = make_token(gatebell, person, scopes=scopes).clear
    return ApiCaller(url=f"{gatebell.url}/api/v4{path}", token=token)
