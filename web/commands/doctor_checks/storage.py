"""Checks of the database, its migrations, the clock, and the disk."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, text

from domain.upkeep.clock_corrections import ahead_remark, correction_remark
from web.commands.backups.postgres_dumps import version_of
from web.commands.doctor_checks.findings import Finding, failed, ok, warning
from web.database.clocks import clock_lead_ms, in_words, is_too_much
from web.database.pooler import connections_are_shared
from web.database.schema import (
    FIRST_RELEASE,
    SchemaState,
    newest_known_revision,
    schema_state,
)
from web.extensions import db
from web.services import git, now, services
from web.settings.reader import Settings

_MIB, _GIB = 1024**2, 1024**3
#: With less than this, writes soon fail; with less than the other one, somebody should make room.
_TOO_LITTLE, _LITTLE = 256 * _MIB, 2048 * _MIB
_KINDS = {"postgresql": "Postgres", "sqlite": "SQLite"}


def check_database(settings: Settings) -> Iterator[Finding]:
    """Connect, and write a row."""
    with db.engine.connect() as connection:
        numbers = connection.dialect.server_version_info or ()
        version = ".".join(str(each) for each in numbers)
    name = f"{_KINDS[db.engine.dialect.name]} {version}"
    if not settings.uses_sqlite and connections_are_shared(settings):
        yield failed("A pooler pools transactions: let it pool sessions (pool_mode=session).")
    problem = services().write_probe.problem(db.engine, now=now())
    yield failed(f"{name} is {problem}.") if problem else ok(f"{name} answers and accepts writes.")


def check_migrations(settings: Settings) -> Iterator[Finding]:
    """Compare the shape of the database with this code."""
    del settings
    with db.engine.connect() as connection:
        state, wanted = schema_state(connection), newest_known_revision()
    yield {
        SchemaState.RIGHT: ok(f"The database is at {wanted}, the newest."),
        SchemaState.NEWER: warning(f"A newer release has migrated the database beyond {wanted}."),
        SchemaState.OLDER: failed(f"The database is older than {wanted}: run `make migrate`."),
        SchemaState.TOO_NEW: failed("A newer release has migrated the database: start that one."),
        SchemaState.TOO_OLD: failed(f"Upgrade the database with {FIRST_RELEASE} first."),
    }[state]


def check_clock(settings: Settings) -> Iterator[Finding]:
    """Compare the clock of this host with the database's, and with the times that are stored."""
    session, moment = db.session(), now()
    for remark in (ahead_remark, correction_remark):
        if said := remark(session=session, now=moment):
            yield warning(said)
    if settings.uses_sqlite:
        yield ok("SQLite uses the clock of this host.")
        return
    with db.engine.connect() as connection:
        lead = _shortest_lead(connection)
    if is_too_much(lead):
        yield failed(f"{in_words(lead)} Synchronize both, for example with chrony.")
    else:
        yield ok(f"The clock differs from the database's by {abs(lead) / 1000:.1f} s.")


def _shortest_lead(connection: Connection) -> int:
    """Return the lead of the quickest of three answers."""
    connection.execute(text("SELECT 1"))
    leads = (clock_lead_ms(connection, clock=services().clock) for _ in range(3))
    return min((each for each in leads if each is not None), key=abs)


def check_disk(settings: Settings) -> Iterator[Finding]:
    """Look for room where the service writes."""
    seen: set[int] = set()
    for place in (settings.instance_path, settings.repositories_path):
        there = _existing(place)
        device = there.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield _room(there)


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _room(path: Path) -> Finding:
    usage = shutil.disk_usage(path)
    free, total = (f"{size / _GIB:.1f} GiB" for size in (usage.free, usage.total))
    sentence = f"{free} of {total} are free at {path}."
    if usage.free < _TOO_LITTLE:
        return failed(sentence)
    return warning(sentence) if usage.free < _LITTLE else ok(sentence)


def check_backups(settings: Settings) -> Iterator[Finding]:
    """Compare pg_dump with the server: an older one cannot make a backup."""
    if settings.uses_sqlite:
        yield ok("`gatebell backup` needs no other program.")
        return
    with db.engine.connect() as connection:
        server = int((connection.dialect.server_version_info or (0,))[0])
    found = version_of("pg_dump")
    if found is None:
        yield warning("pg_dump is not in PATH: `gatebell backup` needs it, or --pg-dump.")
    elif found < server:
        yield warning(
            f"pg_dump {found} is older than Postgres {server}: `gatebell backup` needs a newer one."
        )
    else:
        yield ok(f"pg_dump {found} can make backups of Postgres {server}.")


def check_git(settings: Settings) -> Iterator[Finding]:
    """Look for a Git that repositories can be served with."""
    del settings
    problem = git().problem()
    if problem:
        yield warning(f"Git is {problem}: repositories cannot be served from this host.")
    else:
        yield ok("Git is there.")
