"""Tests that alerts page once although web processes and the supervisor are killed."""

import os
import signal
from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from domain.core.clock import read_system_clock
from models import AlertChange, Escalation, EscalationPage
from tests.conftest import KINDS
from tests.faults.account import assert_each_was_sent
from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.processes import wait_until, web_processes
from tests.support.accounts.people import alice, database_of
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_alerts
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import LiveGatebell
from web.jobs.paging import PagingJob
from web.settings.environment import parse_settings


@pytest.mark.long
@pytest.mark.spec("J1")
@pytest.mark.fault("{kills} web processes and the supervisor are killed while users are paged")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("alerts", "kills"),
    [(20, 2), pytest.param(500, 10, marks=pytest.mark.faults_full)],
    ids=["small", "full"],
)
def test_each_accepted_alert_is_paged_once(
    start: Start, kind: str, alerts: int, kills: int
) -> None:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        live = start(kind, MAIL_URL=f"smtp://127.0.0.1:{port}")
        endpoint = connect(live)
        step = f"0s user:{alice(live).username}"
        named = ("--name", "Night", "--step", step, "--default")
        live.cli("escalations", "create", endpoint.project, *named)
        with load_on(endpoint) as answers:
            for _ in range(kills):
                answers.wait_for(alerts)
                os.kill(web_processes(live)[0], signal.SIGKILL)
                answers.fault_ends()
            answers.wait_for(alerts)
            os.kill(live.pid, signal.SIGKILL)
            live.wait()
            live.start()
            answers.fault_ends()
            answers.wait_for(alerts)
        assert answers.statuses <= {200, 503}
        wait_until(lambda: not waiting_changes(live), seconds=300)
        live.stop()
        send_what_waits(live)
        assert_nothing_was_lost(live, endpoint, answers)
        # Alerts whose sender got no response may be stored; if they are, they page as well.
        stored = [each.id for each in list_stored_alerts(live, endpoint.project)]
        assert paged(live) == Counter(stored)
        # The worker dies with the supervisor.
        assert_each_was_sent(mailbox, len(stored), kills=1)


def waiting_changes(live: LiveGatebell) -> int:
    """Return the number of unprocessed changes and due escalation steps."""
    due = select(func.count()).where(Escalation.next_at <= read_system_clock())
    with database_of(live) as session:
        changes = session.scalar(select(func.count()).select_from(AlertChange)) or 0
        return changes + (session.scalar(due) or 0)


def send_what_waits(live: LiveGatebell) -> None:
    """Send delayed pages, as the worker would half a minute later."""
    later = timedelta(minutes=2)
    settings = parse_settings(live.environment)
    with PagingJob(settings, clock=lambda: read_system_clock() + later) as paging:
        paging.process_all_due_work()


def paged(live: LiveGatebell) -> "Counter[int]":
    """Return how often each alert caused a page."""
    with database_of(live) as session:
        return Counter(session.scalars(select(EscalationPage.alert_id)))
