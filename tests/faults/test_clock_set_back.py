"""Tests that pages continue after the clock of a running service is set back by an hour."""

from pathlib import Path

import pytest

from tests.faults.conftest import Start
from tests.faults.processes import wait_until
from tests.support.accounts.people import alice
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_alerts
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import ROOT

#: Module that Python loads first: it adds an offset from a file to the system's clock.
MOVED_CLOCK = """
import os, sys
from datetime import timedelta

sys.path.insert(0, os.environ["CODE"])
from domain.core import clock

_right = clock.read_system_clock


def read_system_clock():
    with open(os.environ["MOVED_BY"]) as file:
        return _right() + timedelta(seconds=float(file.read() or 0))


clock.read_system_clock = read_system_clock
"""


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J1")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_critical_alerts_page_immediately_after_the_clock_is_set_back(
    start: Start, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(MOVED_CLOCK)
    moved = tmp_path / "moved"
    moved.write_text("3600")
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        live = start(
            kind,
            MAIL_URL=f"smtp://127.0.0.1:{port}",
            PYTHONPATH=str(tmp_path),
            CODE=str(ROOT),
            MOVED_BY=str(moved),
        )
        endpoint, username = connect(live), alice(live).username
        live.cli(
            *("escalations", "create", endpoint.project, "--name", "Night", "--default"),
            *("--step", f"0s user:{username}"),
        )
        for number in range(2):
            endpoint.accepted(title=f"Before {number}", severity="critical")
        wait_until(lambda: len(mailbox.messages) == 1)
        # Pages that wait now are due only after the clock is set back.
        moved.write_text("0")
        for number in range(3):
            endpoint.accepted(title=f"After {number}", severity="critical")
        wait_until(lambda: "After 2" in _message_texts(mailbox), seconds=50)
        assert all(f"After {number}" in _message_texts(mailbox) for number in range(3))
        assert {alert.status for alert in list_stored_alerts(live, endpoint.project)} == {
            "triggered"
        }
        http = live.http()
        wait_until(
            lambda: "A clock was set back" in http.get(f"{live.url}/readyz", timeout=20).text
        )
        assert live.logged_line('"set_back_seconds":3600.0')
        metrics = http.get(f"{live.url}/metrics", timeout=20).text
        assert "gatebell_pages_overdue 0.0" in metrics
        assert "gatebell_times_ahead_of_clock 0.0" in metrics


def _message_texts(mailbox: Mailbox) -> str:
    return "\n".join(f"{each['Subject']}\n{each.text}" for each in mailbox.messages)
