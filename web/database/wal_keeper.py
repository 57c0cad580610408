"""Keeps the write-ahead log of SQLite short.

SQLite copies it into the database by itself, but begins it anew only in a moment in which nobody
reads or writes: with several who send at once such a moment never comes, and the log grows for as
long as they do. So the worker makes one, often enough that it is short: whoever writes waits for
what is left to copy.
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
#: Beyond so many bytes it is copied and emptied. SQLite itself copies every four megabytes.
LONGEST_BYTES = 16 * 2**20
#: What the file keeps when SQLite begins it anew by itself.
KEPT_BYTES = 2 * LONGEST_BYTES
_PAUSE_SECONDS = 2.0
#: So long those who write wait for one who reads; then the log is left for the next time.
_PATIENCE_SECONDS = 0.25


def start_wal_keeper(settings: Settings) -> None:
    """Begin to do so, in a thread that ends with the process."""
    file = make_url(settings.database_url).database
    if settings.uses_sqlite and file:
        Thread(target=_keep_on, args=(Path(file),), name="wal keeper", daemon=True).start()


def _keep_on(file: Path) -> None:
    while True:
        try:
            shorten_wal(file)
        except sqlite3.Error as error:  # no room, or somebody has locked it: next time
            _log.warning("the log of SQLite stays long", extra={"reason": str(error)})
        sleep(_PAUSE_SECONDS)


def shorten_wal(file: Path) -> bool:
    """Empty the log if it is long; tell whether that was done."""
    if wal_bytes(file) <= LONGEST_BYTES:
        return False
    connection = sqlite3.connect(file, timeout=_PATIENCE_SECONDS, isolation_level=None)
    with closing(connection):
        connection.execute("PRAGMA synchronous = FULL")
        # Nobody waits for this one; it leaves little for the next, for which they do.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        is_hindered, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_hindered


def wal_bytes(file: Path) -> int:
    """Return how long the log is."""
    with suppress(FileNotFoundError):
        return file.with_name(f"{file.name}-wal").stat().st_size
    return 0
