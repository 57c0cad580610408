"""A project with incidents, in this process and with its own clock."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from flask import Flask

from domain.access.roles import Role
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import JSON, item, webhook
from tests.support.service.commands import operate
from tests.support.service.live import LiveGatebell
from web.jobs.alert_changes import AlertChangeJob
from web.settings.environment import Settings

PROJECT = "acme/shop"
AT = "/api/v4/projects/acme%2Fshop"


def incident_script(
    gatebell: LiveGatebell, project: str, *, role: Role | None = None, scopes: str = "api"
) -> Script:
    """Return a script for the incidents of a project, by default Alice's."""
    return script_of(gatebell, project, "incidents", role=role, scopes=scopes)


def create_incident(gatebell: LiveGatebell, project: str, **values: Any) -> Any:
    """Create an incident in a running service as Alice."""
    answer = incident_script(gatebell, project).post(**values)
    assert answer.status_code == 201, answer.text
    return answer.json()


class IncidentProject:
    """A project of Alice with a receiver of webhooks; `run` does the work of the worker."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self.now = datetime.now(UTC)
        operate(app, "users", "create", "alice", "--email", "alice@people.example")
        operate(app, "groups", "create", "acme", "--owner", "alice")
        operate(app, "projects", "create", PROJECT)
        self.receiver = operate(
            app, "integrations", "create", PROJECT, "--type", "prometheus", "--name", "any"
        )
        self.token = self.token_of("alice")

    def token_of(self, username: str, scopes: str = "api") -> str:
        """Return a new token of a user."""
        made = operate(self.app, "tokens", "create", username, "--name", "t", "--scopes", scopes)
        return str(made["token"])

    def api(self, method: str, path: str, *, code: int = 200, token: str = "", **json: Any) -> Any:
        """Call the API below the project, and return the JSON of the response."""
        answer = self.app.test_client().open(
            f"{AT}{path}",
            method=method,
            headers={"PRIVATE-TOKEN": token or self.token},
            json=json or None,
        )
        assert answer.status_code == code, (answer.status_code, answer.text)
        return answer.json if answer.data else None

    def send(self, *items: Mapping[str, Any]) -> None:
        """Send a webhook of Alertmanager."""
        answer = self.app.test_client().post(
            self.receiver["url"].removeprefix("http://localhost"),
            data=webhook(*items),
            headers={"Authorization": f"Bearer {self.receiver['key']}", "Content-Type": JSON},
        )
        assert answer.status_code == 200, answer.text

    def fire(self, *names: str, **labels: str) -> None:
        """Fire alerts, and process the changes."""
        self.now_fire(*names, **labels)
        self.run()

    def now_fire(self, *names: str, **labels: str) -> None:
        """Fire alerts without processing the changes."""
        begun = datetime.now(UTC).isoformat()
        self.send(
            *(item(name, labels={"alertname": name, **labels}, startsAt=begun) for name in names)
        )

    def recover(self, *names: str) -> None:
        """Resolve alerts as their sender does, and process the changes."""
        self.now_recover(*names)
        self.run()

    def now_recover(self, *names: str) -> None:
        """Resolve alerts as their sender does, without processing the changes."""
        ended = datetime.now(UTC).isoformat()
        self.send(*(item(name, status="resolved", endsAt=ended) for name in names))

    def run(self) -> None:
        """Process the waiting changes of alerts."""
        with AlertChangeJob(self.settings, clock=lambda: self.now) as loop:
            loop.process_all_due_work()

    def rule(self, name: str = "all", **values: Any) -> Any:
        """Create an incident rule."""
        return self.api("POST", "/incident_rules", code=201, name=name, **values)

    def incidents(self, query: str = "") -> list[dict[str, Any]]:
        """Return the incidents, oldest first."""
        found: list[dict[str, Any]] = self.api("GET", f"/incidents?sort=oldest{query}")
        return found

    def timeline(self, iid: int) -> list[str]:
        """Return the entries in the timeline of an incident, oldest first."""
        found = self.api("GET", f"/incidents/{iid}/notes?sort=asc&per_page=100")
        return [each["body"] for each in found]

    def alert_status(self, iid: int) -> str:
        """Return the status of an alert."""
        return str(self.api("GET", f"/alert_management_alerts/{iid}")["status"])
