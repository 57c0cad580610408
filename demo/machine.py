"""The service in this process, with a clock that the demo controls.

Weeks pass in seconds: requests go directly to the app, and the background worker's jobs run when
they are due.
"""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from flask.testing import FlaskClient
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app import create_app
from models import (
    AlertChange,
    Contact,
    Escalation,
    Heartbeat,
    PageRecipient,
    WebhookDelivery,
    WebhookIncidentChange,
)
from web.extensions import db
from web.jobs.alert_changes import AlertChangeJob
from web.jobs.destinations import WebhookDeliveryJob
from web.jobs.escalations import EscalationJob
from web.jobs.heartbeats import HeartbeatJob
from web.jobs.paging import PagingJob
from web.jobs.scheduler import Job
from web.services import get_services
from web.settings.environment import Settings

#: Worker jobs. Each job runs after the jobs whose results it uses.
_JOBS: tuple[type[Job], ...] = (
    *(HeartbeatJob, AlertChangeJob, EscalationJob),
    *(PagingJob, WebhookDeliveryJob),
)
_WAITING_STATE = "waiting"
#: Step of the clock if something is still due after the jobs have run.
_CLOCK_STEP = timedelta(milliseconds=500)
_JSON_TYPE = "application/json"
#: User agents of senders.
_ALERTMANAGER_USER_AGENT, _CURL_USER_AGENT = "Alertmanager/0.27.0", "curl/8.11.0"


class DemoError(Exception):
    """Error for an operation of the demo that failed. The message describes the failure."""


class SimulatedService:
    """Commands, requests and background work at the time of `now`."""

    def __init__(self, settings: Settings, start: datetime) -> None:
        """Open the migrated database."""
        self.now = start
        self._base_url = settings.base_url
        self.app = create_app(settings, clock=lambda: self.now)
        self._stack = ExitStack()
        self._jobs = [
            self._stack.enter_context(each(settings, clock=lambda: self.now)) for each in _JOBS
        ]
        self._stack.callback(self._close_app)

    def __enter__(self) -> Self:
        """Return this machine."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all opened resources."""
        self._stack.close()

    def _close_app(self) -> None:
        with self.app.app_context():
            get_services().connections.close_idle_connections()
            db.session.remove()
            db.engine.dispose()

    def run_command(self, *words: str, stdin: str = "") -> Any:
        """Run a `gatebell` command, and return the object that it prints."""
        done = self.app.test_cli_runner().invoke(args=words, input=stdin)
        if done.exit_code:
            message = f"gatebell {' '.join(words)}: {done.output.strip()}"
            raise DemoError(message)
        return self.app.json.loads(done.stdout)

    def create_browser(self) -> FlaskClient:
        """Return a client with separate cookies."""
        return self.app.test_client()

    def call_api(self, token: str, method: str, path: str, **fields: Any) -> Any:
        """Call the API with a personal access token, and return the response's JSON."""
        answer = self.create_browser().open(
            f"/api/v4{path}", method=method, headers={"PRIVATE-TOKEN": token}, json=fields or None
        )
        if answer.status_code // 100 != 2:  # noqa: PLR2004 - success
            message = f"{method} {path}: {answer.status_code} {answer.text}"
            raise DemoError(message)
        return answer.get_json() if answer.data else None

    def send_to_integration(
        self, url: str, key: str, body: bytes, *, media_type: str = _JSON_TYPE
    ) -> int:
        """Send a body to an integration as a monitoring system would; return the status code."""
        path = url.removeprefix(self._base_url)
        headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": media_type,
            "User-Agent": _ALERTMANAGER_USER_AGENT,
        }
        return self.create_browser().post(path, data=body, headers=headers).status_code

    def request_heartbeat_url(self, url: str, suffix: str = "", body: str = "") -> None:
        """Request the URL of a heartbeat."""
        path = url.removeprefix(self._base_url)
        headers = {"User-Agent": _CURL_USER_AGENT}
        self.create_browser().post(f"{path}{suffix}", data=body, headers=headers)

    def advance_clock(self, moment: datetime) -> None:
        """Advance the clock to a moment, and run the worker's jobs that are due until then."""
        while (due := self._find_next_due_time()) is not None and due <= moment:
            self.now = max(due, self.now + _CLOCK_STEP)
            self._run_due_jobs()
        self.now = max(moment, self.now)

    def _run_due_jobs(self) -> None:
        for job in self._jobs:
            job.process_all_due_work()

    def _find_next_due_time(self) -> datetime | None:
        """Return the time at which the worker is due next, or None if nothing is planned."""
        with Session(self._jobs[0].reading_engine) as session:
            changes = session.scalar(select(AlertChange.id).limit(1)) or session.scalar(
                select(WebhookIncidentChange.id).limit(1)
            )
            if changes is not None:
                return self.now
            found = [session.scalar(select(func.min(each))) for each in _list_due_times()]
            heartbeat = session.scalar(select(func.min(Heartbeat.due_ms)))
        moments = [each for each in found if each is not None]
        if heartbeat is not None:
            moments.append(datetime.fromtimestamp(heartbeat / 1000, UTC))
        return min(moments, default=None)


def _list_due_times() -> tuple[ColumnElement[datetime | None], ...]:
    return (
        Escalation.next_at.expression,
        PageRecipient.due_at.expression,
        Contact.next_try_at.expression,
        WebhookDelivery.next_try_at.expression,
    )
