"""Reads what a database holds, for the manifest and for the check of what was restored."""

from collections.abc import Iterator

from sqlalchemy import Connection, delete, func, inspect, select, table, text
from sqlalchemy.orm import Session

from domain.audit.seals import audit_key
from domain.audit.verification import verify
from domain.clock import system_clock
from domain.errors import InvalidError
from domain.keyring import Keyring, UndecipherableError
from domain.secret_keys import missing_fingerprints
from models import Host
from web.commands.backups.manifest import Contents
from web.database.schema import newest_known_revision

_REVISION = "alembic_version"
#: Faults of one kind of which only the first are told.
_MOST_TOLD = 20


def read_contents(connection: Connection, keyring: Keyring) -> Contents:
    """Return what a database holds; raise InvalidError for an empty or damaged one.

    The caller rolls the transaction back.
    """
    names = table_names(connection)
    if _REVISION not in names:
        message = "There is nothing to back up: the database is empty."
        raise InvalidError(message)
    # Counted first: without a key of the audit log, looking into it makes one.
    revision, rows = _revision(connection), _rows(connection)
    head, faults = _audit_log(connection, keyring)
    if faults:
        message = f"The audit log is damaged (`gatebell audit verify`): {faults[0]}"
        raise InvalidError(message)
    return Contents(revision=revision, rows=rows, audit_head=head)


def table_names(connection: Connection) -> list[str]:
    """Return the names of all tables."""
    return sorted(inspect(connection).get_table_names())


def faults_of_contents(
    connection: Connection, expected: Contents, keyring: Keyring
) -> Iterator[str]:
    """Compare a restored database with its manifest; yield a sentence for each difference."""
    revision = _revision(connection)
    if revision != expected.revision:
        yield f"The database is at migration {revision}, not at {expected.revision}."
    rows = _rows(connection)
    for name in sorted(rows.keys() | expected.rows.keys()):
        found, wanted = rows.get(name), expected.rows.get(name)
        if found != wanted:
            yield f"{name} has {_count(found)}, not {_count(wanted)}."
    if revision != newest_known_revision():
        return  # of another shape than this code reads
    yield from _faults_of_keys(connection, keyring)
    head, faults = _audit_log(connection, keyring)
    yield from faults[:_MOST_TOLD]
    if head != expected.audit_head:
        yield f"The audit log ends with the seal {head}, not with {expected.audit_head}."


def forget_hosts(connection: Connection) -> None:
    """Forget the programs that worked on the database of the backup: none works on this one."""
    if Host.__tablename__ in table_names(connection):
        connection.execute(delete(table(Host.__tablename__)))


def _count(rows: int | None) -> str:
    return "no table" if rows is None else f"{rows} rows"


def _faults_of_keys(connection: Connection, keyring: Keyring) -> Iterator[str]:
    with Session(connection) as session:
        missing = missing_fingerprints(keyring, session=session)
    if missing:
        yield f"SECRET_KEY is not the key of this database, which has {', '.join(missing)}."


def _revision(connection: Connection) -> str:
    return str(connection.scalar(text("SELECT version_num FROM alembic_version")))


def _rows(connection: Connection) -> dict[str, int]:
    return {
        name: connection.scalar(select(func.count()).select_from(table(name))) or 0
        for name in table_names(connection)
    }


def _audit_log(connection: Connection, keyring: Keyring) -> tuple[str | None, list[str]]:
    """Return the newest seal and what is wrong; nothing for a database of another shape."""
    if _revision(connection) != newest_known_revision():
        return None, []
    with Session(connection) as session:
        try:
            key = audit_key(session=session, keyring=keyring, now=system_clock())
        except UndecipherableError:
            return None, ["The key of the audit log cannot be decrypted with SECRET_KEY."]
        found = verify(session=session, key=key)
    return (str(found.head) if found.head else None), list(found.faults)
