"""Tests that an hour-long outage of the whole service counts as no missed report."""

import os
import signal
from collections.abc import Mapping, Sequence
from datetime import timedelta
from time import sleep
from typing import Any

import pytest
from sqlalchemy import func, select, update

from models import Alert, Heartbeat, HeartbeatPing, Integration, UnreachableTime, WebServer
from tests.faults.conftest import Start
from tests.faults.processes import children, wait_until, web_processes
from tests.support.accounts.people import database_of
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

HOUR = timedelta(hours=1)


def pass_an_hour(live: LiveGatebell) -> None:
    """Move the stored times back by an hour, as if the service had been stopped."""
    with database_of(live) as session:
        for table, columns in _TIMES.items():
            for row in session.scalars(select(table)):
                for name in columns:
                    setattr(row, name, getattr(row, name) - HOUR)
        hour_ms = HOUR // timedelta(milliseconds=1)
        session.execute(update(Heartbeat).values(due_ms=Heartbeat.due_ms - hour_ms))
        session.execute(update(Integration).values(resolve_after_minutes=10))


_TIMES: Mapping[type[Any], Sequence[str]] = {
    WebServer: ["seen_at"],
    Heartbeat: ["counted_from", "last_ping_at"],
    Alert: ["created_at", "started_at", "last_event_at"],
}


def kill(live: LiveGatebell) -> None:
    """Kill all processes of the service simultaneously."""
    pids = [live.pid, *(pid for pid, _ in children(live.pid)), *web_processes(live)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    live.wait()


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_hour_long_outage_misses_no_job_and_resolves_no_alert(start: Start, kind: str) -> None:
    live = start(kind)
    endpoint = connect(live)
    endpoint.accepted(title="Disk", fingerprint="disk")
    http = live.http()
    for number in range(5):
        made = live.cli(
            *("heartbeats", "create", endpoint.project, "--name", f"job {number}"),
            *("--every", "1m", "--grace", "5m"),
        )
        assert http.get(made["url"], timeout=20).status_code == 200
    wait_until(lambda: count(live, WebServer))
    kill(live)
    pass_an_hour(live)
    live.start()
    # The log of each heartbeat shows the pings.
    wait_until(lambda: count(live, HeartbeatPing) == 10)
    sleep(2)  # In this time, the worker runs all due checks.
    assert [
        (alert.title, alert.status) for alert in list_stored_alerts(live, endpoint.project)
    ] == [("Disk", "triggered")]
    with database_of(live) as session:
        (away,) = session.scalars(select(UnreachableTime)).all()
        assert away.ended_at - away.began_at > HOUR
        assert {row.state for row in session.scalars(select(Heartbeat))} == {"up"}


def count(live: LiveGatebell, table: type[Any]) -> int:
    with database_of(live) as session:
        return session.scalar(select(func.count()).select_from(table)) or 0
