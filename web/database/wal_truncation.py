"""Keeps the write-ahead log of SQLite short.

SQLite checkpoints by itself, but restarts the log only when there is no reader or writer. Under
constant load that never happens and the log keeps growing. So the worker runs truncating
checkpoints, often enough that writers wait only briefly.
"""

import logging
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from time import sleep

from sqlalchemy.engine import make_url

from web.settings.reader import Settings

_log = logging.getLogger("gatebell.wal")
#: Size in bytes above which the log is truncated. SQLite itself checkpoints every four megabytes.
LONGEST_BYTES = 16 * 2**20
#: Size in bytes that the file keeps when SQLite restarts the log.
KEPT_BYTES = 2 * LONGEST_BYTES
_PAUSE_SECONDS = 2.0
#: How long writers wait for a reader; then the log is left for the next run.
_PATIENCE_SECONDS = 0.25


def start_wal_truncation(settings: Settings) -> None:
    """Start the thread, a daemon."""
    file = make_url(settings.database_url).database
    if settings.uses_sqlite and file:
        Thread(target=_keep_on, args=(Path(file),), name="wal keeper", daemon=True).start()


def _keep_on(file: Path) -> None:
    while True:
        try:
            shorten_wal(file)
        except sqlite3.Error as error:  # full disk or locked: retried later
            _log.warning("the log of SQLite stays long", extra={"reason": str(error)})
        sleep(_PAUSE_SECONDS)


def shorten_wal(file: Path) -> bool:
    """Truncate the log if it is long; return whether it was truncated."""
    if wal_bytes(file) <= LONGEST_BYTES:
        return False
    connection = sqlite3.connect(file, timeout=_PATIENCE_SECONDS, isolation_level=None)
    with closing(connection):
        connection.execute("PRAGMA synchronous = FULL")
        # First a passive checkpoint, which does not block writers.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        is_hindered, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_hindered


def wal_bytes(file: Path) -> int:
    """Return the size of the log in bytes."""
    with suppress(FileNotFoundError):
        return file.with_name(f"{file.name}-wal").stat().st_size
    return 0
