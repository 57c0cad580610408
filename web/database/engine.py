"""Opens the database the way each kind wants it."""

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from domain.aside import Aside, serves_in_greenlets
from web.database.sqlite import PunctualSqlite
from web.database.wal_keeper import KEPT_BYTES
from web.instance_files import make_private_file
from web.settings.reader import Settings

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
    from web.database.postgres import PunctualConnections  # noqa: PLC0415 - only web processes have gevent

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
    """Open the database for `web.database.connections`, which pools connections itself."""
    options = _connection_options(settings)
    engine = create_engine(settings.database_url, poolclass=NullPool, **options).execution_options(
        isolation_level="AUTOCOMMIT", is_hot=True
    )
    prepare_engine(engine, settings)
    return engine
