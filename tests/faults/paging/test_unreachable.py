"""The whole service was away for an hour: what nobody could report is held against nobody."""

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
from tests.support.database.stored import alerts_of
from tests.support.service.live import LiveGatebell

HOUR = timedelta(hours=1)


def pass_an_hour(live: LiveGatebell) -> None:
    """Move what the database holds an hour back, as if the service had been stopped then."""
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
    """Kill all its processes at once."""
    pids = [live.pid, *(pid for pid, _ in children(live.pid)), *web_processes(live)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    live.wait()


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_after_an_hour_without_the_service_no_job_is_missed_and_no_alert_resolved(
    start: Start, kind: str
) -> None:
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
    wait_until(lambda: count(live, HeartbeatPing) == 10)  # the log of each says so
    sleep(2)  # in which the worker looks at all that is due
    assert [(alert.title, alert.status) for alert in alerts_of(live, endpoint.project)] == [
        ("Disk", "triggered")
    ]
    with database_of(live) as session:
        (away,) = session.scalars(select(UnreachableTime)).all()
        assert away.ended_at - away.began_at > HOUR
        assert {row.state for row in session.scalars(select(Heartbeat))} == {"up"}


def count(live: LiveGatebell, table: type[Any]) -> int:
    with database_of(live) as session:
        return session.scalar(select(func.count()).select_from(table)) or 0
