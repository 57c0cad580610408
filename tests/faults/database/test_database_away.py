"""Tests of database outages under load, after which Gatebell recovers without a restart."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import connect as open_sqlite
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest
import requests

from tests.faults.conftest import BreakablePostgres
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.processes import wait_until
from tests.support.accounts.people import make_user, signed_in
from tests.support.alerts.senders import connect, item, webhook
from tests.support.database.stored import list_stored_alerts
from tests.support.oauth.oauth_wire import is_token_valid, new_pair, revoke, server_application
from tests.support.service.live import LiveGatebell, NewService, running

#: Number of seconds, since starting and stopping a database can block a small machine's disk.
SOON = 10.0
KILL_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture(scope="module")
def on_sqlite(new_service: NewService) -> Iterator[LiveGatebell]:
    """Run a service with a short busy timeout."""
    with running(new_service("sqlite", only="web", SQLITE_BUSY_TIMEOUT_MS="300")) as live:
        yield live


@contextmanager
def locked(live: LiveGatebell) -> Iterator[None]:
    """Hold the write lock of a SQLite file for the duration of the block."""
    file = live.database_url.removeprefix("sqlite:///")
    with closing(open_sqlite(file, isolation_level=None, timeout=30)) as locker:
        locker.execute("BEGIN IMMEDIATE")
        yield
        locker.execute("ROLLBACK")


def kill_others(live: LiveGatebell, connection: psycopg.Connection[Any]) -> None:
    """Terminate all connections except one, including the connections of the test."""
    connection.execute(KILL_OTHERS)
    live.engine().dispose()


def ready(live: LiveGatebell) -> requests.Response:
    return requests.get(f"{live.url}/readyz", timeout=10)


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("Postgres is restarted")
def test_alert_intake_recovers_after_a_restart_of_postgres(
    breakable_postgres: BreakablePostgres, on_breakable_postgres: LiveGatebell
) -> None:
    server, live = breakable_postgres.server, on_breakable_postgres
    generic, metrics = connect(live), connect(live, kind="prometheus")
    with load_on(generic) as answers:
        answers.wait_for(20)
        server.stop()
        away = [generic.send(title="while away"), metrics.post(webhook(item("while away")))]
        not_ready = ready(live)
        is_alive = requests.get(f"{live.url}/healthz", timeout=10)
        server.ensure_postgres_running()
        answers.fault_ends()
        live.engine().dispose()
        back_at = monotonic()
        while generic.send(title="back").status_code != 200:
            assert monotonic() - back_at < 2 * SOON
            sleep(0.05)
        answers.wait_for(20)
    assert answers.refused
    for answer in (*away, *answers.refused):
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.json() == {"message": "503 Service Unavailable"}
        assert answer.elapsed.total_seconds() < SOON
    assert is_alive.status_code == 200
    assert not_ready.status_code == 503
    assert int(not_ready.headers["Retry-After"]) > 0
    assert not_ready.json() == {"status": "unavailable", "database": "away"}
    assert ready(live).status_code == 200
    assert_nothing_was_lost(live, generic, answers)
    assert "Traceback" not in live.log_text()


@pytest.mark.spec("I1")
@pytest.mark.fault("all connections to Postgres are closed, five times")
def test_killed_connections_lose_no_accepted_alerts(
    on_postgres: LiveGatebell,
) -> None:
    live, url = on_postgres, on_postgres.database_url
    endpoint = connect(live)
    with load_on(endpoint) as answers, psycopg.connect(url, autocommit=True) as connection:
        for _ in range(5):
            answers.wait_for(20)
            kill_others(live, connection)
            answers.fault_ends()
        answers.wait_for(20)
    assert answers.statuses <= {200, 503}
    assert_nothing_was_lost(live, endpoint, answers)
    assert "Traceback" not in live.log_text()


@pytest.mark.long
@pytest.mark.spec("I1")
def test_a_read_only_database_is_unavailable_until_it_is_writable(
    on_postgres: LiveGatebell,
) -> None:
    live, url = on_postgres, on_postgres.database_url
    endpoint = connect(live)
    metrics = connect(live, endpoint.project, kind="prometheus", name="Metrics")
    batch = webhook(item("b"), item("c"))
    assert endpoint.send(title="before").status_code == 200
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        for mode, statuses in (("on", {503}), ("off", {200})):
            connection.execute(
                f'ALTER DATABASE "{name}" SET default_transaction_read_only = {mode}'
            )
            kill_others(live, connection)
            sleep(1.2)
            is_ready = {"on": (503, "read-only"), "off": (200, "ok")}[mode]
            readiness = ready(live)
            assert (readiness.status_code, readiness.json()["database"]) == is_ready
            answers = [endpoint.send(title=f"a{mode}{number}") for number in range(8)]
            answers += [metrics.post(batch) for _ in range(4)]
            assert {answer.status_code for answer in answers} == statuses
            connection.execute("SET default_transaction_read_only = off")
    assert "Traceback" not in live.log_text()


@pytest.mark.long
@pytest.mark.spec("I1")
def test_a_locked_sqlite_is_unavailable_and_nothing_is_partially_stored(
    on_sqlite: LiveGatebell,
) -> None:
    live = on_sqlite
    endpoint = connect(live, kind="prometheus")
    batch = webhook(*(item(f"a{number}") for number in range(5)))
    with locked(live):
        answer, readiness = endpoint.post(batch), ready(live)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.elapsed.total_seconds() < SOON
    assert readiness.json() == {"status": "unavailable", "database": "locked"}
    assert readiness.elapsed.total_seconds() < SOON
    assert list_stored_alerts(live, endpoint.project) == []
    assert endpoint.post(batch).status_code == 200
    assert len(list_stored_alerts(live, endpoint.project)) == 5
    assert "Traceback" not in live.log_text()


@pytest.mark.long
@pytest.mark.spec("I1")
def test_a_locked_sqlite_can_serve_pages_and_rejects_forms_temporarily(
    on_sqlite: LiveGatebell,
) -> None:
    live = on_sqlite
    browser = signed_in(live, make_user(live))
    with locked(live):
        assert browser.get(f"{live.url}/groups/new").status_code == 200
        for path in ("/groups/new", "/-/nothing-here"):
            # Even an expired form or an unknown page needs the signed-in user.
            answer = browser.post(live.url + path)
            assert (answer.status_code, path) == (503, path)
            assert int(answer.headers["Retry-After"]) > 0
    assert "Traceback" not in live.log_text()


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("another program locks the database")
def test_a_sqlite_locked_under_load_loses_and_doubles_nothing(
    on_sqlite: LiveGatebell,
) -> None:
    live = on_sqlite
    endpoint = connect(live)
    with load_on(endpoint) as answers:
        answers.wait_for(20)
        with locked(live):
            wait_until(lambda: answers.answered[503])
        answers.fault_ends()
        answers.wait_for(20)
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert set(account.answered) == {200, 503}
    assert account.reset == 0
    assert "Traceback" not in live.log_text()


@pytest.mark.long
@pytest.mark.advisory("CVE-2020-15223")
@pytest.mark.rfc("rfc7009-2.2.1-c")
def test_a_revocation_fails_while_the_database_is_unavailable(on_sqlite: LiveGatebell) -> None:
    live = on_sqlite
    client = server_application(live)
    pair = new_pair(live, client)
    with locked(live):
        answer = revoke(live, client, pair.access)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json()["error"] == "temporarily_unavailable"
    assert is_token_valid(live, pair.access)
    assert revoke(live, client, pair.access).status_code == 200
    assert not is_token_valid(live, pair.access)
