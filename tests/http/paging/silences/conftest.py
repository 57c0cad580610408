"""A project with alerts, as scripts of its members call it."""

from dataclasses import dataclass

import pytest

from domain.access.roles import Role
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell


@dataclass(frozen=True)
class Project:
    """A project and where its alerts come from."""

    gatebell: LiveGatebell
    endpoint: Endpoint

    @property
    def path(self) -> str:
        """Its full path."""
        return self.endpoint.project

    @property
    def url(self) -> str:
        """The URL of its pages, without what follows `-/`."""
        return f"{self.gatebell.url}/{self.path}/-"

    def caller(self, role: Role, scopes: str = "api") -> ApiCaller:
        """Return the scripts of a member with this role."""
        person = person_for(self.gatebell, role)
        give_role(self.gatebell, self.path, person, role)
        return api_caller(self.gatebell, person, f"/projects/{self.path}", scopes=scopes)


@pytest.fixture
def project(gatebell: LiveGatebell) -> Project:
    return Project(gatebell, connect(gatebell))
