"""Heartbeats of a running service, and the pings of their jobs."""

from dataclasses import dataclass
from typing import Any

import requests

from tests.support.accounts.people import alice, make_project
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS


@dataclass(frozen=True)
class Job:
    """A job that knows the URL of its heartbeat."""

    id: int
    project: str
    url: str

    def ping(
        self, signal: str = "", *, method: str = "GET", body: bytes | None = None, **query: str
    ) -> requests.Response:
        """Request the URL with a suffix."""
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method, f"{self.url}{signal}", data=body, params=query, timeout=60
            )


def heartbeat(gatebell: LiveGatebell, *options: str, project: str = "", name: str = "job") -> Job:
    """Create a heartbeat by command, in a new project unless one is given."""
    path = project or make_project(gatebell, alice(gatebell))
    schedule = options or ("--every", "1h", "--grace", "0s")
    made: dict[str, Any] = gatebell.cli("heartbeats", "create", path, "--name", name, *schedule)
    SECRETS.remember(made["url"].rpartition("/")[2])
    return Job(id=made["id"], project=path, url=made["url"])
