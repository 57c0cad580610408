"""Disk space of each kind of object, stored as the service stores it.

The objects are stored one after the other by the app in this process, in a new database of each
type. The indexes are therefore as full as in production, and not as full as after a bulk load.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
from flask import Flask

from app import create_app
from bench.alert_bodies import generic_alert, metrics_webhook
from bench.alert_lists import say
from bench.gatebell_seed import seed_gatebell
from bench.samples import CannotMeasureError
from bench.seed_counts import Counts
from bench.workloads import METRICS_ALERTS
from tests.support.accounts.people import make_project, make_user, settings_of
from tests.support.alerts.senders import JSON, Endpoint, connect
from tests.support.service.live import LiveGatebell, close_app
from web.database.schema import migrate
from web.jobs.retention import add_up_days

_SIZES = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid), reltuples::bigint
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@dataclass(frozen=True, kw_only=True)
class TableSize:
    """The size of a table, including TOAST, and of its indexes in bytes."""

    rows: int = 0
    table: int = 0
    indexes: int = 0

    def since(self, earlier: "TableSize") -> "TableSize":
        """Return the difference to an earlier size."""
        return TableSize(
            rows=self.rows - earlier.rows,
            table=self.table - earlier.table,
            indexes=self.indexes - earlier.indexes,
        )


@dataclass(frozen=True, kw_only=True)
class StorageCost:
    """The disk space that objects of one kind need."""

    name: str
    things: int
    #: Growth of each Postgres table. Tables that have not grown are left out.
    tables: Mapping[str, TableSize]
    #: Bytes written to Postgres' write-ahead log.
    wal: int
    #: Growth of the SQLite file in bytes.
    sqlite: int

    @property
    def postgres(self) -> float:
        """Bytes of tables and indexes per object."""
        grown = sum(each.table + each.indexes for each in self.tables.values())
        return grown / self.things


@dataclass(frozen=True, kw_only=True)
class _Instance:
    """A new database, with a sender of each kind."""

    live: LiveGatebell
    app: Flask
    generic: Endpoint
    metrics: Endpoint

    def post(self, endpoint: Endpoint, body: str) -> None:
        """Send a body to the app in this process."""
        headers = {"Content-Type": JSON, **endpoint.bearer}
        answer = self.app.test_client().post(endpoint.path, headers=headers, data=body)
        if answer.status_code != 200:  # noqa: PLR2004 - accepted
            raise CannotMeasureError(answer.text)


@dataclass(frozen=True)
class _Kind:
    """A kind of object, and the function that stores a number of them."""

    name: str
    store: Callable[[_Instance, int], None]
    #: Number of objects that a request stores.
    at_once: int = 1


def _new_alerts(instance: _Instance, count: int) -> None:
    for number in range(count):
        instance.post(instance.generic, generic_alert(f"Disk full {number:017d}"))


def _reports(instance: _Instance, count: int) -> None:
    for number in range(count):
        instance.post(instance.generic, generic_alert(f"Disk full {number % 100:017d}"))


def _webhooks(instance: _Instance, count: int) -> None:
    for number in range(count // METRICS_ALERTS):
        instance.post(instance.metrics, metrics_webhook(METRICS_ALERTS, f"{number:017d}"))


def _pairs(instance: _Instance, count: int) -> None:
    seed_gatebell(
        instance.live, Counts(access_tokens=count, refresh_tokens=1, codes=1, device_codes=1)
    )


KINDS: Sequence[_Kind] = (
    _Kind("a new alert in a webhook of its own", _new_alerts),
    _Kind("another report of an open alert", _reports),
    _Kind(f"a new alert in a webhook of {METRICS_ALERTS}", _webhooks, METRICS_ALERTS),
    _Kind("a pair of tokens with its authorization", _pairs),
)


def storage_costs(things: int, directory: Path, database_url: str) -> Sequence[StorageCost]:
    """Store objects of each kind in both types of database."""
    sqlite = _made(directory / "sqlite", "")
    postgres = _made(directory / "postgres", database_url)
    try:
        return [_cost(kind, things, sqlite, postgres) for kind in KINDS]
    finally:
        close_app(sqlite.app)
        close_app(postgres.app)


def body_size() -> int:
    """Return the body size in bytes of an alert that is sent on its own."""
    return len(generic_alert(f"Disk full {0:017d}"))


def _made(directory: Path, database_url: str) -> _Instance:
    directory.mkdir(parents=True)
    live = LiveGatebell(instance_path=directory, database_url=database_url)
    migrate(settings_of(live))
    project = make_project(live, make_user(live))
    return _Instance(
        live=live,
        app=create_app(settings_of(live)),
        generic=connect(live, project),
        metrics=connect(live, project, kind="prometheus", name="Metrics"),
    )


def _cost(kind: _Kind, things: int, sqlite: _Instance, postgres: _Instance) -> StorageCost:
    say(f"  {kind.name}")
    count = things // kind.at_once * kind.at_once
    size, sizes, wal = _file_size(sqlite), _table_sizes(postgres), _wal(postgres)
    kind.store(sqlite, count)
    kind.store(postgres, count)
    wal = _wal(postgres) - wal
    grown = {name: each.since(sizes[name]) for name, each in _table_sizes(postgres).items()}
    return StorageCost(
        name=kind.name,
        things=count,
        tables={name: each for name, each in grown.items() if each.table + each.indexes > 0},
        wal=wal,
        sqlite=_file_size(sqlite) - size,
    )


def _table_sizes(instance: _Instance) -> Mapping[str, TableSize]:
    # These steps are the work of a worker and of autovacuum in production.
    add_up_days(settings_of(instance.live))
    with psycopg.connect(instance.live.database_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        rows = connection.execute(_SIZES).fetchall()
    return {
        name: TableSize(rows=max(count, 0), table=table, indexes=indexes)
        for name, table, indexes, count in rows
    }


def _wal(instance: _Instance) -> int:
    with psycopg.connect(instance.live.database_url) as connection:
        row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
    return int(row[0]) if row else 0


def _file_size(instance: _Instance) -> int:
    file = instance.live.instance_path / "gatebell.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size
