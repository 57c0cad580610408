"""Tests of the service with PgBouncer in transaction mode, configured as in deploy/.

All clients share one connection to PostgreSQL, so code that holds it and waits for another
connection would wait forever.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import psycopg
import pytest
import requests
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tests.operations.conftest import RunHere
from tests.operations.programs import execute_statements
from tests.support.accounts.people import make_application, make_project, make_user, sign_in
from tests.support.alerts.monitoring import wait_until
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.pgbouncer import PgBouncer, is_installed, running_pgbouncer
from tests.support.database.stored import list_stored_alerts
from tests.support.oauth.device_wire import approve, codes, poll, television
from tests.support.oauth.oauth_wire import (
    new_pair,
    parse_token_pair,
    post_token,
    refresh,
    server_application,
)
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import SECRET_KEY, LiveGatebell, running
from tests.support.service.message_receiver import running_receiver
from web.database.engine import open_engine
from web.database.preparation import prepare_database
from web.database.schema import migrate_to_newest
from web.database.startup_checks import check_database_if_available
from web.database.startup_errors import CannotStartError
from web.settings.environment import Settings, parse_settings

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="scripts/ensure-pooler could not fetch PgBouncer"
)
CLIENTS = 16
_CROWD_SECONDS = 6
NewPostgres = Callable[[], str]
_numbers = count(1)


def through(url: str, folder: Path, **settings: str) -> Settings:
    given = {"DATABASE_URL": url, "INSTANCE_PATH": str(folder), "SECRET_KEY": SECRET_KEY}
    return parse_settings({**given, "DATABASE_POOLER": "transaction", **settings})


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """Represents a service, and the pooler between it and PostgreSQL."""

    live: LiveGatebell
    pooler: PgBouncer


@pytest.fixture(scope="module")
def pooled(new_postgres: NewPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooled]:
    """Run a service behind a pooler, after `make migrate` has prepared its role."""
    direct, folder = new_postgres(), tmp_path_factory.mktemp("pooled")
    migrate_to_newest(through(direct, folder))
    with running_pgbouncer(direct, pool_size=1) as pooler:
        live = LiveGatebell(
            instance_path=folder,
            database_url=direct,
            DATABASE_URL=pooler.url,
            DATABASE_POOLER="transaction",
            WEB_CONCURRENCY="2",
        )
        with running(live):
            yield Pooled(live=live, pooler=pooler)


def of_token(live: LiveGatebell, token: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return requests.get(f"{live.url}/oauth/token/info", headers=headers, timeout=60)


def test_all_kinds_of_work_succeed_with_a_transaction_pooler(pooled: Pooled) -> None:
    live = pooled.live
    person = make_user(live, admin=True)
    browser, project = sign_in(live, person), make_project(live, person)
    endpoint = connect(live, project)
    with running_receiver() as receiver:
        live.cli("webhooks", "create", project, "--url", receiver.url)
        assert endpoint.accepted(title="Disk is full")["iid"] == 1
        page = browser.get(f"{live.url}/{project}/-/alerts")
        assert (page.status_code, "Disk is full" in page.text) == (200, True)
        assert endpoint.send(title="Disk is full", end_time="2026-11-27T07:00:00Z").ok
        told = {"alert.opened", "alert.resolved"}
        wait_until(lambda: told <= {each.type for each in receiver.received}, "both are told")
        assert browser.get(f"{live.url}/admin").status_code == 200
    client = server_application(live)
    first = new_pair(live, client)
    second = parse_token_pair(refresh(live, client, first.refresh))
    assert of_token(live, second.access).status_code == 200
    proof = {"client_id": client.client_id, "client_secret": client.secret}
    found = requests.post(
        f"{live.url}/oauth/introspect", data={"token": second.access, **proof}, timeout=60
    )
    assert found.json()["active"] is True
    bound = make_application(live, person, scopes="openid read_user")
    form = {"username": person.username, "password": person.password, "scope": "openid"}
    proof = {"client_id": bound.client_id, "client_secret": bound.secret}
    assert post_token(live, {"grant_type": "password", **form, **proof}).json()["id_token"]
    early, device = (codes(live, television(live)) for _ in range(2))
    waiting = poll(live, television(live), early["device_code"])
    assert waiting.json()["error"] == "authorization_pending"
    approve(browser, live, device["user_code"])
    assert poll(live, television(live), device["device_code"]).status_code == 200
    checks = live.cli("doctor")["checks"]
    said = {(each["check"], each["message"]) for each in checks}
    pooled_words = "through a pooler of transactions is reachable and accepts writes."
    assert any(check == "database" and pooled_words in message for check, message in said)
    assert any(check == "pg_dump" and "without the pooler" in message for check, message in said)
    refused = live.run_cli("backup", str(live.instance_path / "backup"))
    assert (refused.returncode, "need their own session" in refused.stderr) == (1, True)
    (pool,) = (each for each in pooled.pooler.asked("SHOW POOLS") if each["user"] != "pgbouncer")
    # The exact number depends on which programs are working.
    assert pool["cl_active"] + pool["cl_waiting"] > 5
    assert pool["sv_active"] + pool["sv_idle"] + pool["sv_used"] == 1


def work(live: LiveGatebell, endpoint: Endpoint, until: float) -> Counter[int]:
    """Send alerts, check tokens and refresh them; return the statuses of the responses."""
    client, seen = server_application(live), Counter[int]()
    pair = new_pair(live, client)
    while True:
        answers = [
            endpoint.send(title=f"Disk {next(_numbers)} is full"),
            of_token(live, pair.access),
            renewed := refresh(live, client, pair.refresh),
        ]
        seen.update(answer.status_code for answer in answers)
        pair = parse_token_pair(renewed)
        if monotonic() > until:
            return seen


@pytest.mark.long
def test_many_clients_on_one_connection_lose_and_double_nothing(pooled: Pooled) -> None:
    live, endpoint = pooled.live, connect(pooled.live)
    new_pair(live, server_application(live))
    until = monotonic() + _CROWD_SECONDS
    counted = sum(
        run_simultaneously([lambda: work(live, endpoint, until)] * CLIENTS), Counter[int]()
    )
    assert set(counted) == {200}
    stored = Counter(alert.title for alert in list_stored_alerts(live, endpoint.project))
    assert set(stored.values()) == {1}
    assert len(stored) == counted[200] // 3
    assert not re.search(r'"status":5\d\d|Traceback', live.log_text())


@pytest.mark.long
def test_a_wait_for_a_pooler_connection_is_not_treated_as_a_frozen_database(
    pooled: Pooled,
) -> None:
    endpoint = connect(pooled.live)
    assert endpoint.send(title="first").ok
    busy = psycopg.connect(pooled.pooler.url)
    busy.execute("SELECT 1")
    began = monotonic()

    def let_go() -> int:
        sleep(2)
        busy.close()
        return 200

    def send() -> int:
        return endpoint.send(title=f"Disk {next(_numbers)} is full").status_code

    assert run_simultaneously([let_go, send, send, send]) == [200] * 4
    assert monotonic() - began > 2


def test_unsupported_settings_of_a_transaction_pooler_are_reported_with_a_remedy(
    new_postgres: NewPostgres, tmp_path: Path, run_here: RunHere
) -> None:
    direct = new_postgres()
    with running_pgbouncer(direct) as pooler:
        live = LiveGatebell(instance_path=tmp_path, database_url=pooler.url)

        def error_of(program: str, **variables: str) -> str:
            done = run_here(live, program, **variables)
            assert done.returncode != 0
            assert "Traceback" not in done.stderr
            return done.stderr

        assert "Set DATABASE_POOLER=transaction" in error_of("make run")
        # The web server and the worker run this check; the tests of a wrong key show that they call
        # it.
        with pytest.raises(CannotStartError, match="Set DATABASE_POOLER=transaction"):
            check_database_if_available(parse_settings(live.environment))
        declared = {"DATABASE_POOLER": "transaction"}
        undone = error_of("make run", **declared)
        assert "start with statement_timeout=0 and timezone=" in undone
        assert "`make migrate` as postgres with DATABASE_POOLER=transaction" in undone
        assert "an address of Postgres itself" in error_of("make migrate", **declared)
        assert run_here(live, "make migrate", DATABASE_URL=direct, **declared).returncode == 0
        pooler.asked("RECONNECT")
        prepare_database(through(pooler.url, tmp_path))
        check_database_if_available(through(pooler.url, tmp_path))
        # A timeout below the role's setting has to be configured in PostgreSQL first.
        hasty = error_of("make run", DATABASE_STATEMENT_TIMEOUT_MS="900", **declared)
        assert "start with statement_timeout=15000" in hasty
        execute_statements(
            through(direct, tmp_path), "UPDATE alembic_version SET version_num = '0051'"
        )
        older = error_of("make run", **declared)
        assert "an older schema" in older
        assert "`make migrate` with an address of Postgres itself" in older


@pytest.mark.long
def test_a_statement_is_cancelled_at_its_timeout_and_with_its_client(
    new_postgres: NewPostgres, tmp_path: Path
) -> None:
    direct = new_postgres()
    hasty = partial(through, folder=tmp_path, DATABASE_STATEMENT_TIMEOUT_MS="2500")
    migrate_to_newest(hasty(direct))
    with running_pgbouncer(direct) as pooler:
        engine, began = open_engine(hasty(pooler.url)), monotonic()
        with engine.connect() as connection, pytest.raises(DBAPIError, match="statement timeout"):
            connection.execute(text("SELECT pg_sleep(600)"))
        assert 2 < monotonic() - began < 10
        engine.dispose()
        left = psycopg.connect(pooler.url)
        left.pgconn.send_query(b"SELECT pg_sleep(2)")
        left.pgconn.flush()
        sleep(0.2)
        left.close()
        began = monotonic()
        with psycopg.connect(direct, autocommit=True) as connection:
            asleep = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
            asleep += " AND state = 'active'"
            assert connection.execute(asleep).fetchone()
            wait_until(lambda: connection.execute(asleep).fetchone() is None, "nobody is asleep")
        assert monotonic() - began < 1.7


@pytest.mark.long
@pytest.mark.parametrize(
    ("ignored", "reason"),
    [("", "rejects the startup parameters"), ("options", "start with statement_timeout=0")],
)
def test_a_session_pooler_and_no_pooler_work_with_both_settings(
    new_postgres: NewPostgres, tmp_path: Path, ignored: str, reason: str
) -> None:
    direct = new_postgres()
    prepare_database(through(direct, tmp_path))
    prepare_database(through(direct, tmp_path, DATABASE_POOLER="none"))
    other = new_postgres()
    with running_pgbouncer(other, pool_mode="session") as pooler:
        pooler.asked(f"SET ignore_startup_parameters = '{ignored}'")
        undeclared = through(pooler.url, tmp_path, DATABASE_POOLER="none")
        with pytest.raises(CannotStartError, match=f"{reason}.*DATABASE_POOLER=transaction"):
            prepare_database(undeclared)
        migrate_to_newest(through(other, tmp_path))
        pooler.asked("RECONNECT")
        prepare_database(through(pooler.url, tmp_path))
        if ignored:
            prepare_database(undeclared)
