"""Opens the database the way each kind wants it, and migrates it."""

import fcntl
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from enum import Enum
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, func, inspect, select, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from domain.advisory_locks import AdvisoryLock
from domain.aside import Aside, serves_in_greenlets
from models import SchemaSupport
from web.instance_files import make_private_file
from web.settings import Settings
from web.sqlite import PunctualSqlite
from web.wal_keeper import KEPT_BYTES

_log = logging.getLogger("gatebell.database")
_NEWER = "the database has a newer shape (%s) than this release made (%s), which it can work with"
MIGRATIONS = Path(__file__).parents[1] / "migrations"
#: A connection that was in use so short a time ago is not asked whether it lives.
_TRUSTED_SECONDS = 1.0

#: Where SQLite works in a web process: each connection has a thread when it needs one.
_aside = Aside(threads=512)

#: How a transaction on SQLite begins. One that reads first and writes later must take the write
#: lock at once: SQLite cannot make a reader a writer when somebody else wrote meanwhile. A
#: connection may say otherwise for itself, by the execution option of the same name.
begin_mode: ContextVar[str] = ContextVar("begin_mode", default="IMMEDIATE")


def engine_options(settings: Settings) -> dict[str, Any]:
    """Return what SQLAlchemy's create_engine wants to know, with a pool of connections."""
    return {
        **_connection_options(settings),
        "pool_size": settings.database_pool_size,
        "max_overflow": 0,
        "pool_timeout": settings.database_connect_timeout_seconds,
    }


def _connection_options(settings: Settings) -> dict[str, Any]:
    # SQL errors must not print bound secrets into the log.
    options: dict[str, Any] = {"hide_parameters": True}
    if settings.uses_sqlite:
        options["connect_args"] = {
            "timeout": settings.sqlite_busy_timeout_ms / 1000,
            "check_same_thread": False,
            "factory": PunctualSqlite,
        }
        return options
    options["connect_args"] = {
        "connect_timeout": settings.database_connect_timeout_seconds,
        "options": f"-c statement_timeout={settings.database_statement_timeout_ms} -c timezone=UTC",
        "application_name": "gatebell",
        # A host that vanished is noticed before the sender gives up.
        "keepalives_idle": 10,
        "tcp_user_timeout": settings.database_connect_timeout_seconds * 1000,
    }
    return options


def prepare_engine(engine: Engine, settings: Settings) -> None:
    """Teach an engine how long its statements may take, and what each kind of database needs."""
    if engine.dialect.name == "sqlite":
        limit = settings.database_statement_timeout_ms / 1000
        # Those of the hot paths see to that themselves, for all of a transaction at once.
        aside = None if engine.get_execution_options().get("is_hot") else _aside
        event.listen(engine, "do_connect", _before_connect)
        event.listen(engine, "connect", partial(_open_sqlite, limit=limit, aside=aside))
        event.listen(engine, "begin", _on_begin)
        return
    event.listen(engine, "connect", _look_for_a_pooler)
    _ask_who_was_idle(engine)
    if serves_in_greenlets():
        _punctual_connections(settings)(engine)


@cache
def _punctual_connections(settings: Settings) -> Callable[[Engine], None]:
    from web.postgres import PunctualConnections  # noqa: PLC0415 - only web processes have gevent

    seconds = settings.database_statement_timeout_ms / 1000
    return PunctualConnections(statement_seconds=seconds).serve


def _look_for_a_pooler(connection: Any, _record: Any) -> None:
    """Prepare nothing where a pooler may hand us from one connection of Postgres to another.

    What is prepared stays behind there, and the same name stands for something else here. Such a
    pooler gives a number of its own for the process that serves us.
    """
    row = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
    connection.rollback()
    if row[0] != connection.info.backend_pid:
        connection.prepare_threshold = None


def _ask_who_was_idle(engine: Engine) -> None:
    """Replace a connection that was lost while nobody used it.

    One that was used a moment ago is taken at its word: asking each time would cost every request
    more than any of its own questions. If it was lost in that moment, one request fails, and the
    pool replaces all that are as old.
    """

    def rest(_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info["rests_since"] = monotonic()

    def wake(connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
        if monotonic() - record.info.get("rests_since", monotonic()) < _TRUSTED_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError from error

    event.listen(engine, "checkin", rest)
    event.listen(engine, "checkout", wake)


def _before_connect(
    _dialect: Any, _record: Any, arguments: list[Any], _options: dict[str, Any]
) -> None:
    # SQLite would make the file as the umask says; its companions take after it.
    make_private_file(Path(arguments[0]))


def _open_sqlite(
    connection: PunctualSqlite, _record: Any, *, limit: float, aside: Aside | None
) -> None:
    connection.limit, connection.aside = limit, aside
    # The driver shall not begin transactions by itself: it would do so too late.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    # What was answered must survive a power cut, not only a crash.
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA journal_size_limit={KEPT_BYTES}")
    cursor.close()


def _on_begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("is_hot"):
        connection.exec_driver_sql(f"BEGIN {options.get('begin_mode') or begin_mode.get()}")


def open_engine(settings: Settings) -> Engine:
    """Open the database outside of the web application."""
    engine = create_engine(settings.database_url, **engine_options(settings))
    prepare_engine(engine, settings)
    return engine


def open_hot_engine(settings: Settings) -> Engine:
    """Open the database for `web.hot_database`, which keeps connections and counts them itself."""
    options = _connection_options(settings)
    engine = create_engine(settings.database_url, poolclass=NullPool, **options).execution_options(
        isolation_level="AUTOCOMMIT", is_hot=True
    )
    prepare_engine(engine, settings)
    return engine


def _alembic(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


class IncompatibleSchemaError(Exception):
    """A newer release has migrated the database to what this one cannot work with."""


class Shape(Enum):
    """How the tables compare with what this code needs."""

    OLDER = "older"
    RIGHT = "right"
    #: Of a newer release, whose migrations only added.
    NEWER = "newer"
    #: Of a newer release, and code as old as this breaks on it.
    TOO_NEW = "too new"


def migrate(settings: Settings) -> None:
    """Bring the database to the newest shape; whoever comes second waits, and finds it done.

    A newer shape is left alone. Raises IncompatibleSchemaError if this code cannot work with it.
    """
    # Waiting for another migration, and migrating much, may take longer than any request.
    engine = open_engine(replace(settings, database_statement_timeout_ms=0))
    try:
        with _migration_lock(settings, engine), engine.begin() as connection:
            shape = shape_of(connection)
            refuse_too_new(shape, connection)
            if shape is Shape.NEWER:
                _log.warning(_NEWER, _revision(connection), newest_known_revision())
            else:
                command.upgrade(_alembic(connection), "head")
    finally:
        engine.dispose()


@contextmanager
def _migration_lock(settings: Settings, engine: Engine) -> Iterator[None]:
    if not settings.uses_sqlite:
        with engine.connect() as connection:
            lock = {"key": AdvisoryLock.MIGRATIONS.value}
            connection.execute(text("SELECT pg_advisory_lock(:key)"), lock)
            yield
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), lock)
        return
    with (settings.instance_path / "migrate.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def shape_of(connection: Connection) -> Shape:
    """Compare what the database has with what this code needs.

    While hosts are replaced one by one, or the former release comes back, old code meets what new
    code has migrated. Migrations only add; one that does not says which code it breaks.
    """
    current = _revision(connection)
    if current == newest_known_revision():
        return Shape.RIGHT
    if current is None or current in _known_revisions():
        return Shape.OLDER
    return Shape.NEWER if _oldest_supported(connection) in _known_revisions() else Shape.TOO_NEW


def refuse_too_new(shape: Shape, connection: Connection) -> None:
    """Raise IncompatibleSchemaError if this code cannot work with the shape."""
    if shape is Shape.TOO_NEW:
        found, oldest = _revision(connection), _oldest_supported(connection)
        message = (
            f"DATABASE_URL: a newer release has migrated the database to {found}, which needs code "
            f"that knows migration {oldest}; this one knows {newest_known_revision()}. Start a "
            "newer release."
        )
        raise IncompatibleSchemaError(message)


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _oldest_supported(connection: Connection) -> str | None:
    if not inspect(connection).has_table(SchemaSupport.__tablename__):
        return None
    return connection.scalar(select(func.max(SchemaSupport.oldest_revision)))


@cache
def _known_revisions() -> frozenset[str]:
    scripts = ScriptDirectory.from_config(_alembic()).walk_revisions()
    return frozenset(script.revision for script in scripts)


@cache
def newest_known_revision() -> str:
    """Return the newest migration that this code knows."""
    return str(ScriptDirectory.from_config(_alembic()).get_current_head())
