"""Visitors that send alerts, and those who answer the pages."""

import json
from collections import deque
from collections.abc import Mapping
from itertools import count
from time import monotonic
from typing import Any

from bench.alert_bodies import metrics_webhook
from bench.soaking.callers import Caller, Visitor, WrongAnswerError
from bench.soaking.ground import PEOPLE, SECOND_STEP_SECONDS, Ground
from bench.soaking.ledger import Ledger, Titles
from tests.support.alerts.senders import JSON, Endpoint
from tests.support.alerts.senders import item as item_of
from tests.support.alerts.senders import webhook as webhook_of

_ITEMS = 40
#: So many turns later an alert is sent again, and then resolved.
_REPEATED_AFTER, _RESOLVED_AFTER = 3, 40
_WEBHOOK_RESOLVED_AFTER = 4
_END = "2026-11-21T08:00:00Z"
#: Nobody acknowledges every third alert: the second person is paged for it.
_UNANSWERED_OF = 3
_ACKNOWLEDGED_AFTER, _RESOLVED_SECONDS = 15.0, SECOND_STEP_SECONDS + 45.0


class Script:
    """Sends single alerts: each once, once more, and when it is over."""

    def __init__(self, ground: Ground, ledger: Ledger, titles: Titles) -> None:
        self._caller = Caller(ground.live.url, ledger)
        self._endpoint = ground.script
        self._titles = titles
        self._numbers = count(1)
        self._sent: deque[str] = deque()

    def turn(self) -> None:
        """Send a new alert, and what follows for earlier ones."""
        title = f"Disk {next(self._numbers)} of the soak is full"
        if self._post("an alert", title=title):
            self._titles.accept([title])
        self._sent.append(title)
        if len(self._sent) > _REPEATED_AFTER:
            self._post("an alert repeated", title=self._sent[-1 - _REPEATED_AFTER])
        if len(self._sent) > _RESOLVED_AFTER:
            over = self._sent.popleft()
            self._post("an alert resolved", title=over, end_time=_END)

    def _post(self, what: str, **fields: str) -> bool:
        return _posted(self._caller, what, self._endpoint, json.dumps(fields).encode())


class Monitor:
    """Sends webhooks of many items, which fire and are resolved later."""

    def __init__(self, ground: Ground, ledger: Ledger, titles: Titles) -> None:
        self._caller = Caller(ground.live.url, ledger)
        self._endpoint = ground.monitor
        self._titles = titles
        self._numbers = count(1)
        self._sent: deque[dict[str, Any]] = deque()

    def turn(self) -> None:
        """Send a webhook with new alerts, and one with the end of earlier ones."""
        webhook = json.loads(metrics_webhook(_ITEMS, f"soak{next(self._numbers)}x"))
        names = [each["labels"]["alertname"] for each in webhook["alerts"]]
        for each, name in zip(webhook["alerts"], names, strict=True):
            each["annotations"] = {"title": name}
        if self._post("a webhook", webhook):
            self._titles.accept(names)
        self._sent.append(webhook)
        if len(self._sent) > _WEBHOOK_RESOLVED_AFTER:
            over = self._sent.popleft()
            for each in over["alerts"]:
                each |= {"status": "resolved", "endsAt": _END}
            self._post("a webhook resolved", over)

    def _post(self, what: str, webhook: Mapping[str, Any]) -> bool:
        return _posted(self._caller, what, self._endpoint, json.dumps(webhook).encode())


class Pager:
    """Sends alerts that page somebody, acknowledges most of them, and resolves all."""

    def __init__(self, ground: Ground, ledger: Ledger, titles: Titles) -> None:
        self._caller = Caller(ground.live.url, ledger)
        self._ground = ground
        self._titles = titles
        self._pages = ground.postbox.pages
        self._numbers = count(1)
        #: Number, place in the project, and when it was sent.
        self._open: deque[tuple[int, int, float]] = deque()
        self._answered: deque[tuple[int, float]] = deque()

    def turn(self) -> None:
        """Send an alert, and do what is due for earlier ones."""
        number = next(self._numbers)
        self._send(number)
        self._acknowledge()
        self._resolve()

    def _send(self, number: int) -> None:
        title = _title(number)
        first = self._ground.people[number % PEOPLE]
        try:
            answer = self._post("an alert that pages", _item(number))
        except WrongAnswerError:
            self._pages.doubt(title)
            return
        self._titles.accept([title])
        self._pages.expect(first.username, title)
        if number % _UNANSWERED_OF == 0:
            second = self._ground.people[(number + 1) % PEOPLE]
            self._pages.expect(second.username, title)
            self._answered.append((number, monotonic()))
        else:
            self._open.append((number, answer[0]["iid"], monotonic()))

    def _acknowledge(self) -> None:
        while self._open and monotonic() - self._open[0][2] > _ACKNOWLEDGED_AFTER:
            number, iid, sent_at = self._open.popleft()
            project = self._ground.pager.project.replace("/", "%2F")
            path = f"/api/v4/projects/{project}/alert_management_alerts/{iid}"
            self._answered.append((number, sent_at))
            try:
                self._caller.ask(
                    "an alert acknowledged",
                    "PUT",
                    path,
                    json={"status": "acknowledged"},
                    headers={"Authorization": f"Bearer {self._ground.token}"},
                )
            except WrongAnswerError:
                self._pages.doubt(_title(number))

    def _resolve(self) -> None:
        waiting = len(self._answered)
        for _ in range(waiting):
            number, sent_at = self._answered.popleft()
            if monotonic() - sent_at < _RESOLVED_SECONDS:
                self._answered.append((number, sent_at))
                continue
            over = _item(number) | {"status": "resolved", "endsAt": _END}
            self._post("an alert that pages, resolved", over)

    def _post(self, what: str, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        endpoint = self._ground.pager
        headers = {"Content-Type": JSON, **endpoint.bearer}
        answer = self._caller.ask(
            what, "POST", endpoint.path, data=webhook_of(item), headers=headers
        )
        found: list[dict[str, Any]] = answer.json()
        return found


def _title(number: int) -> str:
    return f"Page {number} of the soak"


def _item(number: int) -> dict[str, Any]:
    title = _title(number)
    labels = {
        "alertname": title,
        "severity": "critical",
        "team": f"team-{number % PEOPLE}",
    }
    return item_of(title, labels=labels, annotations={"title": title})


def _posted(caller: Caller, what: str, endpoint: Endpoint, body: bytes) -> bool:
    headers = {"Content-Type": JSON, **endpoint.bearer}
    try:
        caller.ask(what, "POST", endpoint.path, data=body, headers=headers)
    except WrongAnswerError:
        return False
    return True


def senders(ground: Ground, ledger: Ledger, titles: Titles) -> list[Visitor]:
    """Return all of them."""
    return [
        Visitor(name="script", every=0.7, turn=Script(ground, ledger, titles).turn),
        Visitor(name="monitor", every=6.0, turn=Monitor(ground, ledger, titles).turn),
        Visitor(name="pager", every=4.0, turn=Pager(ground, ledger, titles).turn),
    ]
