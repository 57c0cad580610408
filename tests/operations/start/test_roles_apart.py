"""Tests that on PostgreSQL the service works with a role that does not own the tables."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import LiteralString, NamedTuple

import psycopg
import pytest
import requests
from psycopg import sql
from sqlalchemy.engine import make_url

from domain.core.hosts import WORKER_HEARTBEAT_JOB, find_last_job_run
from tests.operations.conftest import RunHere
from tests.support.accounts.people import database_of, make_project, make_user
from tests.support.alerts.senders import connect
from tests.support.database.postgres import Postgres
from tests.support.service.live import ROOT, LiveGatebell

SCRIPTS = ROOT / "deploy" / "postgres"
PASSWORDS = {"owner_password": "only-for-tests", "service_password": "only-for-tests-too"}


class Roles(NamedTuple):
    """Describes a database made by deploy/postgres/roles.sql, with an address for each role."""

    name: str
    owner: str
    service: str


@pytest.fixture
def roles(postgres: Postgres, tmp_path: Path) -> Iterator[Roles]:
    """Run the original scripts, with unique names on this server."""
    name = f"gatebell_test_roles_{os.getpid()}"
    for script in SCRIPTS.iterdir():
        text = re.sub(r"\bgatebell(?=[_;\s])", name, script.read_text(encoding="utf-8"))
        (tmp_path / script.name).write_text(text, encoding="utf-8")
    postgres.run_script(tmp_path / "roles.sql", **PASSWORDS)
    owner, service = f"{name}_owner", f"{name}_service"
    yield Roles(
        name,
        postgres.address_of(name, owner, PASSWORDS["owner_password"]),
        postgres.address_of(name, service, PASSWORDS["service_password"]),
    )
    drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
    postgres.execute(drop)
    for role in (owner, service):
        postgres.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def error_of(url: str, statement: LiteralString) -> str:
    """Return the error of PostgreSQL for a statement of a role."""
    address = make_url(url).render_as_string(hide_password=False)
    with psycopg.connect(address) as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute(statement)
    return str(refused.value)


def await_worker(live: LiveGatebell) -> None:
    deadline = monotonic() + 60
    heard = None
    while heard is None and monotonic() < deadline:
        sleep(0.2)
        with database_of(live) as session:
            heard = find_last_job_run(WORKER_HEARTBEAT_JOB, session=session)
    assert heard is not None, live.log_text()


@pytest.mark.long
def test_the_service_works_with_a_role_that_owns_nothing(
    roles: Roles, tmp_path: Path, run_here: RunHere
) -> None:
    owner = LiveGatebell(instance_path=tmp_path / "owner", database_url=roles.owner)
    assert run_here(owner, "make migrate").returncode == 0
    live = LiveGatebell(
        instance_path=tmp_path / "service",
        database_url=roles.service,
        WEB_CONCURRENCY="1",
        MIGRATE_ON_START="false",
    )
    live.start()
    try:
        endpoint = connect(live, make_project(live, make_user(live)))
        assert [endpoint.accepted(title=f"Disk {n}")["iid"] for n in (1, 2)] == [1, 2]
        assert requests.get(f"{live.url}/readyz", timeout=10).status_code == 200
        assert live.cli("prune")["deliveries"] == 0
        await_worker(live)
    finally:
        assert live.stop() == 0, live.log_text()
    assert "permission denied" not in live.log_text()
    assert '"event":"supervisor.' not in live.log_text()
    assert "permission denied" in error_of(roles.service, "CREATE TABLE public.mine (id int)")
    assert "must be owner" in error_of(roles.service, "DROP TABLE users")
    assert "must be owner" in error_of(
        roles.service, "DROP TRIGGER alert_numbers_keep ON alert_counters"
    )
