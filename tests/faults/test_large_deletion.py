"""Tests that a large project is removed in slices, while other projects accept alerts."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.projects.deletion import delete_project
from models import Occurrence, Project
from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.processes import children, wait_until
from tests.support.accounts.namespaces import get_namespace
from tests.support.accounts.people import alice, bob, database_of, make_project, now
from tests.support.alerts.bulk import fill_project, rows_of
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

MANY = 20_000


@contextmanager
def reading(live: LiveGatebell) -> Iterator[Session]:
    """Open the database without waiting for writers."""
    with Session(live.engine().execution_options(begin_mode="DEFERRED")) as session:
        yield session


def is_gone(live: LiveGatebell, project_id: int) -> bool:
    with reading(live) as session:
        return session.get(Project, project_id) is None


def worker_of(live: LiveGatebell) -> int | None:
    running = [pid for pid, words in children(live.pid) if "web.jobs.worker" in words]
    return running[0] if running else None


def left_of(live: LiveGatebell, project_id: int) -> dict[str, int]:
    with reading(live) as session:
        return rows_of(project_id, session=session)


def kill_worker_in_the_middle(live: LiveGatebell, project_id: int, count: int) -> None:
    """Kill the worker after it has removed some of the alerts."""
    wait_until(lambda: 0 < left_of(live, project_id).get("alerts", 0) < count, seconds=180)
    worker = worker_of(live)
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    assert not is_gone(live, project_id)


def remove_under_load(live: LiveGatebell, count: int, *, seconds: int) -> None:
    endpoint = connect(live, make_project(live, bob(live)))
    path = make_project(live, alice(live))
    with database_of(live) as session:
        project_id = fill_project(path, count, session=session, now=now())
    # The newest row is not removed, so that its id is not reused.
    newer = make_project(live, bob(live))
    with load_on(endpoint) as answers:
        answers.wait_for(200)
        alone = answers.slowest
        with database_of(live) as session:
            delete_project(get_namespace(path, session=session), session=session, now=now())
        began = monotonic()
        kill_worker_in_the_middle(live, project_id, count)
        wait_until(lambda: is_gone(live, project_id), seconds=seconds)
        took = monotonic() - began
        answers.wait_for(50)
    sys.stdout.write(
        f"\n{count:,} alerts removed in {took:.0f} s; slowest answer to others"
        f" {alone:.2f} s before, {answers.slowest:.2f} s meanwhile"
    )
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert set(account.answered) == {200}
    assert left_of(live, project_id) == {}
    with database_of(live) as session:
        occurrences = session.scalar(select(func.count()).select_from(Occurrence))
        assert get_namespace(newer, session=session).path == newer
    assert occurrences == answers.answered[200]
    assert not list(Path(live.instance_path).glob(f"repositories/??/{project_id}-*"))


@pytest.mark.faults_full
@pytest.mark.fault("20,000 alerts of another project are deleted, and the worker is killed")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_alerts_are_removed_while_others_are_accepted(start: Start, kind: str) -> None:
    remove_under_load(start(kind), MANY, seconds=600)
