"""Webhooks of a project in a new database, with a clock that tests set."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Flask
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.alerts.change_feed import Follower
from domain.alerts.handling.status import StatusChange, change_alert_status
from domain.alerts.matching.conditions import AlertConditions, parse_conditions
from domain.audit.events import EventActor
from domain.core.database.pagination import KeysetRange
from domain.core.keyring import Keyring
from domain.delivery.outgoing.destinations import DestinationWithSecret
from domain.delivery.webhooks.endpoints import WEBHOOK_KIND, list_deliveries
from domain.delivery.webhooks.types import EndpointDetails, Webhook, WebhookDelivery
from models import AlertFollower, WebhookEndpoint
from tests.support.accounts.namespaces import get_namespace
from tests.support.alerts.senders import JSON, item, webhook
from tests.support.database.kept_jobs import KeptJobs
from tests.support.service.commands import operate
from web.database.engine import open_engine
from web.jobs.alert_changes import AlertChangeJob
from web.jobs.destinations import WebhookDeliveryJob
from web.settings.environment import Settings

#: Backoff without jitter, so that a test knows when the next attempt is due.
WHOLE_SHARE = 1.0
_A_PAGE = KeysetRange(size=100)


class Webhooks:
    """A project with alerts, its webhooks, and a worker that delivers on request."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        self.app = app
        self.settings = replace(settings, outgoing_private_addresses="127.0.0.0/8")
        #: Receivers reject old and future signatures, so a test starts at the current time.
        self.now = datetime.now(UTC)
        self.engine = open_engine(settings)
        self._kept = KeptJobs()
        self.keyring = Keyring(settings.secret_key)
        person = ("users", "create", "alice", "--email", "alice@people.example")
        self.alice = EventActor(id=int(operate(app, *person)["id"]), name="alice")
        operate(app, "groups", "create", "acme")
        self.project_id = self.create_project("shop")
        made = ("integrations", "create", "acme/shop", "--name", "any", "--type", "prometheus")
        self.receiver = operate(app, *made)

    def create_project(self, name: str) -> int:
        operate(self.app, "projects", "create", f"acme/{name}")
        with self.open_session() as session:
            project_id = get_namespace(f"acme/{name}", session=session).project_id
        assert project_id is not None
        return project_id

    def stop_workers(self) -> None:
        """Stop the workers, and close the database."""
        self._kept.close()
        self.engine.dispose()

    @contextmanager
    def open_session(self) -> Iterator[Session]:
        """Open a transaction."""
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    def create_webhook(
        self,
        url: str,
        *events: str,
        conditions: Mapping[str, object] | None = None,
        project_id: int | None = None,
    ) -> DestinationWithSecret[Webhook]:
        """Create a webhook."""
        details = EndpointDetails(
            url=url,
            events=events or ("*",),
            conditions=parse_conditions(conditions) if conditions else AlertConditions(),
        )
        with self.open_session() as session:
            return WEBHOOK_KIND.create_destination(
                details,
                owner=project_id or self.project_id,
                session=session,
                keyring=self.keyring,
                now=self.now,
            )

    def send_alert(self, name: str, status: str = "firing", **labels: str) -> None:
        """Send an alert; the same name means the same alert."""
        all_labels = {"alertname": name, "severity": "critical", **labels}
        body = webhook(item(name, status=status, labels=all_labels))
        answer = self.app.test_client().post(
            self.receiver["url"].removeprefix("http://localhost"),
            data=body,
            headers={"Authorization": f"Bearer {self.receiver['key']}", "Content-Type": JSON},
        )
        assert answer.status_code == 200, answer.text

    def set_status(self, iid: int, status: str) -> None:
        """Change the status of an alert as a user does."""
        with self.open_session() as session:
            change = StatusChange(status=status, by=self.alice)
            change_alert_status(self.project_id, iid, change, session=session, now=self.now)

    def create_worker(self, **changes: Any) -> WebhookDeliveryJob:
        """Create a worker, as each host has one."""
        return self._make_worker(replace(self.settings, **changes))

    def _make_worker(self, settings: Settings) -> WebhookDeliveryJob:
        return WebhookDeliveryJob(settings, clock=lambda: self.now, share=lambda: WHOLE_SHARE)

    def queue_messages(self) -> int:
        """Queue messages about changes, and return the number of changes."""
        return self._kept.get("changes", self.settings, self._make_changes).process_all_due_work()

    def _make_changes(self, settings: Settings) -> AlertChangeJob:
        return AlertChangeJob(settings, clock=lambda: self.now)

    def deliver_messages(self, **changes: Any) -> int:
        """Queue and send due messages; return the number of webhooks."""
        self.queue_messages()
        settings = replace(self.settings, **changes)
        return self._kept.get("deliveries", settings, self._make_worker).process_all_due_work()

    def read_webhook_state(self, endpoint: Webhook) -> Webhook:
        with self.open_session() as session:
            project_id = session.get_one(WebhookEndpoint, endpoint.id).project_id
            return WEBHOOK_KIND.get_destination(
                endpoint.id, owner=project_id, session=session, keyring=self.keyring, now=self.now
            )

    def list_log(self, endpoint: Webhook) -> list[WebhookDelivery]:
        """Return the log of a webhook, oldest first."""
        with self.open_session() as session:
            return list(list_deliveries(endpoint.id, None, _A_PAGE, session=session).items[::-1])

    def is_followed(self) -> bool:
        """Return whether changes of the project's alerts are stored for webhooks."""
        with self.open_session() as session:
            mine = select(func.count()).where(
                AlertFollower.project_id == self.project_id,
                AlertFollower.follower == Follower.WEBHOOKS.value,
            )
            return session.scalar(mine) == 1

    def advance_time(self, **time: float) -> None:
        """Let time pass."""
        self.now += timedelta(**time)
