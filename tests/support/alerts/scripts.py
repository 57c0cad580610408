"""Scripts that use the API of a project as a user with a role."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests

from domain.access.roles import Role
from tests.support.accounts.people import alice
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role, person_for
from tests.support.service.live import LiveGatebell


@dataclass(frozen=True)
class Script:
    """A script with a token that calls URLs below a URL of a project."""

    api: Api
    at: str

    def send(self, method: str, path: str = "", **options: Any) -> requests.Response:
        """Send a request."""
        return self.api.send_request(method, f"{self.at}{path}", **options)

    def get(self, path: str = "", **options: Any) -> Any:
        """Return the JSON of a response with status 200."""
        answer = self.send("GET", path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def put(self, path: str = "", **given: Any) -> requests.Response:
        """Send a PUT request with JSON."""
        return self.send("PUT", path, json=given)

    def post(self, path: str = "", **given: Any) -> requests.Response:
        """Send a POST request with JSON."""
        return self.send("POST", path, json=given)


def script_of(
    gatebell: LiveGatebell,
    project: str,
    resource: str,
    *,
    role: Role | None = None,
    scopes: str = "api",
) -> Script:
    """Return a script of a user with this role, by default of Alice, who owns the project."""
    person = alice(gatebell) if role is None else person_for(gatebell, role)
    if role is not None:
        give_role(gatebell, project, person, role)
    token = make_token(gatebell, person, scopes=scopes).clear
    return Script(Api(gatebell, token), f"/projects/{quote(project, safe='')}/{resource}")
