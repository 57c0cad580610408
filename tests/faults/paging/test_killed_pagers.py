"""Tests that each user is paged once per alert and step although workers are killed."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import cycle

import pytest
from sqlalchemy import func, select

from models import EscalationPage, Page, PageMessage
from tests.conftest import KINDS
from tests.faults.account import assert_each_was_sent
from tests.faults.processes import new_worker, wait_until
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from tests.support.service.live import SECRET_KEY, LiveGatebell, NewService
from web.settings.environment import parse_settings

_PEOPLE = 2


@contextmanager
def running_workers(service: LiveGatebell, count: int) -> Iterator["list[subprocess.Popen[bytes]]"]:
    """Run workers; a test that kills one replaces it."""
    running = [new_worker(service) for _ in range(count)]
    try:
        yield running
    finally:
        for worker in running:
            worker.kill()
            worker.wait()


def has_pages(shop: Escalated, least: int) -> bool:
    with shop.session() as session:
        return (session.scalar(select(func.count()).select_from(EscalationPage)) or 0) >= least


def messages_waiting(shop: Escalated) -> int:
    """Return the number of unsent pages and messages."""
    pages = select(func.count()).select_from(Page).where(Page.batch_id.is_(None))
    messages = select(func.count()).select_from(PageMessage).where(PageMessage.ended_at.is_(None))
    with shop.session() as session:
        return (session.scalar(pages) or 0) + (session.scalar(messages) or 0)


@pytest.mark.spec("J1")
@pytest.mark.fault("{kills} kills of two workers while they send pages")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("alerts", "kills", "is_sent"),
    [
        pytest.param(400, 1, False, marks=pytest.mark.long),
        pytest.param(5_000, 8, True, marks=pytest.mark.faults_full),
    ],
    ids=["small", "full"],
)
def test_each_user_is_paged_exactly_once(
    new_service: NewService, kind: str, alerts: int, kills: int, *, is_sent: bool
) -> None:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        service = new_service(kind, SECRET_KEY=SECRET_KEY, MAIL_URL=f"smtp://127.0.0.1:{port}")
        shop = Escalated(parse_settings(service.environment), port)
        shop.now = datetime.now(UTC)
        shop.policy("0s user:alice", "0s user:bob")
        expected = _PEOPLE * alerts
        with running_workers(service, 2) as workers:
            places = cycle(range(len(workers)))
            for number in range(1, kills + 1):
                shop.alerts(alerts // kills)
                least = expected * (number - 1) // kills + 1
                wait_until(partial(has_pages, shop, least))
                place = next(places)
                workers[place].kill()
                workers[place].wait()
                workers[place] = new_worker(service)
            wait_until(partial(has_pages, shop, expected), seconds=300)
            if is_sent:
                wait_until(lambda: not messages_waiting(shop), seconds=300)
        keys = [page.key for page in shop.rows(Page)]
        assert len(set(keys)) == len(keys) == expected
        paged = Counter((row.alert_id, row.user_id) for row in shop.rows(EscalationPage))
        assert len(paged) == expected
        assert set(paged.values()) == {1}
        if is_sent:
            assert_each_was_sent(mailbox, expected, kills=kills)
        shop.engine.dispose()
