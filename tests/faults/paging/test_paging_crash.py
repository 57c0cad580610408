"""Tests that a worker that is killed while it sends pages loses none and doubles few."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from domain.core.clock import read_system_clock
from models import PageMessage
from tests.conftest import KINDS
from tests.faults.processes import running_worker, wait_until
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.paging import Pages
from tests.support.service.live import SECRET_KEY, LiveGatebell, NewService
from web.jobs.paging import MAX_MESSAGES_IN_PROGRESS, PagingJob
from web.settings.environment import parse_settings


@dataclass
class SlowMailbox(Mailbox):
    """Delays each message for a moment, so that some are always being sent."""

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        await asyncio.sleep(0.01)
        return await super().handle_DATA(server, session, envelope)


@pytest.mark.spec("J1")
@pytest.mark.parametrize("kind", KINDS)
def test_pages_survive_a_killed_worker(new_service: NewService, kind: str) -> None:
    mailbox = SlowMailbox()
    with running_mail_server(mailbox) as port:
        service = new_service(kind, SECRET_KEY=SECRET_KEY, MAIL_URL=f"smtp://127.0.0.1:{port}")
        pages = queued(service, people=60, alerts=5)
        with running_worker(service) as worker:
            wait_until(lambda: len(mailbox.messages) >= 10)
            worker.kill()
            worker.wait()
        assert len(mailbox.messages) < 60
        # The claims of the killed worker end.
        later = timedelta(minutes=1)
        with PagingJob(
            parse_settings(service.environment), clock=lambda: read_system_clock() + later
        ) as next_worker:
            next_worker.process_all_due_work()
        check(pages, mailbox, people=60, alerts=5, kills=1)


@pytest.mark.faults_full
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_pages_survive_killed_workers(new_service: NewService, kind: str) -> None:
    mailbox, kills = SlowMailbox(), 4
    with running_mail_server(mailbox) as port:
        service = new_service(kind, SECRET_KEY=SECRET_KEY, MAIL_URL=f"smtp://127.0.0.1:{port}")
        pages = queued(service, people=500, alerts=20)
        for _ in range(kills):
            before = len(mailbox.messages)
            with running_worker(service) as one, running_worker(service):
                wait_until(partial(has_more, mailbox, before + 60))
                one.kill()
                one.wait()
        with running_worker(service):
            wait_until(lambda: all(row.ended_at for row in pages.rows(PageMessage)))
        # Both workers of a round are ended by a signal that they cannot handle.
        check(pages, mailbox, people=500, alerts=20, kills=2 * kills)


def has_more(mailbox: Mailbox, count: int) -> bool:
    return len(mailbox.messages) >= count


def queued(service: LiveGatebell, *, people: int, alerts: int) -> Pages:
    """Queue pages for these users, which are due immediately."""
    pages = Pages(parse_settings(service.environment))
    pages.now = datetime.now(UTC) - timedelta(seconds=10)
    everybody = [pages.person(f"person{number}") for number in range(people)]
    assert pages.page(pages.alerts(alerts), *everybody) == people * alerts
    return pages


def check(pages: Pages, mailbox: Mailbox, *, people: int, alerts: int, kills: int) -> None:
    """Check that no message is lost, and that few are doubled."""
    pages.engine.dispose()
    came = Counter(str(each["To"]) for each in mailbox.messages)
    doubled = sum(came.values()) - len(came)
    assert set(came) == {f"person{number}@pager.example" for number in range(people)}
    assert {str(each["Subject"]).partition(":")[0] for each in mailbox.messages} == {
        f"[critical] {alerts} alerts in acme/shop"
    }
    # Only messages that were sent but not recorded before a kill are doubled.
    assert max(came.values()) <= 1 + kills
    assert doubled <= kills * MAX_MESSAGES_IN_PROGRESS
    # A duplicate has the same id.
    assert len({str(each["Message-ID"]) for each in mailbox.messages}) == people
