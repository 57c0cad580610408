"""Engines for SQLite and Postgres."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import Any

from sqlalchemy import Connection, Engine, PoolProxiedConnection, QueuePool, create_engine, event
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from domain.core.thread_pools import ThreadExecutor, is_web_process
from web.database.sqlite import KEPT_WAL_BYTES, DeadlineSqliteConnection
from web.instance_files import make_private_file
from web.settings.environment import Settings

#: Maximum number of idle seconds after which a connection is reused without a ping.
_MAX_SECONDS_WITHOUT_PING = 1.0
#: Severities of errors after which Postgres ends the session.
_SESSION_ENDING_SEVERITIES = frozenset({"FATAL", "PANIC"})
#: Names of the UTC time zone in Postgres. Timestamps are read without conversion.
UTC_NAMES = frozenset({"UTC", "Etc/UTC"})
#: Query for the process ID of a session, which also lets the session compress long values with lz4.
#: The default, pglz, takes many times as long for bodies of alerts. Servers without lz4 keep the
#: default.
_SESSION_QUERY = """
SELECT pg_backend_pid(), (
    SELECT set_config(name, 'lz4', FALSE) FROM pg_settings
    WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)
)
"""
#: Threads in which web processes run SQLite statements. Other processes run them directly.
_sqlite_executor = ThreadExecutor(threads=512)
#: Engines that `share_engine` provides, by settings.
_shared_engines: dict[Settings, Engine] = {}


def record_pool_exhaustion() -> None:
    """Record that a pool has handed out its last database connection."""
    metrics = _find_metrics_module()
    if metrics is not None:
        metrics.record_pool_exhaustion()


def count_pool_timeout() -> None:
    """Count a request that timed out while waiting for a database connection."""
    metrics = _find_metrics_module()
    if metrics is not None:
        metrics.count_pool_timeout()


def _find_metrics_module() -> Any:
    # `gunicorn.conf.py` uses the database before the metrics directory is set, and the metrics
    # library reads this setting on import. Metrics are therefore counted only if `web.metrics` is
    # already imported.
    return sys.modules.get("web.metrics")


class InstrumentedPool(QueuePool):
    """SQLAlchemy's connection pool, with metrics."""

    def connect(self) -> PoolProxiedConnection:
        """Return a connection, and record an exhausted pool or a timeout in the metrics.

        Raise SQLAlchemy's TimeoutError if no connection becomes free in time.
        """
        try:
            taken = super().connect()
        except PoolTimeoutError:
            count_pool_timeout()
            raise
        if self.checkedout() >= self.size():
            record_pool_exhaustion()
        return taken


def build_engine_options(settings: Settings) -> dict[str, Any]:
    """Return the options of create_engine for an engine with a pool."""
    return {
        **_build_connection_options(settings),
        "poolclass": InstrumentedPool,
        "pool_size": settings.database_pool_size,
        "max_overflow": 0,
        "pool_timeout": settings.database_connect_timeout_seconds,
    }


def _build_connection_options(settings: Settings, **parameters: str) -> dict[str, Any]:
    # This option keeps bound secrets out of error messages.
    options: dict[str, Any] = {"hide_parameters": True}
    if settings.uses_sqlite:
        options["connect_args"] = {
            "timeout": settings.sqlite_busy_timeout_ms / 1000,
            "check_same_thread": False,
            "factory": DeadlineSqliteConnection,
        }
        return options
    options["connect_args"] = build_connection_arguments(settings, **parameters)
    return options


def uses_transaction_pooler(settings: Settings) -> bool:
    """Return whether a pooler may reassign the Postgres connection after each transaction."""
    return settings.database_pooler == "transaction" and not settings.uses_sqlite


def build_connection_arguments(settings: Settings, **parameters: str) -> dict[str, Any]:
    """Return psycopg's arguments, which set the given parameters at the start of a session.

    Behind a transaction pooler, a session starts with the defaults of its role
    (`web.database.sessions`) and without prepared statements.
    """
    arguments: dict[str, Any] = {
        "connect_timeout": settings.database_connect_timeout_seconds,
        "application_name": "gatebell",
        # These options detect an unreachable host before senders time out.
        "keepalives_idle": 10,
        "tcp_user_timeout": settings.database_connect_timeout_seconds * 1000,
    }
    if uses_transaction_pooler(settings):
        return arguments | {"prepare_threshold": None}
    timeout = str(settings.database_statement_timeout_ms)
    parameters = {"statement_timeout": timeout, "timezone": "UTC", **parameters}
    options = " ".join(f"-c {name}={value}" for name, value in parameters.items())
    return arguments | {"options": options}


def prepare_engine(
    engine: Engine, settings: Settings, *, writes: Callable[[], bool] = lambda: True
) -> None:
    """Set the statement timeout and the dialect's hooks on an engine.

    On SQLite, `writes` determines whether a new transaction may write. A transaction that reads
    first and writes later must take the write lock immediately, because SQLite cannot upgrade a
    read transaction after another write. The execution option `begin_mode` overrides `writes` for a
    connection.
    """
    if engine.dialect.name == "sqlite":
        limit = settings.database_statement_timeout_ms / 1000
        # Engines for frequent statements use the executor once for each transaction instead.
        executor = None if engine.get_execution_options().get("is_hot") else _sqlite_executor
        event.listen(engine, "do_connect", _create_sqlite_file)
        event.listen(engine, "connect", partial(_configure_sqlite, limit=limit, executor=executor))
        event.listen(engine, "begin", partial(_begin_transaction, writes=writes))
        return
    event.listen(engine, "connect", _check_session)
    event.listen(engine, "handle_error", _mark_error_as_disconnect)
    _ping_idle_connections(engine)
    if is_web_process():
        _build_deadline_listener(settings)(engine)


def is_session_ending(error: BaseException) -> bool:
    """Return whether Postgres reported the end of the session.

    The driver might not notice the end until the next statement.
    """
    said = getattr(error, "diag", None)
    return getattr(said, "severity_nonlocalized", None) in _SESSION_ENDING_SEVERITIES


def _mark_error_as_disconnect(context: ExceptionContext) -> None:
    if is_session_ending(context.original_exception):
        context.is_disconnect = True


@cache
def _build_deadline_listener(settings: Settings) -> Callable[[Engine], None]:
    from web.database.postgres import DeadlineConnectionFactory  # noqa: PLC0415 - only web processes have gevent

    seconds = settings.database_statement_timeout_ms / 1000
    wait = settings.database_connect_timeout_seconds if uses_transaction_pooler(settings) else None
    return DeadlineConnectionFactory(
        statement_seconds=seconds, pooler_seconds=wait
    ).attach_to_engine


def _check_session(connection: Any, _record: Any) -> None:
    """Check and configure a new session.

    Reject a session that does not use UTC, and disable prepared statements behind a pooler.

    Prepared statements belong to one server connection, which a pooler may switch. A pooler reports
    its own backend process ID.
    """
    zone = connection.info.parameter_status("TimeZone")
    if zone not in UTC_NAMES:
        connection.close()
        raise connection.OperationalError(f"The time zone of the session is {zone}, not UTC.")
    if connection.prepare_threshold is None:
        return
    with connection.transaction():
        row = connection.execute(_SESSION_QUERY, prepare=False).fetchone()
    if row[0] != connection.info.backend_pid:
        connection.prepare_threshold = None


def _ping_idle_connections(engine: Engine) -> None:
    """Ping connections that have been idle for a while, and replace lost connections.

    A connection that was used recently is not pinged, because a ping costs more than most
    statements. If such a connection was lost, one request fails. The pool then replaces all
    connections that were opened before the failure.
    """

    def record_idle_start(_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info["rests_since"] = monotonic()

    def ping_after_idle(connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
        if monotonic() - record.info.get("rests_since", monotonic()) < _MAX_SECONDS_WITHOUT_PING:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError from error

    event.listen(engine, "checkin", record_idle_start)
    event.listen(engine, "checkout", ping_after_idle)


def _create_sqlite_file(
    _dialect: Any, _record: Any, arguments: list[Any], _options: dict[str, Any]
) -> None:
    # SQLite would create the file with the mode from the umask. The WAL files inherit the mode.
    make_private_file(Path(arguments[0]))


def _configure_sqlite(
    connection: DeadlineSqliteConnection,
    _record: Any,
    *,
    limit: float,
    executor: ThreadExecutor | None,
) -> None:
    connection.limit, connection.executor = limit, executor
    # The driver must not begin transactions itself, because it would begin them too late.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    # Committed data must survive a power failure, not only a crash.
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA journal_size_limit={KEPT_WAL_BYTES}")
    cursor.close()


def _begin_transaction(connection: Connection, *, writes: Callable[[], bool]) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        mode = options.get("begin_mode") or ("IMMEDIATE" if writes() else "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")


def build_psycopg_url(settings: Settings) -> str:
    """Return the database URL in the form that psycopg accepts, including the password."""
    url = make_url(settings.database_url).set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


def open_engine(settings: Settings) -> Engine:
    """Open an engine for use outside of the web application."""
    engine = create_engine(settings.database_url, **build_engine_options(settings))
    prepare_engine(engine, settings)
    return engine


@contextmanager
def use_engine(settings: Settings) -> Iterator[Engine]:
    """Yield the engine that this process shares, or an engine that is closed afterwards."""
    if settings in _shared_engines:
        yield _shared_engines[settings]
        return
    engine = open_engine(settings)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def share_engine(settings: Settings, *, connections: int) -> Iterator[None]:
    """Share one engine with up to `connections` connections among all threads.

    Opening a connection is slow.
    """
    with use_engine(replace(settings, database_pool_size=connections)) as engine:
        _shared_engines[settings] = engine
        try:
            yield
        finally:
            del _shared_engines[settings]


def open_autocommit_engine(settings: Settings) -> Engine:
    """Open an engine without a pool for `web.database.autocommit_pool`."""
    # The statements of this engine find rows by key, so one plan is good for all values. Before a
    # large table is analyzed, Postgres would otherwise plan each execution, which takes longer than
    # the execution.
    options = _build_connection_options(settings, plan_cache_mode="force_generic_plan")
    engine = create_engine(settings.database_url, poolclass=NullPool, **options).execution_options(
        isolation_level="AUTOCOMMIT", is_hot=True
    )
    prepare_engine(engine, settings)
    return engine
