"""Manifest of a backup, which lists its contents with counts and hashes for verification."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, func, inspect, select, table, text
from sqlalchemy.orm import Session

from domain.audit.seals import get_or_create_audit_key, verify_seals
from domain.core.clock import read_system_clock
from domain.core.errors import InvalidError
from domain.core.keyring import Keyring, UndecryptableError
from domain.core.secret_keys import find_missing_fingerprints
from models import Host
from web.database.schema import get_newest_known_revision
from web.instance_files import write_private_file

MANIFEST_NAME = "manifest.json"
_FORMAT_VERSION = 1
_REVISION_TABLE = "alembic_version"
#: Maximum number of reported faults of each kind.
_MAX_REPORTED_FAULTS = 20


@dataclass(frozen=True, kw_only=True)
class BackedUpFile:
    """Name, size and hash of a file in a backup."""

    #: Path of the file in the backup.
    name: str
    bytes: int
    sha256: str

    @classmethod
    def from_file(cls, directory: Path, name: str) -> "BackedUpFile":
        """Read a file and return its size and hash."""
        path = directory / name
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        return cls(name=name, bytes=path.stat().st_size, sha256=digest)


@dataclass(frozen=True, kw_only=True)
class DatabaseContents:
    """Contents of a database, for comparison with a restored database."""

    #: Newest migration of the database.
    revision: str
    #: Number of rows in each table.
    rows: dict[str, int]
    #: Newest seal of the audit log, as NUMBER:HASH, or None if there is none.
    audit_head: str | None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Time, origin and contents of a backup, for its verification."""

    made_at: str
    gatebell: str
    #: Name of the database system, `sqlite` or `postgresql`.
    database: str
    #: Name of the file in the backup that contains the database.
    database_file: str
    contents: DatabaseContents
    #: Fingerprints of SECRET_KEY and its fallbacks, starting with the key that encrypts new data.
    key_fingerprints: list[str]
    files: list[BackedUpFile]
    #: Messages about data that is missing from the backup and must be stored separately.
    left_out: list[str]
    format: int = _FORMAT_VERSION

    def write_file(self, directory: Path) -> None:
        """Write the manifest as the last file, so that an incomplete backup has no manifest."""
        for each in self.files:
            _sync_to_disk(directory / each.name)
        aside = directory / f"{MANIFEST_NAME}.new"
        write_private_file(aside, json.dumps(asdict(self), indent=1) + "\n")
        _sync_to_disk(aside)
        aside.rename(directory / MANIFEST_NAME)

    @classmethod
    def read_file(cls, directory: Path) -> "Manifest":
        """Read the manifest of a backup.

        Raise InvalidError if it is missing or cannot be read.
        """
        try:
            said = json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8"))
            return cls._from_values(said)
        except FileNotFoundError:
            message = f"{directory} has no {MANIFEST_NAME}, so it is not a complete backup."
            raise InvalidError(message) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidError(f"{directory / MANIFEST_NAME} cannot be read.") from error

    @classmethod
    def _from_values(cls, said: dict[str, Any]) -> "Manifest":
        if said["format"] != _FORMAT_VERSION:
            message = (
                f"This backup has format {said['format']}, but this release can read only format "
                f"{_FORMAT_VERSION}."
            )
            raise InvalidError(message)
        if not isinstance(said["made_at"], str):
            raise TypeError
        files = [BackedUpFile(**each) for each in said["files"]]
        return cls(**{**said, "contents": DatabaseContents(**said["contents"]), "files": files})

    def find_file_faults(self, directory: Path) -> list[str]:
        """Compare the files with their hashes and return a message for each difference."""
        return [said for each in self.files if (said := _find_file_fault(directory, each))]

    def contains_file(self, name: str) -> bool:
        """Return whether the backup contains a file with this name."""
        return any(each.name == name for each in self.files)


def _find_file_fault(directory: Path, expected_file: BackedUpFile) -> str | None:
    try:
        found = BackedUpFile.from_file(directory, expected_file.name)
    except OSError as error:
        return f"{expected_file.name} cannot be read: {error.strerror}."
    return None if found == expected_file else f"{expected_file.name} has changed since the backup."


def list_backup_files(directory: Path) -> Iterable[BackedUpFile]:
    """Yield all files of a backup except its manifest, in alphabetical order."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name not in {MANIFEST_NAME, f"{MANIFEST_NAME}.new"}:
            yield BackedUpFile.from_file(directory, path.relative_to(directory).as_posix())


def _sync_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def read_database_contents(connection: Connection, keyring: Keyring) -> DatabaseContents:
    """Return the migration, the row counts and the newest audit seal of a database.

    Raise InvalidError if the database is empty or damaged. The caller must roll back the
    transaction.
    """
    names = list_tables(connection)
    if _REVISION_TABLE not in names:
        raise InvalidError("The database is empty, so there is nothing to back up.")
    # Rows are counted first, because reading an audit log without a key creates a key.
    revision, rows = _get_revision(connection), _count_rows(connection)
    head, faults = _verify_audit_log(connection, keyring)
    if faults:
        raise InvalidError(
            f"The audit log is damaged: {faults[0]} Run `gatebell audit verify` for details."
        )
    return DatabaseContents(revision=revision, rows=rows, audit_head=head)


def list_tables(connection: Connection) -> list[str]:
    """Return the names of all tables in alphabetical order."""
    return sorted(inspect(connection).get_table_names())


def find_content_faults(
    connection: Connection, expected_contents: DatabaseContents, keyring: Keyring
) -> Iterator[str]:
    """Compare a restored database with its manifest and yield a message for each difference."""
    revision = _get_revision(connection)
    if revision != expected_contents.revision:
        yield f"The database is at migration {revision} instead of {expected_contents.revision}."
    rows = _count_rows(connection)
    for name in sorted(rows.keys() | expected_contents.rows.keys()):
        found, wanted = rows.get(name), expected_contents.rows.get(name)
        if found != wanted:
            yield f"{name} has {_format_row_count(found)} instead of {_format_row_count(wanted)}."
    if revision != get_newest_known_revision():
        return  # this code cannot read other schemas
    yield from _find_key_faults(connection, keyring)
    head, faults = _verify_audit_log(connection, keyring)
    yield from faults[:_MAX_REPORTED_FAULTS]
    if head != expected_contents.audit_head:
        yield f"The audit log ends with the seal {head} instead of {expected_contents.audit_head}."


def delete_host_reports(connection: Connection) -> None:
    """Delete the reports of hosts, because these hosts use the original database."""
    if Host.__tablename__ in list_tables(connection):
        connection.execute(delete(table(Host.__tablename__)))


def _format_row_count(rows: int | None) -> str:
    if rows is None:
        return "no table"
    return "1 row" if rows == 1 else f"{rows} rows"


def _find_key_faults(connection: Connection, keyring: Keyring) -> Iterator[str]:
    with Session(connection) as session:
        missing = find_missing_fingerprints(keyring, session=session)
    if missing:
        yield f"SECRET_KEY does not match the database, which uses {', '.join(missing)}."


def _get_revision(connection: Connection) -> str:
    return str(connection.scalar(text("SELECT version_num FROM alembic_version")))


def _count_rows(connection: Connection) -> dict[str, int]:
    return {
        name: connection.scalar(select(func.count()).select_from(table(name))) or 0
        for name in list_tables(connection)
    }


def _verify_audit_log(connection: Connection, keyring: Keyring) -> tuple[str | None, list[str]]:
    """Return the newest seal of the audit log, and any faults in the log.

    For a database with another schema, return neither a seal nor faults.
    """
    if _get_revision(connection) != get_newest_known_revision():
        return None, []
    with Session(connection) as session:
        try:
            key = get_or_create_audit_key(session=session, keyring=keyring, now=read_system_clock())
        except UndecryptableError:
            return None, ["The key of the audit log cannot be decrypted with SECRET_KEY."]
        found = verify_seals(session=session, key=key)
    return (str(found.head) if found.head else None), list(found.faults)
