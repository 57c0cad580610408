"""Runs a program of the service on SQLite, and records each wait for the write lock.

    python -m bench.scale.timed_waits FILE worker
    python -m bench.scale.timed_waits FILE prune

Each line of the file is the duration of a wait in milliseconds, or `busy` if the lock was not
obtained.
"""

import sys
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from web.database.sqlite import DeadlineCursor
from web.jobs import worker
from web.jobs.retention import prune_database
from web.settings.environment import load_settings

BUSY_WORD = "busy"


def main(file: str, program: str) -> None:
    """Record the waits of a program until it ends."""
    with Path(file).open("a", encoding="utf-8", buffering=1) as notes:
        _record_waits(notes)
        if program == "worker":
            worker.main()
        else:
            prune_database(load_settings())


def _record_waits(notes: TextIO) -> None:
    execute = DeadlineCursor.execute

    def timed(cursor: Any, sql: str, parameters: Any = (), /) -> Any:
        if sql != "BEGIN IMMEDIATE":
            return execute(cursor, sql, parameters)
        began, said = perf_counter(), BUSY_WORD
        try:
            begun = execute(cursor, sql, parameters)
            said = f"{(perf_counter() - began) * 1000:.2f}"
            return begun
        finally:
            notes.write(f"{said}\n")

    DeadlineCursor.execute = timed  # type: ignore[method-assign]


if __name__ == "__main__":
    main(*sys.argv[1:])
