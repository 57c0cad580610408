"""Visitors that send alerts and respond to pages."""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from time import monotonic
from typing import Any

from bench.alert_bodies import build_metrics_webhook
from bench.soak.callers import RecordingClient, SoakVisitor, WrongResponseError
from bench.soak.ledger import AcceptedAlerts, ResponseLedger
from bench.soak.soak_service import SECOND_STEP_SECONDS, USER_COUNT, SoakService
from domain.core.clock import read_system_clock
from tests.support.alerts.senders import JSON, Endpoint
from tests.support.alerts.senders import item as item_of
from tests.support.alerts.senders import webhook as webhook_of

_ALERTS_PER_WEBHOOK = 40
#: Number of turns after which an alert is sent again, and after which it is resolved.
_REPEATED_AFTER, _RESOLVED_AFTER = 3, 40
_WEBHOOK_RESOLVED_AFTER = 4
#: Interval of alerts that stay unacknowledged, for which the second user is paged.
_ALERTS_PER_UNANSWERED = 3
_ACKNOWLEDGED_AFTER, _RESOLVED_SECONDS = 10.0, SECOND_STEP_SECONDS + 45.0


class ScriptSender:
    """Sends single alerts: when they start, a second time, and when they are resolved."""

    def __init__(
        self, service: SoakService, ledger: ResponseLedger, titles: AcceptedAlerts
    ) -> None:
        self._caller = RecordingClient(service.live.url, ledger)
        self._endpoint = service.script
        self._titles = titles
        self._numbers = count(1)
        self._sent: deque[str] = deque()

    def turn(self) -> None:
        """Send a new alert, and the next reports of earlier ones."""
        title = f"Disk {next(self._numbers)} of the soak is full"
        if self._post("new alert", title=title):
            self._titles.accept([title])
        self._sent.append(title)
        if len(self._sent) > _REPEATED_AFTER:
            self._post("repeated alert", title=self._sent[-1 - _REPEATED_AFTER])
        if len(self._sent) > _RESOLVED_AFTER:
            over = self._sent.popleft()
            self._post("resolved alert", title=over, end_time=_format_now())

    def _post(self, what: str, **fields: str) -> bool:
        return _posted(self._caller, what, self._endpoint, json.dumps(fields).encode())


class WebhookSender:
    """Sends webhooks with many alerts that fire and are resolved later."""

    def __init__(
        self, service: SoakService, ledger: ResponseLedger, titles: AcceptedAlerts
    ) -> None:
        self._caller = RecordingClient(service.live.url, ledger)
        self._endpoint = service.monitor
        self._titles = titles
        self._numbers = count(1)
        self._sent: deque[dict[str, Any]] = deque()

    def turn(self) -> None:
        """Send a webhook with new alerts, and a webhook that resolves earlier ones."""
        webhook = json.loads(
            build_metrics_webhook(_ALERTS_PER_WEBHOOK, f"soak{next(self._numbers)}x")
        )
        names = [each["labels"]["alertname"] for each in webhook["alerts"]]
        for each, name in zip(webhook["alerts"], names, strict=True):
            each["annotations"] = {"title": name}
        if self._post("webhook, new alerts", webhook):
            self._titles.accept(names)
        self._sent.append(webhook)
        if len(self._sent) > _WEBHOOK_RESOLVED_AFTER:
            over = self._sent.popleft()
            for each in over["alerts"]:
                each |= {"status": "resolved", "endsAt": _format_now()}
            self._post("webhook, resolved alerts", over)

    def _post(self, what: str, webhook: Mapping[str, Any]) -> bool:
        return _posted(self._caller, what, self._endpoint, json.dumps(webhook).encode())


@dataclass(frozen=True, kw_only=True)
class _PagingAlert:
    """An alert that pages a user."""

    number: int
    iid: int
    sent_at: float

    @property
    def age(self) -> float:
        """Seconds since the alert was sent."""
        return monotonic() - self.sent_at


class PagingSender:
    """Sends alerts that page users, acknowledges most of them, and resolves all.

    Like users, it acknowledges alerts only after their page has arrived, because pages of
    acknowledged alerts are not sent.
    """

    def __init__(
        self, service: SoakService, ledger: ResponseLedger, titles: AcceptedAlerts
    ) -> None:
        self._caller = RecordingClient(service.live.url, ledger)
        self._service = service
        self._titles = titles
        self._pages = service.postbox.pages
        self._numbers = count(1)
        self._open: list[_PagingAlert] = []
        #: Alerts that have been acknowledged, or will stay unacknowledged.
        self._left: list[_PagingAlert] = []

    def turn(self) -> None:
        """Send an alert, and acknowledge or resolve earlier ones that are due."""
        self._send(next(self._numbers))
        for each in [each for each in self._open if self._is_known(each, steps=1)]:
            self._open.remove(each)
            self._acknowledge(each)
        for each in [each for each in self._left if each.age > _RESOLVED_SECONDS]:
            if _is_acknowledged(each.number) or self._is_known(each, steps=2):
                self._left.remove(each)
                over = _build_item(each.number) | {"status": "resolved", "endsAt": _format_now()}
                self._post("paging alert, resolved", over)

    def leave(self) -> None:
        """Record that the remaining open alerts may page the second user."""
        for each in self._open:
            self._pages.expect_possibly(self._person(each.number, 2), _format_title(each.number))

    def _is_known(self, paging: _PagingAlert, *, steps: int) -> bool:
        number = paging.number
        return paging.age > _ACKNOWLEDGED_AFTER and all(
            self._pages.has(self._person(number, step), _format_title(number))
            for step in range(1, steps + 1)
        )

    def _person(self, number: int, step: int) -> str:
        return self._service.people[(number + step - 1) % USER_COUNT].username

    def _send(self, number: int) -> None:
        title = _format_title(number)
        try:
            answer = self._post("paging alert, new", _build_item(number))
        except WrongResponseError:
            for step in (1, 2):
                self._pages.expect_possibly(self._person(number, step), title)
            raise
        self._titles.accept([title])
        self._pages.expect(self._person(number, 1), title)
        paging = _PagingAlert(number=number, iid=answer[0]["iid"], sent_at=monotonic())
        if _is_acknowledged(number):
            self._open.append(paging)
        else:
            self._pages.expect(self._person(number, 2), title)
            self._left.append(paging)

    def _acknowledge(self, paging: _PagingAlert) -> None:
        self._left.append(paging)
        second = self._person(paging.number, 2)
        if paging.age > SECOND_STEP_SECONDS - _ACKNOWLEDGED_AFTER:
            self._pages.expect_possibly(second, _format_title(paging.number))
        project = self._service.pager.project.replace("/", "%2F")
        try:
            self._caller.ask(
                "paging alert, acknowledged",
                "PUT",
                f"/api/v4/projects/{project}/alert_management_alerts/{paging.iid}",
                json={"status": "acknowledged"},
                headers={"Authorization": f"Bearer {self._service.token}"},
            )
        except WrongResponseError:
            self._pages.expect_possibly(second, _format_title(paging.number))

    def _post(self, what: str, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        endpoint = self._service.pager
        headers = {"Content-Type": JSON, **endpoint.bearer}
        answer = self._caller.ask(
            what, "POST", endpoint.path, data=webhook_of(item), headers=headers
        )
        found: list[dict[str, Any]] = answer.json()
        return found


def _is_acknowledged(number: int) -> bool:
    return number % _ALERTS_PER_UNANSWERED != 0


def _format_now() -> str:
    return read_system_clock().isoformat()


def _format_title(number: int) -> str:
    return f"Page {number} of the soak"


def _build_item(number: int) -> dict[str, Any]:
    title = _format_title(number)
    labels = {
        "alertname": title,
        "severity": "critical",
        "team": f"team-{number % USER_COUNT}",
    }
    return item_of(title, labels=labels, annotations={"title": title})


def _posted(caller: RecordingClient, what: str, endpoint: Endpoint, body: bytes) -> bool:
    headers = {"Content-Type": JSON, **endpoint.bearer}
    try:
        caller.ask(what, "POST", endpoint.path, data=body, headers=headers)
    except WrongResponseError:
        return False
    return True


def build_senders(
    service: SoakService, ledger: ResponseLedger, titles: AcceptedAlerts
) -> list[SoakVisitor]:
    """Return all senders."""
    pager = PagingSender(service, ledger, titles)
    return [
        SoakVisitor(name="script", every=0.7, turn=ScriptSender(service, ledger, titles).turn),
        SoakVisitor(name="monitor", every=6.0, turn=WebhookSender(service, ledger, titles).turn),
        SoakVisitor(name="pager", every=4.0, turn=pager.turn, leave=pager.leave),
    ]
