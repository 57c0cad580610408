"""Tests that requests do not wait for a frozen PostgreSQL server."""

from time import monotonic, sleep

import psycopg
import pytest
import requests

from tests.faults.conftest import BreakablePostgres
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.processes import frozen
from tests.support.accounts.people import alice, sign_in
from tests.support.alerts.senders import connect, item, webhook
from tests.support.service.live import LiveGatebell

#: Maximum number of seconds, which includes a reserve for busy machines.
SOON = 10.0


@pytest.fixture
def live(on_breakable_postgres: LiveGatebell) -> LiveGatebell:
    return on_breakable_postgres


def asked(live: LiveGatebell, path: str, **cookies: str) -> requests.Response:
    began = monotonic()
    answer = requests.get(f"{live.url}{path}", cookies=cookies, timeout=30)
    assert monotonic() - began < SOON, path
    return answer


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("Postgres is frozen for {seconds} s")
@pytest.mark.parametrize(
    "seconds", [2, pytest.param(30, marks=pytest.mark.faults_full)], ids=["small", "full"]
)
def test_requests_do_not_wait_for_a_frozen_postgres(
    live: LiveGatebell, breakable_postgres: BreakablePostgres, seconds: int
) -> None:
    endpoint, metrics = connect(live), connect(live, kind="prometheus")
    cookies = sign_in(live, alice(live)).cookies.get_dict()
    with load_on(endpoint) as answers:
        answers.wait_for(20)
        with frozen(breakable_postgres.server.get_pid()):
            began = monotonic()
            while monotonic() - began < seconds:
                assert asked(live, "/healthz").status_code == 200
                not_ready = asked(live, "/readyz")
                assert (not_ready.status_code, not_ready.json()["database"]) == (503, "away")
                away = [
                    endpoint.send(title="while frozen"),
                    metrics.post(webhook(item("while frozen"))),
                    asked(live, f"/{endpoint.project}/-/alerts", **cookies),
                    asked(live, "/oauth/token/info"),
                ]
                assert [answer.status_code for answer in away[:3]] == [503] * 3
                for answer in (*away[:3], not_ready):
                    assert int(answer.headers["Retry-After"]) > 0
                assert max(answer.elapsed.total_seconds() for answer in away) < SOON
        answers.fault_ends()
        back_at = monotonic()
        while endpoint.send(title="back").status_code != 200:
            assert monotonic() - back_at < 2 * SOON
            sleep(0.05)
        answers.wait_for(20)
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert (set(account.answered), account.reset, account.unheard) == ({200, 503}, 0, 0)
    assert account.longest_wait < SOON
    assert asked(live, "/readyz").status_code == 200
    assert "Traceback" not in live.log_text()


@pytest.mark.long
@pytest.mark.fault("a table is locked for 2 s")
def test_requests_wait_for_a_long_statement_while_postgres_responds(
    live: LiveGatebell,
) -> None:
    """Show that a locked row does not make the database unavailable."""
    endpoint = connect(live)
    assert endpoint.send(title="first").status_code == 200
    with psycopg.connect(live.database_url) as connection:
        connection.execute("LOCK TABLE alerts IN ACCESS EXCLUSIVE MODE")
        began = monotonic()
        with load_on(endpoint) as answers:
            sleep(2)
            assert asked(live, "/readyz").status_code == 200
            connection.rollback()
            answers.fault_ends()
            answers.wait_for(20)
        assert monotonic() - began > 2
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert set(account.answered) == {200}
    assert account.longest_wait > 1
