"""Fixture for a project with alerts, and API callers of its members."""

from dataclasses import dataclass

import pytest

from domain.access.roles import Role
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell


@dataclass(frozen=True)
class Project:
    """A project and the endpoint of its alerts."""

    gatebell: LiveGatebell
    endpoint: Endpoint

    @property
    def path(self) -> str:
        """The project's full path."""
        return self.endpoint.project

    @property
    def url(self) -> str:
        """The base URL of the project's pages, up to `/-`."""
        return f"{self.gatebell.url}/{self.path}/-"

    def caller(self, role: Role, scopes: str = "api") -> ApiCaller:
        """Return an API caller of a member with this role."""
        person = person_for(self.gatebell, role)
        give_role(self.gatebell, self.path, person, role)
        return api_caller(self.gatebell, person, f"/projects/{self.path}", scopes=scopes)


@pytest.fixture
def project(gatebell: LiveGatebell) -> Project:
    return Project(gatebell, connect(gatebell))
