"""Fixtures of all tests: databases of both kinds, an app on each, and the complete service."""

import gc
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from zlib import crc32

import hypothesis
import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import create_app
from tests.support.database.compiled_statements import share_compiled_statements
from tests.support.database.postgres import Postgres, memory_directory, running_postgres
from tests.support.service.in_process import InProcessGatebell, take_requests
from tests.support.service.live import (
    SECRET_KEY,
    LiveGatebell,
    NewService,
    close_app,
    complaints,
    running,
)
from tests.support.service.secrets_seen import watch
from tests.support.service.url_rules import RememberedRule
from tests.support.sign_in.password_rules import QUICK
from tests.support.wire.garbage import FUZZ_EXAMPLES
from web.database.schema import migrate_to_newest
from web.http.flask_app import SynchronousFlask
from web.settings.environment import Settings, parse_settings

KINDS = ("sqlite", "postgres")
#: Folders whose files run on one database, half of them on each. Tests marked `both_databases` run
#: on the other one in `make test-long`. `make test-both` runs all tests on both databases.
_IN_TURN = (
    *("tests/browser/", "tests/cli/", "tests/faults/", "tests/http/", "tests/stories/"),
    *("tests/paging/escalations/", "tests/web/jobs/", "tests/paging/notifications/"),
    *("tests/web/releases/", "tests/web/sealing/", "tests/web/server/"),
    *("tests/web/settings/", "tests/operations/"),
)
_OF_DATABASES = ("one_database", "both_databases")
#: Folders whose tests run on SQLite only in `make test-long`: it has one writer at a time, so it
#: shows fewer races.
_ON_POSTGRES = ("tests/races/",)
#: `make properties` tries this number of values; `make test` tries a few
#: (tests/support/wire/garbage.py).
hypothesis.settings.register_profile("fuzz", max_examples=FUZZ_EXAMPLES, deadline=None)
# Tests have no deadline, because machines are busy at times.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run one process more than there are processors.

    Tests wait at times, and each process has to load the code.
    """
    return (os.cpu_count() or 1) + 1


def pytest_configure() -> None:
    """Keep the files of tests in memory, because SQLite waits for the disk at each commit.

    This needs enough memory. The same variable or `--basetemp` selects another folder.
    """
    if memory := memory_directory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the warnings and errors of running services with a failed test."""
    report = yield
    if report.failed:
        for url, said in complaints().items():
            report.sections.append((f"Warnings and errors of {url}", said))
    return report


def pytest_collection() -> None:
    """Turn garbage collection off during the collection of tests, since there is no garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt the tests and all imported modules from garbage collection."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `make test-both` and `make faults`."""
    parser.addoption(
        "--every-database", action="store_true", help="run each test on both databases"
    )
    parser.addoption(
        "--accounts", metavar="FOLDER", help="keep there what faults cost (tests/faults)"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Select the tests of `make test`: the database of each test, and samples of similar cases."""
    is_in_turn = not config.getoption("--every-database")
    wanted = [item for item in items if _is_wanted(item, is_in_turn=is_in_turn)]
    for item in wanted:
        if _is_one_of_many(item):
            item.add_marker(pytest.mark.long)
    items[:] = wanted
    yield  # pytest deselects the marked tests.
    # The order mixes files that mostly wait with files that mostly compute.
    items.sort(key=lambda item: crc32(item.nodeid.partition("::")[0].encode()))
    items[:] = _by_shared_service(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _by_shared_service(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """Order tests so that few processes of xdist start the services and browsers that tests share.

    Each process starts with a part of the list, and all parts have the same length. An idle process
    takes tests from the end of another part. So tests of a shared service start a part, the first
    or the last one, and tests without a shared service follow.
    """
    by_kind: dict[str, list[pytest.Item]] = {"sqlite": [], "postgres": [], "": []}
    for item in items:
        by_kind[_shared_kind(item)].append(item)
    first, last, others = by_kind.values()
    if processes == 1:
        return [*first, *others, *last]
    part = len(items) // processes
    after_first = max(part - len(first), 0)
    before_last = max(len(others) - max(part - len(last), 0), after_first)
    return [*first, *others[:before_last], *last, *others[before_last:]]


def _shared_kind(item: pytest.Item) -> str:
    """Return the database of the shared service of a test; tests with a browser count as SQLite."""
    case = getattr(item, "callspec", None)
    if case is not None and "gatebell" in case.params:
        return str(case.params["gatebell"])
    names = getattr(item, "fixturenames", ())
    used = next((kind for kind in KINDS if f"live_{kind}" in names), "")
    return used or ("sqlite" if "browser" in names else "")


def _is_one_of_many(item: pytest.Item) -> bool:
    """Return whether only `make test-long` runs this case of a test that is marked `sampled`."""
    mark = item.get_closest_marker("sampled")
    return mark is not None and crc32(item.nodeid.encode()) % mark.args[0] != 0


def _is_wanted(item: pytest.Item, *, is_in_turn: bool) -> bool:
    """Return whether a test runs on its database at all; mark it long on the second one."""
    case = getattr(item, "callspec", None)
    kind = next((each for each in case.params.values() if each in KINDS), None) if case else None
    if kind is None:
        return True
    # A mark of a test takes precedence over a mark of its file.
    asked = next((each for each in item.iter_markers() if each.name in _OF_DATABASES), None)
    if asked is not None and asked.name == "one_database":
        return bool(kind == asked.args[0])
    if not is_in_turn or not item.nodeid.startswith((*_IN_TURN, *_ON_POSTGRES)):
        return True
    if kind != _first_kind(item):
        if asked is None and item.nodeid.startswith(_IN_TURN):
            return False
        item.add_marker(pytest.mark.long)
    return True


def _first_kind(item: pytest.Item) -> str:
    if of_file := item.get_closest_marker("one_database"):
        return str(of_file.args[0])
    if item.nodeid.startswith(_ON_POSTGRES):
        return "postgres"
    # The choice is by file, so that shared fixtures of a file start on only one database.
    name = item.nodeid.partition("::")[0]
    return KINDS[crc32(name.encode()) % len(KINDS)]


@pytest.fixture(scope="session", autouse=True)
def secrets_are_remembered() -> Iterator[None]:
    """Remember the secrets of all tests, for checks that no log contains them."""
    with pytest.MonkeyPatch.context() as patch:
        take_requests(patch)
        watch(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def apps_share_what_is_compiled() -> Iterator[None]:
    """Compile rules and statements only for the first app of the session."""
    with pytest.MonkeyPatch.context() as patch:
        share_compiled_statements(patch)
        patch.setattr(SynchronousFlask, "url_rule_class", RememberedRule)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The Postgres server of this session."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, as a template."""
    directory = tmp_path_factory.mktemp("template")
    migrate_to_newest(parse_settings({"INSTANCE_PATH": str(directory)}))
    return directory / "gatebell.db"


@pytest.fixture(scope="session")
def migrated_postgres(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated Postgres database, as a template."""
    url = postgres.new_database()
    directory = tmp_path_factory.mktemp("template")
    environment = {"INSTANCE_PATH": str(directory), "DATABASE_URL": url, "SECRET_KEY": SECRET_KEY}
    migrate_to_newest(parse_settings(environment))
    return url


@pytest.fixture(scope="session")
def new_postgres(postgres: Postgres, migrated_postgres: str) -> Callable[[], str]:
    """Creates migrated databases and returns their URLs."""
    return partial(postgres.new_database, template=migrated_postgres)


@pytest.fixture(scope="session")
def new_service(
    request: pytest.FixtureRequest, migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory
) -> NewService:
    """Creates services for a database with settings; their databases are already migrated.

    `only="web"` creates only the web server, for tests without the background worker. `only="app"`
    creates an app in this process, for tests that need no web server either.
    """

    def make(kind: str = "sqlite", **settings: str) -> LiveGatebell:
        made = InProcessGatebell if settings.get("only") == "app" else LiveGatebell
        directory = tmp_path_factory.mktemp("service")
        url = ""
        if kind == "sqlite":
            shutil.copy(migrated_sqlite, directory / "gatebell.db")
        else:
            url = request.getfixturevalue("new_postgres")()
        return made(instance_path=directory, database_url=url, **settings)

    return make


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A migrated, empty database for a single test, of each kind in turn."""
    if request.param == "sqlite":
        file = tmp_path / "gatebell.db"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), file)
        yield f"sqlite:///{file}"
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    url = postgres.new_database(template=request.getfixturevalue("migrated_postgres"))
    yield url
    postgres.drop_database(url)


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings of an app in this process; tests change them with dataclasses.replace."""
    environment = {
        "BASE_URL": "http://localhost",
        "DATABASE_URL": database_url,
        "INSTANCE_PATH": str(tmp_path),
        "SECRET_KEY": "a key that only tests have, and everybody knows",
        # All clients of the tests share one address.
        "OAUTH_RATE_LIMIT": "1000000/minute",
    }
    return replace(
        parse_settings(environment),
        password_hash_memory_kib=QUICK.memory_kib,
        password_hash_passes=QUICK.passes,
    )


@pytest.fixture
def make_app() -> Iterator[Callable[[Settings], Flask]]:
    """Creates apps in this process, and closes their connections."""
    made: list[Flask] = []

    def make(settings: Settings) -> Flask:
        made.append(create_app(settings))
        return made[-1]

    yield make
    for each in made:
        close_app(each)


@pytest.fixture
def app(make_app: Callable[[Settings], Flask], settings: Settings) -> Flask:
    """The app in this process."""
    return make_app(settings)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of the app in this process."""
    return app.test_client()


@pytest.fixture(scope="session")
def live_sqlite(new_service: NewService) -> Iterator[LiveGatebell]:
    """The service on SQLite, running for the whole session."""
    with running(new_service("sqlite", host="localhost", LOG_LEVEL="DEBUG")) as live:
        yield live


@pytest.fixture(scope="session")
def live_postgres(new_service: NewService) -> Iterator[LiveGatebell]:
    """The service on Postgres, running for the whole session."""
    with running(new_service("postgres", host="localhost", LOG_LEVEL="DEBUG")) as live:
        yield live


@pytest.fixture(params=KINDS)
def gatebell(request: pytest.FixtureRequest) -> LiveGatebell:
    """The running service on each database in turn; it is shared, so tests create their own data.

    Its URL has a host name, since browsers do not support passkeys for IP addresses.
    """
    live: LiveGatebell = request.getfixturevalue(f"live_{request.param}")
    return live
