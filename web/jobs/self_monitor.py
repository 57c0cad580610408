"""Sends a synthetic alert through the public URL and measures the time until it is paged."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy.orm import Session

from domain.core.clock import Clock, system_clock
from domain.core.errors import InvalidError
from domain.core.hosts import claim_turn, last_turn
from domain.core.keyring import Keyring, UndecipherableError
from domain.delivery.outgoing.errors import OutgoingError
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.heartbeats import self_monitor
from domain.heartbeats.self_monitor import TURN, Check, SelfMonitorError, Target, record_check
from web.jobs.scheduler import Job
from web.outgoing.client import OutgoingClient
from web.settings.reader import Settings
from web.settings.stored import current_settings

Found = TypeVar("Found")

_log = logging.getLogger("gatebell.self_monitor")
_LOOK_SECONDS = 0.2
_MILLISECOND = timedelta(milliseconds=1)


class SelfMonitor(Job):
    """Job that checks the path of an alert once per period, in one of all workers."""

    name = "self monitor"
    #: Interval at which the job looks for a due check, since the settings may have changed.
    every = timedelta(seconds=5)

    def __init__(self, settings: Settings, *, clock: Clock = system_clock) -> None:
        """Open the database."""
        super().__init__(settings, clock=clock)
        self._keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)

    def run_due(self) -> int:
        """Run the check if it is due and return the number of checks."""
        with Session(self.reading) as session:
            settings = current_settings(self.settings, session=session)
            taken = last_turn(TURN, session=session)
        period = timedelta(seconds=settings.self_monitor_interval_seconds)
        now = self.clock()
        if not settings.self_monitor_project or (taken and taken <= now < taken + period):
            return 0
        with Session(self.engine) as session, session.begin():
            if not claim_turn(TURN, period=period, session=session, now=now):
                return 0
        self.check(settings)
        return 1

    def check(self, settings: Settings) -> Check:
        """Send an alert, wait for its page, resolve the alert and ping the dead man's switch."""
        client = OutgoingClient.of(settings)
        try:
            made = self._made(settings, client)
            if made.problem is None:
                made = replace(made, switch_problem=_ping_switch(settings, client))
        finally:
            client.close()
        if self.is_stopped.is_set() and made.problem:
            return made  # the worker is stopping, which is not a problem of the path
        with Session(self.engine) as session, session.begin():
            record_check(made, session=session)
        if made.problem or made.switch_problem:
            said = {"problem": made.problem, "switch_problem": made.switch_problem}
            _log.error("the self-monitor found a problem", extra=said)
        return made

    def _made(self, settings: Settings, client: OutgoingClient) -> Check:
        found = Check(started_at=self.clock())
        try:
            target = self._ask(
                lambda session: self_monitor.find_target(
                    settings.self_monitor_project, session=session, keyring=self._keyring
                )
            )
        except SelfMonitorError as error:
            return replace(found, problem=str(error))
        except UndecipherableError:
            return replace(found, problem="The key of the HTTP endpoint cannot be decrypted.")
        found = self._sent(found, target, settings, client)
        return self._resolved(found, target, settings, client)

    def _sent(
        self, found: Check, target: Target, settings: Settings, client: OutgoingClient
    ) -> Check:
        """Open the alert and wait for its page, if one is expected."""
        try:
            if self._open(target):  # left over from an interrupted check
                _post(target, self_monitor.recovery_body(self.clock()), settings, client)
            stored = _post(target, self_monitor.firing_body(), settings, client)
            found = replace(found, stored=stored)
            return replace(found, paged=self._wait_for_page(found.started_at, target, settings))
        except SelfMonitorError as error:
            return replace(found, problem=str(error))

    def _wait_for_page(
        self, started_at: datetime, target: Target, settings: Settings
    ) -> timedelta | None:
        alert_id = self._open(target)
        if alert_id is None:
            raise SelfMonitorError("The alert was accepted, but it does not exist.")
        limit = timedelta(seconds=settings.self_monitor_deadline_seconds)
        while True:
            sent_at, awaits = self._ask(lambda session: _paged(target, alert_id, session))
            if sent_at is not None:
                return max(sent_at - started_at, timedelta(0))
            if not awaits:
                return None
            if self.clock() - started_at > limit or self.is_stopped.wait(_LOOK_SECONDS):
                message = (
                    f"No page was sent within {limit.total_seconds():g} s after the alert was sent."
                )
                raise SelfMonitorError(message)

    def _resolved(
        self, found: Check, target: Target, settings: Settings, client: OutgoingClient
    ) -> Check:
        """Resolve the alert, even after a problem, and remove the alerts of earlier checks."""
        try:
            body = self_monitor.recovery_body(self.clock())
            found = replace(found, resolved=_post(target, body, settings, client))
        except SelfMonitorError as error:
            return replace(found, problem=found.problem or str(error))
        if self._open(target):
            message = "The resolution was accepted, but the alert is still open."
            return replace(found, problem=found.problem or message)
        with Session(self.engine) as session, session.begin():
            self_monitor.remove_earlier(target.project_id, session=session)
        return found

    def _open(self, target: Target) -> int | None:
        return self._ask(lambda each: self_monitor.open_alert(target.project_id, session=each))

    def _ask(self, question: Callable[[Session], Found]) -> Found:
        with Session(self.reading) as session:
            return question(session)


def _paged(target: Target, alert_id: int, session: Session) -> tuple[datetime | None, bool]:
    sent_at = self_monitor.page_sent_at(alert_id, session=session)
    return sent_at, self_monitor.awaits_page(target.project_id, alert_id, session=session)


def _post(target: Target, body: bytes, settings: Settings, client: OutgoingClient) -> timedelta:
    """Post to the public URL and return the response time.

    Raise SelfMonitorError if the alert could not be sent or was not accepted.
    """
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {target.key}"}
    try:
        url = parse_outgoing_url(f"{settings.base_url}{target.path}")
        answer = client.post(url, body, headers)
    except (OutgoingError, InvalidError) as error:
        message = f"The public URL {settings.base_url} could not be given the alert: {error}."
        raise SelfMonitorError(message) from error
    if answer.problem is not None:
        message = f"The public URL {settings.base_url} did not accept the alert: {answer.problem}."
        raise SelfMonitorError(message)
    return round(answer.seconds * 1000) * _MILLISECOND


def _ping_switch(settings: Settings, client: OutgoingClient) -> str | None:
    """Ping the dead man's switch and return the problem, or None."""
    if not settings.self_monitor_switch_url:
        return None
    try:
        answer = client.post(parse_outgoing_url(settings.self_monitor_switch_url), b"", {})
    except (OutgoingError, InvalidError) as error:
        return f"The dead man's switch could not be told: {error}."
    if answer.problem is None:
        return None
    return f"The dead man's switch did not accept its ping: {answer.problem}."


def run_due(settings: Settings, *, clock: Clock = system_clock) -> int:
    """Run the check if it is due at the clock's time and return the number of checks."""
    with SelfMonitor(settings, clock=clock) as loop:
        return loop.run_due()
