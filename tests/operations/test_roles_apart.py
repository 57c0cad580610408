"""On Postgres one role migrates, and the service works as another one that owns nothing."""

from pathlib import Path
from time import monotonic, sleep

import psycopg
import pytest
import requests
from psycopg import sql
from sqlalchemy.engine import make_url

from domain.programs.job_turns import WORKER_HEARTBEAT, last_turn
from tests.operations.conftest import RunHere
from tests.support.accounts.people import database_of, make_project, make_user
from tests.support.alerts.senders import connect
from tests.support.database.postgres import Postgres
from tests.support.service.live import ROOT, LiveGatebell

SERVICE = "gatebell_test_service"


def as_role(url: str, role: str) -> str:
    parts = make_url(url).set(username=role, password="only-for-tests")
    return parts.render_as_string(hide_password=False)


def documented_grants(url: str) -> str:
    """Return the statements of docs/operations.md, for this database."""
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    (block,) = [each for each in text.split("```sql\n")[1:] if "GRANT" in each]
    name = make_url(url).database
    return (
        block.partition("```")[0]
        .replace("DATABASE gatebell ", f"DATABASE {name} ")
        .replace("gatebell_service", SERVICE)
    )


@pytest.fixture
def url(postgres: Postgres) -> str:
    """An empty database, whose owner migrates; the other role may connect and nothing else."""
    made = postgres.new_database()
    with psycopg.connect(make_url(made).render_as_string(hide_password=False)) as connection:
        connection.execute(
            sql.SQL(
                "DO $$ BEGIN CREATE ROLE {} LOGIN PASSWORD 'only-for-tests'; "
                "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
            ).format(sql.Identifier(SERVICE))
        )
    return made


def execute(url: str, statements: str) -> None:
    with psycopg.connect(make_url(url).render_as_string(hide_password=False)) as connection:
        connection.execute(statements.encode())


def await_worker(live: LiveGatebell) -> None:
    deadline = monotonic() + 60
    heard = None
    while heard is None and monotonic() < deadline:
        sleep(0.2)
        with database_of(live) as session:
            heard = last_turn(WORKER_HEARTBEAT, session=session)
    assert heard is not None, live.log_text()


def test_the_service_works_as_a_role_that_owns_nothing(
    url: str, tmp_path: Path, run_here: RunHere
) -> None:
    owner = LiveGatebell(instance_path=tmp_path / "owner", database_url=url)
    execute(url, documented_grants(url))
    assert run_here(owner, "make migrate").returncode == 0
    live = LiveGatebell(
        instance_path=tmp_path / "service",
        database_url=as_role(url, SERVICE),
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
    assert "ended by itself" not in live.log_text()


def test_a_worker_that_may_not_make_its_schema_says_what_to_do(
    url: str, tmp_path: Path, run_here: RunHere
) -> None:
    execute(url, f"GRANT ALL ON SCHEMA public TO {SERVICE}")
    live = LiveGatebell(instance_path=tmp_path, database_url=as_role(url, SERVICE))
    done = run_here(live, "make run")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "DATABASE_URL: the worker's queue needs the schema gatebell_queue, and the role "
    )
    assert f"GRANT CREATE ON DATABASE {make_url(url).database} TO {SERVICE}" in done.stderr
    assert "Traceback" not in done.stderr
