"""Lets migrations wait only briefly for locks, and retries them until they succeed.

While a migration waits for a table, all later requests for that table wait behind it. If one of
these requests holds a lock that the migration needs next, there is a deadlock. Postgres resolves
the deadlock after a second (deadlock_timeout), possibly by canceling the request. A migration
therefore gives up earlier, lets other transactions run, and retries.
"""

import fcntl
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sqlite3 import SQLITE_BUSY
from time import monotonic, sleep
from typing import Any

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError

from domain.core.database.locks import AdvisoryLock
from web.instance_files import make_private_file
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.database")
#: Timeout in milliseconds for the first lock of a transaction, which cannot be part of a deadlock.
#: It exceeds the time (deadlock_timeout) after which Postgres cancels an automatic vacuum that
#: blocks others. It is shorter than the time that requests wait for a connection
#: (DATABASE_CONNECT_TIMEOUT_SECONDS).
_FIRST_LOCK_TIMEOUT_MS = 1_200
#: Total timeout in milliseconds for all further locks.
_FURTHER_LOCKS_TIMEOUT_MS = 800
#: Lengths of the first and the longest pause between attempts, in which other transactions can run.
#: Each pause is longer than the previous one.
_FIRST_PAUSE_SECONDS = 2.0
_MAX_PAUSE_SECONDS = 10.0
#: Seconds after which a migration fails if it cannot acquire its locks.
_BLOCKED_TIMEOUT_SECONDS = 600
#: Age in seconds above which a transaction causes a warning.
_LONG_TRANSACTION_SECONDS = 5
_POLL_SECONDS = 0.5
#: SQLSTATEs of transactions that could not acquire a lock: deadlock_detected, lock_not_available.
_LOCK_STATES = frozenset({"40P01", "55P03"})
#: Pattern for statements that wait for all older transactions without blocking requests.
_CONCURRENT_STATEMENT = re.compile(r"\bCONCURRENTLY\b")
_READ_STATEMENT = re.compile(r"\s*(SELECT|SHOW|SET)\b", re.IGNORECASE)

_OTHER_TRANSACTIONS_QUERY = text(
    "SELECT DISTINCT pid, usename, application_name, state, xact_start,"
    " extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds"
    " FROM pg_stat_activity JOIN pg_locks USING (pid)"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND locktype = 'relation' AND granted ORDER BY xact_start NULLS LAST, pid LIMIT 3"
)


class MigrationBlockedError(Exception):
    """Error for a blocked migration, with a message that lists the blocking transactions."""


class _LockTimeouts:
    """Lock timeouts for the statements of a Postgres connection."""

    def __init__(self, engine: Engine) -> None:
        """Set lock timeouts on an engine's connections, which are used one at a time."""
        self._locks_since: float | None = None
        event.listen(engine, "begin", self._reset_lock_start)
        event.listen(engine, "before_cursor_execute", self._set_lock_timeout)
        event.listen(engine, "after_cursor_execute", self._record_statement)

    def _reset_lock_start(self, _connection: Connection) -> None:
        self._locks_since = None

    def _set_lock_timeout(
        self, connection: Connection, cursor: Any, statement: str, *_given: Any
    ) -> None:
        if not _READ_STATEMENT.match(statement):
            cursor.execute(
                f"SET lock_timeout = {self._compute_lock_timeout_ms(connection, statement)}"
            )

    def _record_statement(
        self, _connection: Connection, _cursor: Any, statement: str, *_given: Any
    ) -> None:
        if self._locks_since is None and not _READ_STATEMENT.match(statement):
            self._locks_since = monotonic()

    def _compute_lock_timeout_ms(self, connection: Connection, statement: str) -> int:
        if _CONCURRENT_STATEMENT.search(statement):
            return _BLOCKED_TIMEOUT_SECONDS * 1_000
        is_alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
        if is_alone or self._locks_since is None:
            return _FURTHER_LOCKS_TIMEOUT_MS if is_alone else _FIRST_LOCK_TIMEOUT_MS
        passed = int((monotonic() - self._locks_since) * 1_000)
        return max(_FURTHER_LOCKS_TIMEOUT_MS - passed, 1)


def run_with_lock_retries(
    engine: Engine, work: Callable[[Connection], None], revision: Callable[[Connection], str | None]
) -> None:
    """Run migrations on a connection, and retry until they acquire their locks.

    Committed migrations are kept. Raise MigrationBlockedError if no migration succeeds for ten
    minutes.
    """
    if engine.dialect.name == "postgresql":
        _LockTimeouts(engine)
        _warn_of_long_transactions(engine)
    waiting = _AttemptPauses()
    while True:
        try:
            with engine.connect() as connection:
                return work(connection)
        except DBAPIError as error:
            if not _is_lock_timeout(error):
                raise
        with engine.connect().execution_options(begin_mode="DEFERRED") as connection:
            waiting.wait_before_attempt(
                revision(connection) or "0000", _describe_other_transactions(connection)
            )


class _AttemptPauses:
    """Pauses between the attempts of a migration."""

    def __init__(self) -> None:
        self._reached, self._since, self._seconds = "", 0.0, 0.0

    def wait_before_attempt(self, reached: str, others: list[str]) -> None:
        """Pause before the next attempt.

        The time limit restarts whenever a migration completes. Raise MigrationBlockedError when the
        limit is exceeded.
        """
        if reached != self._reached:
            self._reached, self._since = reached, monotonic()
            self._seconds = _FIRST_PAUSE_SECONDS
        if monotonic() - self._since > _BLOCKED_TIMEOUT_SECONDS:
            raise MigrationBlockedError(_format_blocked_message(reached, others))
        told = {"after": reached, "others": others, "pause": self._seconds}
        _log.warning(
            "Migration was blocked by the locks of other transactions; it will be retried.",
            extra={"event": "migration.blocked", **told},
        )
        sleep(self._seconds)
        self._seconds = min(self._seconds * 1.5, _MAX_PAUSE_SECONDS)


def _is_lock_timeout(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    return getattr(error.orig, "sqlstate", None) in _LOCK_STATES or code == SQLITE_BUSY


def _describe_other_transactions(connection: Connection) -> list[str]:
    """Return descriptions of the three oldest transactions with locks.

    The list is empty on SQLite.
    """
    if connection.dialect.name != "postgresql":
        return []
    return [_describe_transaction(row) for row in connection.execute(_OTHER_TRANSACTIONS_QUERY)]


def _describe_transaction(row: Any) -> str:
    program = row.application_name or f"a program of {row.usename}"
    backup = ", a backup" if program == "pg_dump" else ""
    age = "" if row.seconds is None else f", {row.state} for {row.seconds} s"
    return f"process {row.pid} ({program}{backup}{age})"


def _format_blocked_message(reached: str, others: list[str]) -> str:
    who = f": {'; '.join(others)}" if others else ""
    return (
        f"The migration after {reached} could not lock its tables within "
        f"{_BLOCKED_TIMEOUT_SECONDS // 60} minutes, because other transactions use them{who}. End "
        "these "
        "transactions or wait for their end, and migrate again. Completed migrations are kept."
    )


def _warn_of_long_transactions(engine: Engine) -> None:
    with engine.connect() as connection:
        rows = connection.execute(_OTHER_TRANSACTIONS_QUERY).all()
    long = [
        _describe_transaction(row)
        for row in rows
        if (row.seconds or 0) >= _LONG_TRANSACTION_SECONDS
    ]
    if long:
        _log.warning(
            "Long-running transactions were found; migrations may have to wait for these "
            "transactions.",
            extra={"event": "migration.long_transactions_found", "others": long},
        )


@contextmanager
def hold_migration_lock(settings: Settings, engine: Engine) -> Iterator[None]:
    """Hold a lock that allows only one process to migrate at a time.

    Other processes wait.
    """
    if settings.uses_sqlite:
        path = settings.instance_path / "migrate.lock"
        make_private_file(path)
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        return
    # The lock is held outside of a transaction. The snapshot of a transaction would delay
    # concurrent index builds by the process that holds the lock.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        lock = {"key": AdvisoryLock.MIGRATIONS.value}
        is_told = False
        while not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), lock):
            if not is_told:
                _log.warning(
                    "Another process is already running the migration; waiting until it finishes.",
                    extra={"event": "migration.already_running"},
                )
            is_told = True
            sleep(_POLL_SECONDS)
        yield
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), lock)
