"""Tests that webhook messages arrive in order and without loss although workers are killed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from threading import Event
from time import sleep

import pytest
from flask import Flask

from domain.core.clock import read_system_clock
from tests.conftest import KINDS
from tests.faults.processes import running_worker, wait_until
from tests.support.database.webhooks import Webhooks
from tests.support.service.live import SECRET_KEY, NewService
from tests.support.service.message_receiver import Received, Receiver, running_receiver
from web.jobs.alert_changes import AlertChangeJob
from web.jobs.destinations import WebhookDeliveryJob
from web.settings.environment import Settings, parse_settings

STORY = ["alert.opened", "alert.acknowledged", "alert.resolved"]
PATHS = ("/one", "/two")


@dataclass
class Holding:
    """Receives messages, and delays one response while the sender is killed."""

    #: Secrets by the path of the webhook.
    secrets: dict[str, str] = field(default_factory=dict)
    came: list[Received] = field(default_factory=list)
    #: IDs of messages whose senders were killed before they got the response.
    unanswered: list[str] = field(default_factory=list)
    _left: int = -1
    _is_held: Event = field(default_factory=Event)
    _goes_on: Event = field(default_factory=Event)

    def answer(self, request: Received) -> tuple[int, Mapping[str, str]]:
        """Verify a message; forged messages fail."""
        request.verified_by(self.secrets[request.path])
        self.came.append(request)
        self._left -= 1
        if self._left == 0:
            self.unanswered.append(request.message_id)
            self._is_held.set()
            self._goes_on.wait(60)
        return 204, {}

    def hold_after(self, more: int) -> None:
        """Delay the response to one message, after some others were received."""
        self._is_held.clear()
        self._goes_on.clear()
        self._left = more

    def wait(self) -> None:
        """Wait until that message has arrived."""
        wait_until(self._is_held.is_set, seconds=180)

    def go_on(self) -> None:
        """Send the response, although its receiver was killed."""
        self._goes_on.set()


@pytest.mark.long
@pytest.mark.spec("J1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("alerts", "kills"),
    [(8, 1), pytest.param(200, 5, marks=pytest.mark.faults_full)],
    ids=["small", "full"],
)
def test_each_event_arrives_signed_and_in_order(
    new_service: NewService,
    make_app: Callable[[Settings], Flask],
    kind: str,
    alerts: int,
    kills: int,
) -> None:
    service = new_service(kind, SECRET_KEY=SECRET_KEY)
    holding = Holding()
    with running_receiver(Receiver(answer=holding.answer)) as receiver:
        settings = parse_settings(service.environment)
        shop = Webhooks(make_app(settings), settings)
        for path in PATHS:
            url = receiver.url.replace("/events", path)
            holding.secrets[path] = shop.create_webhook(url).secret
        change_alerts(shop, alerts)
        for _ in range(kills):
            holding.hold_after(len(PATHS) * alerts * len(STORY) // (kills + 1))
            with running_worker(service) as worker:
                holding.wait()
                worker.kill()
                worker.wait()
            holding.go_on()
        deliver_the_rest(shop)
        shop.engine.dispose()
    check(holding.came, alerts=alerts, kills=kills)
    ids = Counter(each.message_id for each in holding.came)
    assert [ids[each] for each in holding.unanswered] == [2] * kills


@pytest.mark.long
@pytest.mark.spec("J1")
def test_a_stopping_worker_waits_for_the_response_after_repeated_signals(
    new_service: NewService, make_app: Callable[[Settings], Flask]
) -> None:
    service = new_service(SECRET_KEY=SECRET_KEY)
    holding = Holding()
    with running_receiver(Receiver(answer=holding.answer)) as receiver:
        settings = parse_settings(service.environment)
        shop = Webhooks(make_app(settings), settings)
        holding.secrets["/events"] = shop.create_webhook(receiver.url).secret
        change_alerts(shop, 1)
        holding.hold_after(1)
        with running_worker(service) as worker:
            holding.wait()
            for _ in range(3):
                worker.terminate()
                sleep(0.2)
            holding.go_on()
            assert worker.wait(60) == 0
        deliver_the_rest(shop)
        shop.engine.dispose()
    assert [each.type for each in holding.came] == STORY


def change_alerts(shop: Webhooks, alerts: int) -> None:
    """Open alerts, and acknowledge and resolve each of them."""
    for number in range(1, alerts + 1):
        shop.send_alert(f"alert {number}")
        for status in ("acknowledged", "resolved"):
            shop.set_status(number, status)


def deliver_the_rest(shop: Webhooks) -> None:
    """Do the work of a worker after the claims of the killed one have ended."""
    later = timedelta(minutes=1)
    with AlertChangeJob(shop.settings) as changes:
        changes.process_all_due_work()
    with WebhookDeliveryJob(
        shop.settings, clock=lambda: read_system_clock() + later
    ) as next_worker:
        next_worker.process_all_due_work()


def check(came: list[Received], *, alerts: int, kills: int) -> None:
    """Check that messages are complete, in order for each alert, and doubled only by a kill."""
    types: dict[tuple[str, int], list[str]] = defaultdict(list)
    for each in came:
        types[each.path, each.event["data"]["alert"]["iid"]].append(each.type)
    assert len(types) == len(PATHS) * alerts
    # Messages that were sent but not recorded are repeated before later ones of their alert.
    assert [
        found for found in types.values() if [each for each, _ in groupby(found)] != STORY
    ] == []
    different = {each.message_id for each in came}
    assert len(different) == len(PATHS) * alerts * len(STORY)
    assert len(came) - len(different) <= len(PATHS) * kills
