"""Snippets on the page of a heartbeat, run by the programs that they are for."""

import os
import shlex
import subprocess
import sys
from datetime import timedelta

import pytest
from sqlalchemy import select

from domain.heartbeats.snippets import build_ping_snippets
from domain.heartbeats.states import HeartbeatSchedule
from models import HeartbeatPing
from tests.support.accounts.people import database_of
from tests.support.alerts.heartbeats import Job, heartbeat
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

SCHEDULE = HeartbeatSchedule(cron="30 3 * * *", grace=timedelta(minutes=1))


def text_for(job: Job, title: str) -> str:
    (text,) = (
        each.text for each in build_ping_snippets(job.url, SCHEDULE) if each.title.startswith(title)
    )
    return text


def pings_of(gatebell: LiveGatebell, job: Job) -> list[tuple[str, int | None, bytes | None]]:
    statement = select(HeartbeatPing).where(HeartbeatPing.heartbeat_id == job.id)
    with database_of(gatebell) as session:
        found = session.scalars(statement.order_by(HeartbeatPing.id)).all()
        return [(each.kind, each.exit_status, each.body) for each in found]


def run(*command: str, **environment: str) -> None:
    subprocess.run(command, env={**os.environ, "no_proxy": "*", **environment}, check=False)


def test_a_shell_sends_the_output_and_the_exit_status(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    run("sh", "-c", text_for(job, "Shell").replace("/path/to/job", "ls /nowhere/at/all"))
    start, (kind, status, body) = pings_of(gatebell, job)
    assert start == ("start", None, None)
    assert (kind, bool(status)) == ("fail", True)
    assert b"/nowhere/at/all" in (body or b"")


def test_cron_sends_the_exit_status(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    when, command = text_for(job, "crontab").split(" /path/to/job", 1)
    assert when == "30 3 * * *"
    run("sh", "-c", f"(exit 3){command}")
    assert pings_of(gatebell, job) == [("fail", 3, None)]


@pytest.mark.parametrize(("result", "kind"), [("success", "success"), ("exit-code", "fail")])
def test_systemd_reports_the_result_of_the_service(
    gatebell: LiveGatebell, result: str, kind: str
) -> None:
    job = heartbeat(gatebell)
    lines = text_for(job, "systemd").replace("/usr/bin/curl", "curl").replace("$$", "$")
    commands = dict(line.split("=", 1) for line in lines.splitlines() if "=" in line)
    for name in ("ExecStartPre", "ExecStopPost"):
        run(*shlex.split(commands[name].removeprefix("-")), SERVICE_RESULT=result)
    assert [ping[0] for ping in pings_of(gatebell, job)] == ["start", kind]


def test_python_reports_success_and_failure(gatebell: LiveGatebell) -> None:
    job = heartbeat(gatebell)
    text = text_for(job, "Python")
    run(sys.executable, "-c", text)
    run(sys.executable, "-c", text.replace("...", "raise ValueError('disk')"))
    assert pings_of(gatebell, job) == [
        ("start", None, None),
        ("success", None, None),
        ("start", None, None),
        ("fail", None, b"disk"),
    ]
